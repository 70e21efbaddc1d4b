/** The rows of a view and a chart of them, live. */

import { h, replace, setText } from "../dom.js";
import { count, counted, duration, moment, valueText } from "../format.js";
import { chartPart } from "../charts/chart.js";
import { parseFilter, rowTest } from "../filter.js";
import { failed, loading, panel } from "../parts/panel.js";
import { updateTag } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { setParams } from "../router.js";
import { readRows } from "../rows.js";
import { kindOf } from "../types.js";

const DRAW_MS = 250;

/** How a followed view's connection is shown. */
const STATES = { live: "live", connecting: "idle", reconnecting: "stale", unknown: "failed", asked: "idle" };

/**
 * @param {{name: string, scope: import("../scope.js").Scope, params: URLSearchParams, definition: any, stateRows: number}} options
 * @returns {HTMLElement[]}
 */
export const rowsPanels = ({ name, scope, params, definition, stateRows }) => {
  const windowStart = definition?.window?.start_column ?? null;
  const chart = chartPart({ scope, chosen: chosenChart(params), onChoose: (choice) => setParams({ chart: choice.kind, x: choice.x, y: choice.y, by: choice.by === "" ? "-" : choice.by }) });
  const input = h("input", { type: "search", placeholder: "Filter: country=NO n>=5 or any text", "aria-label": "Filter rows", value: params.get("filter") ?? "", data: { testid: "filter" } });
  const connection = h("span", { class: "tag", data: { testid: "connection" } });
  const note = h("span", { data: { testid: "rows-commit" } });
  const problem = h("span", { role: "status" });
  const explained = h("span", { class: "soft small" });
  // The filter is there before the first answer: it may be the reason why there is none.
  const bar = h("div", { class: "table-bar" }, input, h("div", { class: "end" }, problem, note));
  const place = h("div", null, loading("Waiting for the rows…"));
  const rowsPanel = panel({ title: "Rows", flush: true, testid: "rows-panel", note: explained, actions: [connection] }, bar, place);
  const charted = h("span");
  const chartPanel = panel({ title: "Chart", note: charted, actions: [chart.controls] }, chart.body);
  replace(chart.body, loading());

  let columns = definition?.columns ?? [];
  let sort = readSort(params);
  const usedSort = () => [sort, defaultSort(columns, definition?.key ?? [], windowStart)].find((each) => each !== null && canSort(each.name, columns)) ?? null;
  let last = null;
  let table = null;
  let drawn = "";

  const source = readRows({
    name,
    scope,
    stateRows,
    question: () => ({ filter: parseFilter(input.value, columns), sort: usedSort() }),
    onRows: (rows) => {
      last = rows;
      setText(problem, "");
      drawSoon();
    },
    onState: (state, text, why = "") => {
      updateTag(connection, STATES[state] ?? "idle", text);
      setText(explained, why);
    },
    onError: (error) => {
      if (last === null && place.textContent !== error.message) replace(place, failed(error));
      if (last !== null) setText(problem, error.message);
    },
  });

  const makeTable = () => {
    table = new Table({
      caption: `Rows of ${name}`,
      testid: "rows",
      keyOf: (row) => row.key,
      rowClass: (row) => (row.closed ? "closed" : ""),
      flash: true,
      tall: true,
      ties: true,
      sorted: !last.followed,
      sort: usedSort(),
      onSort: (next) => {
        sort = next;
        setParams({ sort: `${next.descending ? "-" : ""}${next.name}` });
        source.again();
      },
      columns: tableColumns(columns, windowStart !== null),
    });
    replace(place, table.element);
  };

  const draw = () => {
    const signature = JSON.stringify([last.columns, last.followed]);
    if (signature !== drawn) {
      drawn = signature;
      columns = last.columns;
      makeTable();
    }
    setText(charted, last.followed ? "" : `of the ${counted(last.rows.length, "row")} below`);
    const filter = parseFilter(input.value, columns);
    const passes = rowTest(filter, { asked: !last.followed });
    const found = last.rows.filter((each) => passes(each.row));
    table.update(found, { total: last.rows.length, note: last.more ? "there are more; narrow the filter" : found.length === 0 ? (last.rows.length === 0 ? "no rows yet" : "none passes the filter") : "" });
    table.table.dataset.commit = String(last.commit);
    setText(note, `commit ${count(last.commit)}${last.watermarkUs === null ? "" : `, closed before ${moment(last.watermarkUs)}`}`);
    chart.update(found.map((each) => each.row), { columns, key: last.key, windowStart, rows: last.rows.length });
  };

  // An engine may commit many times a second; nobody reads faster than this.
  let soon = 0;
  let drawnAt = -Infinity;
  const drawSoon = () => {
    if (soon !== 0) return;
    soon = setTimeout(() => {
      soon = 0;
      drawnAt = performance.now();
      if (!scope.closed) draw();
    }, Math.max(0, drawnAt + DRAW_MS - performance.now()));
  };
  scope.defer(() => clearTimeout(soon));

  let typing = 0;
  scope.defer(() => clearTimeout(typing)); // it would write the filter into the next page's address
  input.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      setParams({ filter: input.value });
      source.again();
      if (last !== null) draw();
    }, 150);
  });
  return [chartPanel.element, rowsPanel.element];
};

const chosenChart = (params) => ({ kind: params.get("chart") ?? undefined, x: params.get("x") ?? undefined, y: params.get("y") ?? undefined, by: params.get("by") === "-" ? "" : (params.get("by") ?? undefined) });

const readSort = (params) => {
  const text = params.get("sort");
  return text ? { name: text.replace(/^-/, ""), descending: text.startsWith("-") } : null;
};

/** The newest window first, or by the key, so that rows stand still while their values change. */
const defaultSort = (columns, key, windowStart) => {
  if (windowStart) return { name: windowStart, descending: true };
  const first = key.find((name) => canSort(name, columns));
  return first ? { name: first, descending: false } : null;
};

/** Whether rows can be sorted by a name: parts of a key need not be columns, and a nested value has no order. */
const canSort = (name, columns) => name === "_closed" || columns.some((each) => each.name === name && kindOf(each.type) !== "nested");

/** Columns of values as a table shows them: those of a view, or of an answer. */
export const valueColumns = (columns, valueOf = (row, name) => row.row[name]) =>
  columns.map(({ name, type }, index) => {
    const kind = kindOf(type);
    return { name: columns.findIndex((each) => each.name === name) === index ? name : `${name} (${index + 1})`, label: name, type, kind, mono: kind === "nested" || kind === "bytes", sortable: kind !== "nested", value: (row) => valueOf(row, name, index), text: (row) => valueText(valueOf(row, name, index), type) };
  });

const tableColumns = (columns, windowed) => [
  ...valueColumns(columns),
  ...(windowed ? [{ name: "_closed", label: "Row", text: (row) => (row.closed ? "closed" : "open"), value: (row) => String(row.closed) }] : []),
];

/** A window in words. */
export const windowText = (window) => `${window.kind} window of ${duration(window.size_us)}${window.slide_us && window.slide_us !== window.size_us ? ` every ${duration(window.slide_us)}` : ""}`;
