/**
 * Read JSON without losing digits: an integer beyond 2^53, which a BIGINT may hold, stays text.
 */

// Cheap to look for, and rarely there: only then is every value looked at.
const LONG_INTEGER = /\d{17}|9\d{15}/;

const keepDigits = (_key, value, context) =>
  typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "")
    ? context.source
    : value;

/** @param {string} text */
export const parseJson = (text) => (LONG_INTEGER.test(text) ? JSON.parse(text, keepDigits) : JSON.parse(text));
