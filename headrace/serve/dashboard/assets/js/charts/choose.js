/**
 * Which chart suits a table, from its columns: a time series where a key is a time, bars where
 * there is a text and a number, large numbers for a single row. Others can be chosen.
 */

import { kindOf, toNumber, toSeconds } from "../types.js";

const MAX_SERIES = 8;
const MAX_POINTS = 600;

/** @typedef {{kind: "line" | "bars" | "number" | "none", x: string | null, y: string | null, by: string | null}} Choice */

const namesOf = (columns, ...kinds) => columns.filter((each) => kinds.includes(kindOf(each.type))).map((each) => each.name);

/** What can be chosen for each part of a chart. */
export const possibilities = (columns, key) => {
  const inKey = (name) => key.includes(name);
  const numbers = namesOf(columns, "number");
  const values = numbers.filter((name) => !inKey(name));
  return {
    times: namesOf(columns, "time", "date"),
    numbers: values.length > 0 ? values : numbers,
    texts: columns.filter((each) => ["text", "boolean"].includes(kindOf(each.type)) || (kindOf(each.type) === "number" && inKey(each.name))).map((each) => each.name),
  };
};

/**
 * @param {{name: string, type: string}[]} columns
 * @param {{key?: string[], windowStart?: string | null, rows?: number, data?: any[]}} facts
 * @returns {Choice}
 */
export const chooseChart = (columns, { key = [], windowStart = null, rows = 2, data = [] }) => {
  const { times, numbers, texts } = possibilities(columns, key);
  const y = numbers[0] ?? null;
  const time = [windowStart, ...times.filter((name) => key.includes(name)), ...(key.length === 0 ? times : [])].find((name) => times.includes(name));
  const text = texts.find((name) => key.includes(name)) ?? texts[0] ?? null;
  if (numbers.length > 0 && rows <= 1 && (key.length === 0 || !time)) return { kind: "number", x: null, y, by: null };
  if (y !== null && time) return { kind: "line", x: time, y, by: texts.find((name) => key.includes(name)) ?? splitOf(data, time, texts) };
  if (y !== null && text !== null) return { kind: "bars", x: text, y, by: null };
  return { kind: "none", x: null, y, by: null };
};

/** Where a time stands in several rows of an answer, the first text tells its lines apart. */
const splitOf = (data, time, texts) => (new Set(data.map((row) => row[time])).size < data.length ? (texts[0] ?? null) : null);

/**
 * Rows as the lines of a plot: one for each value of `by`, the largest eight by their sum.
 * @param {any[]} rows objects
 */
export const toLines = (rows, { x, y, by }) => {
  const groups = new Map();
  for (const row of rows) {
    const at = toSeconds(row[x]);
    const value = toNumber(row[y]);
    if (at === null || value === null) continue;
    const name = by === null ? y : textOf(row[by]);
    if (!groups.has(name)) groups.set(name, { sum: 0, points: new Map() });
    const group = groups.get(name);
    group.sum += Math.abs(value);
    group.points.set(at, (group.points.get(at) ?? 0) + value);
  }
  const chosen = [...groups].sort(([, left], [, right]) => right.sum - left.sum).slice(0, MAX_SERIES).sort(([left], [right]) => (left < right ? -1 : 1));
  const xs = [...new Set(chosen.flatMap(([, group]) => [...group.points.keys()]))].sort((left, right) => left - right).slice(-MAX_POINTS);
  return {
    names: chosen.map(([name]) => name),
    xs,
    columns: chosen.map(([, group]) => xs.map((at) => group.points.get(at) ?? null)),
    left: groups.size - chosen.length,
  };
};

/** Rows as bars: the values of equal names are added up. */
export const toBars = (rows, { x, y }) => {
  const sums = new Map();
  for (const row of rows) {
    const value = toNumber(row[y]);
    if (value === null) continue;
    const name = row[x] === null || row[x] === undefined ? null : textOf(row[x]);
    // A single value keeps its text, and so all of its digits.
    sums.set(name, sums.has(name) ? toNumber(sums.get(name)) + value : row[y]);
  }
  return [...sums].map(([name, value]) => ({ name, value }));
};

const textOf = (value) => (value === null || value === undefined ? "NULL" : typeof value === "object" ? JSON.stringify(value) : String(value));
