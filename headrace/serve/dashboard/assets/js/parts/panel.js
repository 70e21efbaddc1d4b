/** Panels, and what one shows while it has nothing to show. */

import { append, h } from "../dom.js";

/**
 * A panel with a title. `note` stands beside the title, `actions` at the right end.
 * @param {{title: string, note?: any, actions?: any[], span?: number, flush?: boolean, testid?: string}} options
 */
export const panel = ({ title, note, actions, span = 12, flush = false, testid }, ...children) => {
  const heading = h("h2", null, title);
  const body = h("div", { class: `panel-body${flush ? " flush" : ""}` }, children);
  const element = h(
    "section",
    { class: `panel span-${span}`, "aria-label": title, data: testid ? { testid } : {} },
    h("div", { class: "panel-head" }, heading, note && h("span", { class: "note" }, note), actions && h("div", { class: "actions" }, actions)),
    body,
  );
  return { element, body, heading };
};

export const loading = (text = "Loading…") => h("div", { class: "state-note loading", role: "status" }, text);

export const empty = (...text) => h("div", { class: "state-note", data: { testid: "empty" } }, text);

/** An error with what to do; `retry` adds a button. */
export const failed = (error, retry) =>
  h(
    "div",
    { class: "state-note error", role: "alert", data: { testid: "panel-error" } },
    h("p", null, error.message),
    retry && h("button", { type: "button", on: { click: retry } }, "Try again"),
  );

/** A list of names and values. */
export const facts = (entries) => {
  const list = h("dl", { class: "facts" });
  for (const [name, value] of entries) {
    if (value === null || value === undefined || value === false) continue;
    const detail = h("dd");
    append(detail, [value]);
    list.append(h("dt", null, name), detail);
  }
  return list;
};

/** A sentence that deserves attention; the word at its start says how much. */
export const notice = (tone, ...text) => {
  const words = { bad: "Failure", warn: "Warning", info: "Note" };
  return h("div", { class: `notice ${tone}`, data: { testid: "notice" } }, h("strong", null, words[tone]), h("p", null, text));
};
