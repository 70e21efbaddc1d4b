/**
 * JSON without losing anything. Read: an integer beyond 2^53, which a BIGINT may hold, stays text.
 * Indented: every number, name and text stays as it was written.
 */

// Cheap to look for, and rarely there: only then is every value looked at.
const LONG_INTEGER = /\d{17}|9\d{15}/;

const keepDigits = (_key, value, context) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
    ? context.source
    : value;

/** @param {string} text @returns {any} */
export const parseJson = (text) => (LONG_INTEGER.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text));

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * JSON over several lines, and otherwise the very text: 12.50 stays 12.50, and a name that stands
 * twice stands twice. What is not JSON is returned as it came.
 * @param {string} text
 */
export const indentJson = (text) => {
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  const tokens = text.match(TOKEN);
  const parts = [];
  let depth = 0;
  const line = () => parts.push("\n", "  ".repeat(depth));
  tokens.forEach((token, index) => {
    const opens = token === "{" || token === "[";
    const empty = opens && "}]".includes(tokens[index + 1]);
    const closes = token === "}" || token === "]";
    if (closes) {
      depth -= 1;
      if (!"{[".includes(tokens[index - 1])) line();
    }
    parts.push(token);
    if (opens) depth += 1;
    if (token === ":") parts.push(" ");
    if (token === "," || (opens && !empty)) line();
  });
  return parts.join("");
};
