/**
 * What is typed above a table: conditions such as `country=NO n>=5`, and words that some column
 * contains. Conditions can also be asked of the engine, which gives the same answer.
 */

import { valueText } from "./format.js";
import { compareRanks, kindOf, rankOf } from "./types.js";

const PART = /(?:[^\s']|'(?:[^']|'')*')+/g;
const CONDITION = /^(.+?)(>=|<=|!=|=|<|>)(.*)$/;

/**
 * @typedef {{conditions: {name: string, type: string, operator: string, value: string}[], words: string[],
 *   columns: {name: string, type: string}[]}} Filter
 * @param {string} text
 * @param {{name: string, type: string}[]} columns
 * @returns {Filter}
 */
export const parseFilter = (text, columns) => {
  const conditions = [];
  const words = [];
  for (const part of text.match(PART) ?? []) {
    const [, name, operator, value] = CONDITION.exec(part) ?? [];
    const column = columns.find((each) => each.name === name);
    if (column) conditions.push({ name, type: column.type, operator, value });
    else words.push(unquoted(part).toLowerCase());
  }
  return { conditions, words, columns };
};

const unquoted = (text) => (/^'.*'$/s.test(text) && text.length > 1 ? text.slice(1, -1).replaceAll("''", "'") : text);

/** A test of rows. `asked`: the engine has tested the conditions already, and only words are left. */
export const rowTest = ({ conditions, words, columns }, { asked = false } = {}) => {
  const tests = asked ? [] : conditions.map(conditionTest);
  return (row) => tests.every((test) => test(row)) && words.every((word) => columns.some(({ name, type }) => contains(row[name], type, word)));
};

/** A word is looked for in the value as it is stored and as it is shown: 12345 and 12,345. */
const contains = (value, type, word) => [value ?? "null", valueText(value ?? null, type) ?? ""].some((each) => (typeof each === "object" ? JSON.stringify(each) : String(each)).toLowerCase().includes(word));

/** NULL passes no comparison, and neither does anything with what is no value of the column. */
const conditionTest = ({ name, type, operator, value }) => {
  const missing = (row) => row[name] === null || row[name] === undefined;
  if (value.toLowerCase() === "null") return (row) => (operator === "=" ? missing(row) : operator === "!=" && !missing(row));
  const kind = kindOf(type);
  const wanted = kind === "nested" ? null : rankOf(kind, unquoted(value));
  return (row) => {
    const found = missing(row) ? null : rankOf(kind, row[name]);
    return found !== null && wanted !== null && ORDERS[operator](compareRanks(found, wanted));
  };
};

const ORDERS = {
  "=": (order) => order === 0,
  "!=": (order) => order !== 0,
  "<": (order) => order < 0,
  "<=": (order) => order <= 0,
  ">": (order) => order > 0,
  ">=": (order) => order >= 0,
};

/** Conditions as the parameters `where=` of the API. */
export const toWhere = ({ conditions }) => conditions.map((each) => `${each.name}${each.operator}${each.value}`);
