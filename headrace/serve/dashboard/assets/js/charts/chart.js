/** A chart of a table's rows with the controls that choose it. */

import { append, h, replace, setText } from "../dom.js";
import { count, short } from "../format.js";
import { empty } from "../parts/panel.js";
import { Scope } from "../scope.js";
import { drawBars, drawNumbers } from "./bars.js";
import { MAX_POINTS, chooseChart, possibilities, toBars, toLines } from "./choose.js";
import { createPlot } from "./plot.js";

const KINDS = { line: "Line over time", bars: "Bars", number: "Numbers", none: "No chart" };
const SEVERAL = "*"; // the columns that name a row, where they are several and none was chosen

/**
 * @param {{scope: Scope, chosen?: {kind?: string, x?: string, y?: string, by?: string}, onChoose: (choice: any) => void, height?: number}} options
 */
export const chartPart = ({ scope, chosen = {}, onChoose, height = 240 }) => {
  const controls = h("div", { class: "controls" });
  const body = h("div", { data: { testid: "chart" } });
  let own = { ...chosen };
  let drawn = "";
  let inner = null;
  let plot = null;
  let remarks = null;
  let last = null;

  const select = (label, part, options, value) => {
    const change = (event) => {
      own = { ...own, [part]: event.target.value };
      onChoose(own);
      if (last) update(last.rows, last.facts);
    };
    return h("label", null, label, h("select", { data: { testid: `chart-${part}` }, on: { change } }, options.map(([name, text = name]) => h("option", { value: name, selected: name === value }, text))));
  };

  const drawControls = (facts, choice) => {
    const { columns, key } = facts;
    const { times, numbers, texts } = possibilities(columns, key);
    const focused = controls.contains(document.activeElement) ? document.activeElement.dataset.testid : null;
    const each = (found) => found.map((name) => [name]);
    // Several columns that name a row together are an entry of their own.
    const { names } = chooseChart(columns, facts, { ...own, kind: choice.kind, by: SEVERAL, x: choice.kind === "bars" ? SEVERAL : own.x });
    const several = names.length > 1 ? [[SEVERAL, names.join(", ")]] : [];
    const chosen = choice.names.length > 1 ? SEVERAL : (choice.names[0] ?? "");
    replace(
      controls,
      select("Chart", "kind", Object.entries(KINDS).filter(([kind]) => kind !== "line" || times.length > 0), choice.kind),
      choice.kind === "line" && select("Time", "x", each(times), choice.x),
      choice.kind === "bars" && select("Name", "x", [...several, ...each(columns.map((column) => column.name))], chosen),
      ["line", "bars"].includes(choice.kind) && select("Value", "y", each(numbers), choice.y),
      choice.kind === "line" && texts.length > 0 && select("Split by", "by", [["", "–"], ...several, ...each(texts)], chosen),
    );
    if (focused) controls.querySelector(`[data-testid="${focused}"]`)?.focus();
  };

  /** Begin an empty picture; the plot that was there ends. */
  const clear = () => {
    inner?.close();
    inner = new Scope(scope);
    plot = null;
    replace(body);
  };

  const update = (rows, facts) => {
    last = { rows, facts };
    const choice = chooseChart(facts.columns, facts, own);
    const signature = JSON.stringify([choice, facts.columns]);
    if (signature !== drawn) {
      drawn = signature;
      clear();
      drawControls(facts, choice);
    }
    body.dataset.chart = choice.kind;
    draw(rows, facts, choice);
  };

  const draw = (rows, facts, choice) => {
    const typeOf = (name) => facts.columns.find((each) => each.name === name)?.type ?? "";
    if (choice.kind === "none" || (choice.kind !== "number" && choice.y === null)) {
      replace(body, empty(choice.kind === "none" ? "No chart suits these columns by itself; choose one above." : "There is no column of numbers to draw."));
    } else if (rows.length === 0) {
      if (plot !== null) clear();
      replace(body, empty("No rows yet."));
    } else if (choice.kind === "line") {
      drawLines(toLines(rows, choice, facts.columns), choice);
    } else if (choice.kind === "bars") {
      const { entries, combined } = toBars(rows, choice, facts.columns);
      drawBars(body, entries, { type: typeOf(choice.y), label: `${combined ? "sum of " : ""}${choice.y} by ${choice.names.join(", ")}` });
      if (combined) append(body, [chartNote(`Sum of ${choice.y}: rows with the same name are added up.`)]);
    } else {
      const numbers = possibilities(facts.columns, facts.key).numbers;
      drawNumbers(body, numbers.slice(0, 12).map((name) => ({ label: name, value: rows[0][name], type: typeOf(name) })));
    }
  };

  const drawLines = ({ names, xs, columns, lines, times, combined }, { x, y }) => {
    if (plot === null) {
      plot = createPlot({ scope: inner, label: `${y} by ${x}`, format: short, height, testid: "chart-canvas" });
      remarks = chartNote();
      replace(body, plot.element, remarks);
    }
    plot.set(names, xs, columns);
    const said = [
      combined && `Sum of ${y}: rows with the same time and name are added up.`,
      lines > names.length && `The ${names.length} largest of ${count(lines)} lines.`,
      times > xs.length && `The last ${MAX_POINTS} of ${count(times)} times.`,
    ];
    setText(remarks, said.filter(Boolean).join(" "));
    remarks.hidden = remarks.textContent === "";
  };

  return { controls, body, update };
};

const chartNote = (text) => h("p", { class: "soft small", data: { testid: "chart-note" } }, text);
