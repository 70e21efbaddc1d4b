/**
 * Pages by the fragment of the address: `#/view/orders?chart=bars`. A fragment is never sent to a
 * server, so a shared query stands in no log, and reloading needs no route on the server.
 */

/** @typedef {{page: string, name: string | null, params: URLSearchParams}} Place */

/** @returns {Place} */
export const readPlace = (hash = location.hash) => {
  const [path, query = ""] = splitOnce(hash.replace(/^#\/?/, ""), "?");
  const [page, name] = splitOnce(path, "/");
  return { page: page || "overview", name: name ? decode(name) : null, params: new URLSearchParams(query) };
};

const splitOnce = (text, mark) => {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
};

/** The text of a part of an address. */
export const decode = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // somebody typed a lone percent sign
  }
};

/** The address of a page. */
export const hrefOf = (page, name = null, params = {}) => {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== ""));
  const text = query.toString();
  return `#/${page}${name === null ? "" : `/${encodeURIComponent(name)}`}${text ? `?${text}` : ""}`;
};

/** Go to a page. */
export const go = (href) => {
  location.hash = href;
};

/** Change parameters of this page's address without another entry in the browser's history. */
export const setParams = (changes) => {
  const { page, name, params } = readPlace();
  const next = { ...Object.fromEntries(params), ...changes };
  history.replaceState(null, "", hrefOf(page, name, next));
};
