/**
 * What is typed above a table: conditions such as `country=NO n>=5`, and words that some column
 * contains. Conditions can also be asked of the engine.
 */

import { kindOf, toNumber } from "./types.js";

const PART = /(?:[^\s']|'(?:[^']|'')*')+/g;
const CONDITION = /^(.+?)(>=|<=|!=|=|<|>)(.*)$/;

/**
 * @param {string} text
 * @param {{name: string, type: string}[]} columns
 * @returns {{conditions: {name: string, type: string, operator: string, value: string}[], words: string[]}}
 */
export const parseFilter = (text, columns) => {
  const conditions = [];
  const words = [];
  for (const part of text.match(PART) ?? []) {
    const [, name, operator, value] = CONDITION.exec(part) ?? [];
    const column = columns.find((each) => each.name === name);
    if (column) conditions.push({ name, type: column.type, operator, value });
    else words.push(part.toLowerCase());
  }
  return { conditions, words };
};

/** Whether a row passes. */
export const passes = ({ conditions, words }, row) =>
  conditions.every((each) => holds(each, row[each.name])) && words.every((word) => Object.values(row).some((value) => contains(value, word)));

const contains = (value, word) => (value === null ? "null" : typeof value === "object" ? JSON.stringify(value) : String(value)).toLowerCase().includes(word);

const holds = ({ type, operator, value }, found) => {
  const missing = found === null || found === undefined;
  if (value.toLowerCase() === "null") return operator === "=" ? missing : operator === "!=" ? !missing : false;
  if (missing) return false;
  const wanted = value.startsWith("'") && value.endsWith("'") ? value.slice(1, -1).replaceAll("''", "'") : value;
  const numbers = kindOf(type) === "number";
  const left = numbers ? toNumber(found) : String(found);
  const right = numbers ? toNumber(wanted) : wanted;
  if (numbers && right === null) return false;
  const orders = { "=": left === right, "!=": left !== right, "<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right };
  return orders[operator];
};

/** Conditions as the parameters `where=` of the API. */
export const toWhere = ({ conditions }) => conditions.map((each) => `${each.name}${each.operator}${each.value}`);
