/**
 * What kind of values a column holds, from the name of its type. Definitions name types as Spark
 * does, answers of SQL as Arrow does.
 * @typedef {"number" | "time" | "date" | "boolean" | "bytes" | "nested" | "text"} Kind
 */

const PATTERNS = [
  ["nested", /^(array|map|struct|list|large_list|fixed_size_list|row|json)\b|\[\]$/i],
  ["time", /^timestamp/i],
  ["date", /^date/i],
  ["boolean", /^bool/i],
  ["bytes", /^(binary|blob|large_binary|fixed_size_binary)/i],
  ["number", /^(u?(tiny|small|big|huge)?int(eger)?\d*|byte|short|long|decimal|numeric|float|double|real|half)/i],
];

/** @param {string} type @returns {Kind} */
export const kindOf = (type) => {
  const name = String(type ?? "");
  if (/^interval/i.test(name)) return "text";
  return PATTERNS.find(([, pattern]) => pattern.test(name))?.[0] ?? "text";
};

/** A value of a column of numbers as a number: decimals and very large integers come as text. */
export const toNumber = (value) => {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || value === "") return null;
  const number = Number(value === "inf" ? "Infinity" : value === "-inf" ? "-Infinity" : value);
  return Number.isFinite(number) ? number : null;
};

/** A TIMESTAMP or DATE as seconds since 1970, for the axis of a plot. */
export const toSeconds = (value) => {
  const at = typeof value === "string" ? Date.parse(value) : NaN;
  return Number.isNaN(at) ? null : at / 1000;
};

/** Compare two values of a column; NULL comes last whichever way the column is sorted. */
export const compare = (kind, left, right, descending) => {
  const missing = Number(left === null || left === undefined) - Number(right === null || right === undefined);
  if (missing !== 0 || left === null || left === undefined) return missing;
  const order = kind === "number" ? compareNumbers(left, right) : compareTexts(plain(left), plain(right));
  return descending ? -order : order;
};

const plain = (value) => (typeof value === "object" ? JSON.stringify(value) : String(value));

const compareTexts = (left, right) => (left < right ? -1 : left > right ? 1 : 0);

const compareNumbers = (left, right) => {
  const order = (toNumber(left) ?? 0) - (toNumber(right) ?? 0);
  // Two integers beyond 2^53 may be equal as numbers and different as text.
  if (order !== 0 || typeof left !== "string" || typeof right !== "string") return order;
  return left.length - right.length || compareTexts(left, right);
};
