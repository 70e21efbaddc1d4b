/** The answer to a query, as a table or as a chart. */

import { h, replace } from "../dom.js";
import { chartPart } from "../charts/chart.js";
import { empty, failed, panel } from "../parts/panel.js";
import { Table } from "../parts/table.js";
import { setParams } from "../router.js";
import { valueColumns } from "./view-rows.js";

/** @param {{scope: import("../scope.js").Scope, params: URLSearchParams}} options */
export const answerPart = ({ scope, params }) => {
  let shape = "";
  let table = null;
  let last = null;
  let places = new Map();
  let asChart = params.get("as") === "chart";
  const chart = chartPart({
    scope,
    chosen: { kind: params.get("chart") ?? undefined, x: params.get("x") ?? undefined, y: params.get("y") ?? undefined, by: params.get("by") ?? undefined },
    onChoose: (choice) => setParams({ chart: choice.kind, x: choice.x, y: choice.y, by: choice.by }),
  });
  const buttons = ["Table", "Chart"].map((name) => h("button", { type: "button", data: { testid: `as-${name.toLowerCase()}` } }, name));
  const { element, body } = panel({ title: "Answer", flush: true, testid: "answer", actions: [h("div", { class: "segmented", role: "group", "aria-label": "How the answer is shown" }, buttons)] }, empty("Run a query to see its answer here."));
  const chartBox = h("div", { class: "panel-body stack" }, chart.controls, chart.body);

  for (const button of buttons) {
    button.addEventListener("click", () => {
      asChart = button.textContent === "Chart";
      setParams({ as: asChart ? "chart" : "" });
      draw();
    });
  }

  const draw = () => {
    for (const button of buttons) button.setAttribute("aria-pressed", String((button.textContent === "Chart") === asChart));
    if (last === null) return;
    const shown = asChart ? chartBox : last.columns.length === 0 ? empty("The answer has no columns.") : table.element;
    if (body.firstChild !== shown) replace(body, shown);
    if (asChart) drawChart();
    else table.update(last.rows, { note: last.truncated ? "cut off; add LIMIT, or aggregate" : "" });
  };
  const drawChart = () => {
    const data = last.rows.map((row) => Object.fromEntries(last.columns.map((each, index) => [each.name, row[index]])));
    chart.update(data, { columns: last.columns, key: [], windowStart: null, rows: data.length, data });
  };
  draw();

  return {
    element,
    show: (found) => {
      last = found;
      places = new Map(found.rows.map((row, index) => [row, String(index)]));
      const next = JSON.stringify(found.columns);
      if (next !== shape || table === null) {
        shape = next;
        // Rows of an answer have no key: the same place is the same row, so what changed is seen.
        table = new Table({ caption: "Answer", testid: "answer-rows", keyOf: (row) => places.get(row), tall: true, flash: true, columns: valueColumns(found.columns, (row, _name, index) => row[index]) });
      }
      draw();
    },
    fail: (error) => {
      last = null;
      table = null;
      replace(body, failed(error));
    },
  };
};
