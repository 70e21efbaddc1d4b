/**
 * Which chart suits a table, from its columns: a time series where a key is a time, bars where
 * there is a text and a number, large numbers for a single row. Others can be chosen.
 */

import { valueText } from "../format.js";
import { kindOf, toNumber, toSeconds } from "../types.js";

export const MAX_LINES = 8;
export const MAX_POINTS = 600;

/**
 * `x` is the time of a line. `names` are the columns that name a line or a bar: all parts of the
 * key, unless somebody chose one, because what two rows count or average cannot be told from a sum.
 * @typedef {{kind: "line" | "bars" | "number" | "none", x: string | null, y: string | null, names: string[]}} Choice
 */

const isTime = (column) => ["time", "date"].includes(kindOf(column.type));

/** What can be chosen for each part of a chart. */
export const possibilities = (columns, key) => {
  const inKey = (name) => key.includes(name);
  const named = (test) => columns.filter(test).map((each) => each.name);
  const numbers = named((each) => kindOf(each.type) === "number");
  const values = numbers.filter((name) => !inKey(name));
  return {
    times: named(isTime),
    numbers: values.length > 0 ? values : numbers,
    texts: named((each) => ["text", "boolean"].includes(kindOf(each.type)) || (kindOf(each.type) === "number" && inKey(each.name))),
  };
};

/**
 * The chart of a table, as far as nobody chose: `own` is what was chosen.
 * @param {{name: string, type: string}[]} columns
 * @param {{key?: string[], windowStart?: string | null, rows?: number, data?: any[]}} facts
 * @param {{kind?: string, x?: string, y?: string, by?: string}} own
 * @returns {Choice}
 */
export const chooseChart = (columns, { key = [], windowStart = null, rows = 2, data = [] }, own = {}) => {
  const { times, numbers, texts } = possibilities(columns, key);
  const known = (name) => (columns.some((each) => each.name === name) ? name : null);
  const time = [windowStart, ...times.filter((name) => key.includes(name)), ...(key.length === 0 ? times : [])].find((name) => times.includes(name)) ?? null;
  const y = known(own.y) ?? numbers[0] ?? null;
  const kind = ["line", "bars", "number", "none"].includes(own.kind) ? own.kind : kindFor({ y, time, texts, single: rows <= 1 && (key.length === 0 || time === null) });
  if (kind === "line") {
    const x = times.includes(own.x) ? own.x : (time ?? times[0] ?? null);
    const otherwise = key.length > 0 ? columns.filter((each) => key.includes(each.name) && !isTime(each)).map((each) => each.name) : fewestNames(data, [x], texts);
    return { kind, x, y, names: own.by === "" ? [] : known(own.by) ? [own.by] : otherwise };
  }
  if (kind === "bars") {
    const parts = key.filter(known);
    const otherwise = parts.length > 0 ? parts : fewestNames(data, [], texts.length > 0 ? texts : columns.slice(0, 1).map((each) => each.name), 1);
    return { kind, x: null, y, names: known(own.x) ? [own.x] : otherwise };
  }
  return { kind, x: null, y, names: [] };
};

const kindFor = ({ y, time, texts, single }) => {
  if (y === null) return "none";
  if (single) return "number";
  return time !== null ? "line" : texts.length > 0 ? "bars" : "none";
};

/** The first of the names that tell all rows apart, at least so many; only the first if all do not. */
const fewestNames = (data, given, names, atLeast = 0) => {
  for (let length = atLeast; length <= names.length; length += 1) {
    const used = [...given, ...names.slice(0, length)];
    if (new Set(data.map((row) => JSON.stringify(used.map((name) => row[name])))).size === data.length) return names.slice(0, length);
  }
  return names.slice(0, 1);
};

/**
 * Rows as the lines of a plot: one for each name, the largest eight by their sum. `combined`: some
 * points are the sum of several rows.
 * @param {any[]} rows objects
 * @param {Choice} choice
 */
export const toLines = (rows, { x, y, names }, columns) => {
  const groups = new Map();
  let combined = false;
  for (const row of rows) {
    const at = toSeconds(row[x]);
    const value = toNumber(row[y]);
    if (at === null || value === null) continue;
    const id = JSON.stringify(names.map((name) => row[name] ?? null));
    if (!groups.has(id)) groups.set(id, { name: names.length === 0 ? y : nameText(row, names, columns), sum: 0, points: new Map() });
    const group = groups.get(id);
    group.sum += Math.abs(value);
    combined ||= group.points.has(at);
    group.points.set(at, (group.points.get(at) ?? 0) + value);
  }
  const largest = [...groups.values()].sort((left, right) => right.sum - left.sum).slice(0, MAX_LINES);
  const chosen = largest.sort((left, right) => (left.name < right.name ? -1 : 1));
  const times = [...new Set(chosen.flatMap((group) => [...group.points.keys()]))].sort((left, right) => left - right);
  const xs = times.slice(-MAX_POINTS);
  return {
    names: chosen.map((group) => group.name),
    xs,
    columns: chosen.map((group) => xs.map((at) => group.points.get(at) ?? null)),
    lines: groups.size,
    times: times.length,
    combined,
  };
};

/** Rows as bars. `combined`: some are the sum of several rows. */
export const toBars = (rows, { y, names }, columns) => {
  const bars = new Map();
  let combined = false;
  for (const row of rows) {
    const value = toNumber(row[y]);
    if (value === null) continue;
    const id = JSON.stringify(names.map((name) => row[name] ?? null));
    const bar = bars.get(id);
    combined ||= bar !== undefined;
    // A single value keeps its text, and so all of its digits.
    if (bar) bar.value = toNumber(bar.value) + value;
    else bars.set(id, { name: names.every((name) => (row[name] ?? null) === null) ? null : nameText(row, names, columns), value: row[y] });
  }
  return { entries: [...bars.values()], combined };
};

const nameText = (row, names, columns) => names.map((name) => valueText(row[name], columns.find((each) => each.name === name)?.type) ?? "NULL").join(" · ");
