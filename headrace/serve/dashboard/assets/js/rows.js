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
    if (sort) params.set("order", `${sort.descending ? "-" : ""}${sort.name}`);
    const asked = `${params}@${live.status?.commit}`;
    if (asked === seen) return;
    const found = await getJson(`${at`/v1/views/${name}`}?${params}`, { signal });
    seen = asked;
    const keyOf = (row, index) => (found.key.length > 0 ? JSON.stringify(found.key.map((each) => row[each])) : String(index));
    const rows = found.rows.map((row, index) => {
      const { _closed: closed, _events: _ignored, ...own } = row;
      return { key: keyOf(row, index), row: own, closed: closed === true };
    });
    onRows({ rows, columns: found.columns, key: found.key, commit: found.commit, watermarkUs: found.watermark_us, position: found.position, more: found.more, followed: false });
  };
  scope.every(ASK_MS, read, onError);
  return { again: () => scope.run(read, onError) };
};
