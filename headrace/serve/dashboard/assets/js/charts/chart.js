/** A chart of a table's rows with the controls that choose it. */

import { h, replace } from "../dom.js";
import { short } from "../format.js";
import { empty } from "../parts/panel.js";
import { Scope } from "../scope.js";
import { drawBars, drawNumbers } from "./bars.js";
import { chooseChart, possibilities, toBars, toLines } from "./choose.js";
import { createPlot } from "./plot.js";

const KINDS = { line: "Line over time", bars: "Bars", number: "Numbers", none: "No chart" };

/**
 * @param {{scope: Scope, chosen?: Partial<import("./choose.js").Choice>, onChoose: (choice: any) => void, height?: number}} options
 */
export const chartPart = ({ scope, chosen = {}, onChoose, height = 240 }) => {
  const controls = h("div", { class: "controls" });
  const body = h("div", { data: { testid: "chart" } });
  let own = { ...chosen };
  let drawn = "";
  let inner = null;
  let plot = null;
  let last = null;

  const select = (label, part, names, value, optional) => {
    const options = names.map((name) => h("option", { value: name, selected: name === value }, KINDS[name] && part === "kind" ? KINDS[name] : name));
    const change = (event) => {
      own = { ...own, [part]: event.target.value };
      onChoose(own);
      if (last) update(last.rows, last.facts);
    };
    return h("label", null, label, h("select", { data: { testid: `chart-${part}` }, on: { change } }, optional && h("option", { value: "" }, "–"), options));
  };

  const drawControls = (columns, key, choice) => {
    const { times, numbers, texts } = possibilities(columns, key);
    const names = Object.keys(KINDS).filter((kind) => kind !== "line" || times.length > 0);
    replace(
      controls,
      select("Chart", "kind", names, choice.kind),
      choice.kind === "line" && select("Time", "x", times, choice.x),
      choice.kind === "bars" && select("Name", "x", columns.map((each) => each.name), choice.x),
      ["line", "bars"].includes(choice.kind) && select("Value", "y", numbers, choice.y),
      choice.kind === "line" && texts.length > 0 && select("Split by", "by", texts, choice.by, true),
    );
  };

  const choiceFor = (columns, facts) => {
    const found = chooseChart(columns, facts);
    const names = new Set(columns.map((each) => each.name));
    const kind = own.kind in KINDS ? own.kind : found.kind;
    const { times, texts } = possibilities(columns, facts.key);
    const otherwise = { x: kind === "line" ? (found.kind === "line" ? found.x : times[0]) : (texts[0] ?? columns[0]?.name), y: found.y };
    const valid = (name) => (names.has(name) ? name : null);
    const fits = (name) => (kind === "line" && !times.includes(name) ? null : valid(name));
    const by = own.by === "" ? null : (valid(own.by) ?? (kind === "line" ? found.by : null));
    return { kind, x: fits(own.x) ?? valid(otherwise.x), y: valid(own.y) ?? otherwise.y, by: kind === "line" ? by : null };
  };

  const update = (rows, facts) => {
    last = { rows, facts };
    const choice = choiceFor(facts.columns, facts);
    const signature = JSON.stringify([choice, facts.columns]);
    if (signature !== drawn) {
      drawn = signature;
      inner?.close();
      inner = new Scope(scope);
      plot = null;
      drawControls(facts.columns, facts.key, choice);
      replace(body);
    }
    body.dataset.chart = choice.kind;
    draw(rows, facts, choice);
  };

  const draw = (rows, facts, choice) => {
    const typeOf = (name) => facts.columns.find((each) => each.name === name)?.type ?? "";
    if (choice.kind === "none" || (choice.kind !== "number" && choice.y === null)) {
      replace(body, empty(choice.kind === "none" ? "No chart suits these columns by itself; choose one above." : "There is no column of numbers to draw."));
    } else if (rows.length === 0) {
      plot = null;
      replace(body, empty("No rows yet."));
    } else if (choice.kind === "line") {
      if (plot === null) {
        plot = createPlot({ scope: inner, label: `${choice.y} by ${choice.x}`, format: short, height, testid: "chart-canvas" });
        replace(body, plot.element);
      }
      const { names, xs, columns } = toLines(rows, choice);
      plot.set(names, xs, columns);
    } else if (choice.kind === "bars") {
      drawBars(body, toBars(rows, choice), { type: typeOf(choice.y), label: `${choice.y} by ${choice.x}` });
    } else {
      const numbers = possibilities(facts.columns, facts.key).numbers;
      drawNumbers(body, numbers.slice(0, 12).map((name) => ({ label: name, value: rows[0][name], type: typeOf(name) })));
    }
  };

  return { controls, body, update };
};
