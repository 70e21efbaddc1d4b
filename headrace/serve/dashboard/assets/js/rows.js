/**
 * The rows of a view as they are now. A view of some thousand rows is followed: every change comes
 * by itself. A larger one is asked again when the commit grows, for its first rows in the order and
 * with the conditions that were chosen.
 */

import { at, getJson } from "./api.js";
import { toWhere } from "./filter.js";
import { followView } from "./follow.js";
import { live } from "./live.js";

const MAX_FOLLOWED = 5_000;
const ASKED_ROWS = 500;
const ASK_MS = 1_000;
/** Columns that the engine adds to those of the definition. */
const ADDED = ["_events", "_closed"];

/**
 * @typedef {{rows: {key: string, row: any, closed: boolean}[], columns: {name: string, type: string}[], key: string[],
 *   commit: number, watermarkUs: number | null, position: string, more: boolean, followed: boolean}} Rows
 */

/**
 * @param {{name: string, scope: import("./scope.js").Scope, stateRows: number,
 *   question: () => {filter: any, sort: {name: string, descending: boolean} | null},
 *   onRows: (rows: Rows) => void, onState: (state: string, text: string, note?: string) => void, onError: (error: Error) => void}} options
 */
export const readRows = ({ name, scope, stateRows, question, onRows, onState, onError }) => {
  let asking = null;
  const ask = (reason) => {
    onState("asked", "refreshed", `${reason}: the first ${ASKED_ROWS} are asked for whenever the commit grows.`);
    asking = askRows({ name, scope, question, onRows, onError });
  };
  if (stateRows > MAX_FOLLOWED) {
    ask(`about ${stateRows.toLocaleString("en-GB")} rows`);
  } else {
    followView({
      name,
      scope,
      maxRows: MAX_FOLLOWED * 4,
      onState,
      onGiveUp: ask,
      onRows: (fold, progress) =>
        onRows({ rows: fold.rows(), columns: fold.columns, key: fold.key, commit: progress.commit, watermarkUs: progress.watermark_us ?? null, position: progress.position, more: false, followed: true }),
    });
  }
  return {
    /** Ask again at once: the question changed. A followed view has all rows already. */
    again: () => asking?.again(),
  };
};

const askRows = ({ name, scope, question, onRows, onError }) => {
  let seen = "";
  const read = async (signal) => {
    const { filter, sort } = question();
    const params = new URLSearchParams(toWhere(filter).map((each) => ["where", each]));
    params.set("limit", String(ASKED_ROWS));
    if (sort) params.set("order", orderText(sort));
    const asked = `${params}@${live.status?.commit}`;
    if (asked === seen) return;
    seen = asked;
    let found;
    try {
      found = await getJson(`${at`/v1/views/${name}`}?${params}`, { signal });
    } catch (error) {
      if (seen === asked) seen = ""; // so that it is asked again
      throw error;
    }
    if (seen !== asked) return; // the question changed meanwhile
    const columns = found.columns.filter((each) => !ADDED.includes(each.name));
    const keys = keysOf(found.rows, found.key, columns);
    const rows = found.rows.map((row, index) => ({ key: keys[index], row, closed: row._closed === true }));
    onRows({ rows, columns, key: found.key, commit: found.commit, watermarkUs: found.watermark_us, position: found.position, more: found.more, followed: false });
  };
  scope.every(ASK_MS, read, onError);
  return { again: () => scope.run(read, onError) };
};

/** An order as the parameter `order=` of the API: a name with a comma stands in double quotes. */
export const orderText = ({ name, descending }) => {
  const text = `${descending ? "-" : ""}${name}`;
  return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

/**
 * A text for each row that tells it from the others: its key, where every part is a column and no
 * two rows share it, else its place. A view need not select what it groups by, and without GROUP BY
 * its key is partition and offset, which are no columns.
 */
export const keysOf = (rows, key, columns) => {
  const names = new Set(columns.map((each) => each.name));
  if (key.length > 0 && key.every((each) => names.has(each))) {
    const keys = rows.map((row) => JSON.stringify(key.map((each) => row[each])));
    if (new Set(keys).size === keys.length) return keys;
  }
  return rows.map((_, index) => String(index));
};
