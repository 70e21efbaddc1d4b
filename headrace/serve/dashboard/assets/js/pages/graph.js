/** The project as a live drawing: what flows where, and how fast. */

import { getJson } from "../api.js";
import { h, replace } from "../dom.js";
import { drawGraph } from "../graph-drawing.js";
import { connected } from "../graph-layout.js";
import { empty, failed, loading } from "../parts/panel.js";
import { setParams } from "../router.js";

const POLL_MS = 2_000;
const NARROW = 720;
const RATE_SAMPLES = 4; // a rate is over the last eight seconds

export const graphPage = ({ main, scope, params }) => {
  const box = h("div", { class: "graph-box", tabindex: "0", role: "region", "aria-label": "Graph" }, loading());
  const input = h("input", { type: "search", placeholder: "Connected to…", "aria-label": "Filter the graph", value: params.get("filter") ?? "", data: { testid: "filter" } });
  main.append(h("div", { class: "page-head" }, h("h1", null, "Graph"), h("div", { class: "actions" }, input)), h("section", { class: "panel", "aria-label": "Graph" }, h("div", { class: "panel-body flush" }, box)));
  let found = null;
  let drawing = null;
  let drawn = "";
  const samples = [];

  const draw = () => {
    if (found === null) return;
    const vertical = box.clientWidth < NARROW;
    const shown = narrowed(found, input.value);
    const signature = JSON.stringify([vertical, vertical && box.clientWidth, shown.nodes.map((each) => [each.id, each.label]), shown.edges.map((each) => [each.from, each.to])]);
    if (signature !== drawn) {
      drawn = signature;
      drawing = shown.nodes.length > 0 ? drawGraph(shown, { vertical, room: box.clientWidth }) : null;
      replace(box, drawing?.element ?? empty(found.nodes.length === 0 ? "There is no definition yet." : "No name contains this."));
    }
    drawing?.setStates(shown.nodes);
    drawing?.setRates(ratesOf(samples));
  };

  scope.every(
    POLL_MS,
    async (signal) => {
      found = await getJson("/v1/graph", { signal });
      samples.push({ at: performance.now() / 1000, records: new Map(found.edges.map((each) => [`${each.from}\n${each.to}`, each.records])) });
      if (samples.length > RATE_SAMPLES + 1) samples.shift();
      draw();
    },
    (error) => {
      if (found === null) replace(box, failed(error));
    },
  );
  input.addEventListener("input", () => {
    setParams({ filter: input.value });
    draw();
  });
  const resize = new ResizeObserver(draw);
  resize.observe(box);
  scope.defer(() => resize.disconnect());
  return "Graph";
};

/** Only what is connected to a name that contains the text. */
const narrowed = (graph, text) => {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return graph;
  const named = graph.nodes.filter((each) => each.name.toLowerCase().includes(wanted)).map((each) => each.id);
  const kept = connected(named, graph.edges);
  return { nodes: graph.nodes.filter((each) => kept.has(each.id)), edges: graph.edges.filter((each) => kept.has(each.from) && kept.has(each.to)) };
};

/** Records a second on each edge, from the oldest sample to the newest. */
const ratesOf = (samples) => {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || first === last) return new Map();
  const rate = (records, key) => {
    const before = first.records.get(key);
    return records === null || records === undefined || before === null || before === undefined ? null : Math.max(0, (records - before) / (last.at - first.at));
  };
  return new Map([...last.records].map(([key, records]) => [key, rate(records, key)]));
};
