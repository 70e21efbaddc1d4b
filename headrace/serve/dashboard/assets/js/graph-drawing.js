/** A graph as SVG: nodes with a shape for each kind, edges with their rates. */

import { s, setAttribute, setText } from "./dom.js";
import { short } from "./format.js";
import { layerGraph } from "./graph-layout.js";
import { toneOf } from "./parts/state.js";
import { hrefOf } from "./router.js";

const NODE = { width: 172, height: 50 };
const BEND = 14;
const GAP = 18;
const BETWEEN = 92; // room for a rate between two layers
const LEAST = { width: 134, between: 72 };
const MARGIN = 24;
const MOST_MOVING = 60; // edges; more of them moving would keep a core busy
const TALL = 12; // nodes in a layer; others would be centred out of sight beside a taller one

/** Which page a node opens. An operator belongs to the stream or view that it works for. */
const hrefOfNode = (node) => hrefOf(node.kind === "operator" ? "stream" : node.kind, node.kind === "operator" ? (node.stream ?? node.name.split(" ").at(-1)) : node.name);

/**
 * Draw it. `vertical`: from top to bottom, in at most `columns` beside each other.
 * @returns {{element: SVGElement, setRates: (rates: Map<string, number | null>) => void, setStates: (nodes: any[]) => void}}
 */
export const drawGraph = ({ nodes, edges }, { vertical, room }) => {
  const { layers, routes } = layerGraph(nodes.map((node) => node.id), edges);
  const { places, width, height } = vertical ? placeDown(layers, room) : placeAcross(layers, room);
  const picture = s("svg", { class: "graph", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Graph of topics, streams, operators, views and sinks", "data-testid": "graph" });
  picture.append(s("defs", null, s("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, s("path", { class: "arrow", d: "M0 0L8 4L0 8z" }))));
  const lines = new Map();
  const above = s("g");
  const arrived = new Map(); // how many edges have a label at a node already
  for (const edge of edges) {
    const key = `${edge.from}\n${edge.to}`;
    const points = (routes.get(key) ?? [edge.from, edge.to]).map((id) => places.get(id));
    if (points.some((each) => each === undefined)) continue;
    const line = s("path", { class: "edge", d: pathOf(points, vertical), "marker-end": "url(#arrow)", "data-testid": "edge" });
    const before = arrived.get(edge.to) ?? 0;
    arrived.set(edge.to, before + 1);
    const middle = labelPlace(points, vertical, before);
    const rate = s("text", { class: "rate", x: middle.x, y: middle.y, "data-testid": "edge-rate", "data-from": edge.from, "data-to": edge.to });
    lines.set(key, { line, rate });
    picture.append(line);
    above.append(rate);
  }
  const drawn = new Map(nodes.map((node) => [node.id, drawNode(node, places.get(node.id))]));
  for (const { element } of drawn.values()) picture.append(element);
  picture.append(above);
  return {
    element: picture,
    setRates: (rates) => {
      for (const [key, { line, rate }] of lines) {
        const found = rates.get(key) ?? null;
        setText(rate, found === null ? "" : `${short(found >= 10 ? Math.round(found) : Math.round(found * 10) / 10)}/s`);
        line.classList.toggle("flowing", found !== null && found > 0);
        line.classList.toggle("still", lines.size > MOST_MOVING);
      }
    },
    setStates: (next) => next.forEach((node) => drawn.get(node.id)?.setState(node)),
  };
};

const sizeOf = (id) => (id.startsWith("bend\n") ? BEND : NODE.height);

/** From left to right: a layer is a column, centred; narrower where that makes all of them fit. */
const placeAcross = (layers, room) => {
  const most = room - MARGIN * 2 - 2;
  const clamp = (value, least, largest) => Math.max(least, Math.min(largest, value));
  const between = clamp((most - layers.length * NODE.width) / Math.max(1, layers.length - 1), LEAST.between, BETWEEN);
  const wide = clamp((most - (layers.length - 1) * between) / layers.length, LEAST.width, NODE.width);
  const heights = layers.map((layer) => layer.reduce((sum, id) => sum + sizeOf(id) + GAP, -GAP));
  const tallest = Math.max(...heights, 0);
  const tall = layers.some((layer) => layer.length > TALL);
  const places = new Map();
  layers.forEach((layer, index) => {
    const left = MARGIN + index * (wide + between);
    let top = MARGIN + (tall ? 0 : (tallest - heights[index]) / 2);
    for (const id of layer) {
      const bend = id.startsWith("bend\n");
      places.set(id, { x: left, y: top, width: wide, height: sizeOf(id), bend, between });
      top += sizeOf(id) + GAP;
    }
  });
  return { places, width: MARGIN * 2 + layers.length * wide + (layers.length - 1) * between, height: tallest + MARGIN * 2 };
};

/** From top to bottom: a layer is as many rows as it takes; bends are left out. */
const placeDown = (layers, room) => {
  const columns = Math.max(1, Math.floor((room - 16 + 12) / (NODE.width - 10 + 12)));
  const width = NODE.width - 10;
  const places = new Map();
  let top = 16;
  for (const layer of layers) {
    const nodes = layer.filter((id) => !id.startsWith("bend\n"));
    for (let from = 0; from < nodes.length; from += columns) {
      const row = nodes.slice(from, from + columns);
      const left = (room - row.length * width - (row.length - 1) * 12) / 2;
      row.forEach((id, index) => places.set(id, { x: left + index * (width + 12), y: top, width, height: NODE.height }));
      top += NODE.height + 46;
    }
    // An edge that passes a layer goes straight: there is no room for bends on a phone.
    for (const id of layer) if (id.startsWith("bend\n")) places.set(id, null);
  }
  return { places, width: room, height: top - 30 };
};

const pathOf = (points, vertical) => {
  const real = points.filter((each) => each !== null);
  if (vertical) {
    const [from, to] = [real[0], real.at(-1)];
    const [x1, y1, x2, y2] = [from.x + from.width / 2, from.y + from.height, to.x + to.width / 2, to.y - 2];
    const pull = Math.max(18, Math.abs(y2 - y1) / 2);
    return `M${x1} ${y1}C${x1} ${y1 + pull} ${x2} ${y2 - pull} ${x2} ${y2}`;
  }
  let path = `M${real[0].x + real[0].width} ${real[0].y + real[0].height / 2}`;
  for (let at = 1; at < real.length; at += 1) {
    const [from, to] = [real[at - 1], real[at]];
    const [x1, y1, x2, y2] = [from.x + from.width, from.y + from.height / 2, to.x - (to.bend ? 0 : 2), to.y + to.height / 2];
    const pull = Math.max(30, (x2 - x1) / 2);
    path += `C${x1 + pull} ${y1} ${x2 - pull} ${y2} ${x2} ${y2}`;
    if (to.bend) path += `L${to.x + to.width} ${y2}`;
  }
  return path;
};

/** Before the target: where many edges leave one node, their labels would meet. `before` came earlier. */
const labelPlace = (points, vertical, before) => {
  const to = points.at(-1);
  if (vertical) return { x: to.x + to.width / 2 + before * 52, y: to.y - 12 };
  return { x: to.x - to.between * 0.46, y: to.y + to.height / 2 - 7 - before * 13 };
};

/** A shape for each kind, so that colour is not needed to tell them apart. */
const SHAPES = {
  topic: ({ x, y, width: w, height: h }) => `M${x} ${y + 7}a${w / 2} 7 0 0 1 ${w} 0V${y + h - 7}a${w / 2} 7 0 0 1 ${-w} 0zM${x} ${y + 7}a${w / 2} 7 0 0 0 ${w} 0`,
  stream: ({ x, y, width: w, height: h }) => rounded(x, y, w, h, h / 2),
  operator: ({ x, y, width: w, height: h }) => `M${x + 10} ${y}H${x + w - 10}L${x + w} ${y + 10}V${y + h - 10}L${x + w - 10} ${y + h}H${x + 10}L${x} ${y + h - 10}V${y + 10}z`,
  view: ({ x, y, width: w, height: h }) => rounded(x, y, w, h, 6),
  sink: ({ x, y, width: w, height: h }) => `M${x + 14} ${y}H${x + w - 14}L${x + w} ${y + h / 2}L${x + w - 14} ${y + h}H${x + 14}L${x} ${y + h / 2}z`,
};

const rounded = (x, y, w, h, r) => `M${x + r} ${y}h${w - 2 * r}a${r} ${r} 0 0 1 ${r} ${r}v${h - 2 * r}a${r} ${r} 0 0 1 ${-r} ${r}h${-(w - 2 * r)}a${r} ${r} 0 0 1 ${-r} ${-r}v${-(h - 2 * r)}a${r} ${r} 0 0 1 ${r} ${-r}z`;

const drawNode = (node, place) => {
  const middle = place.x + place.width / 2;
  const name = node.label ?? node.name;
  const fits = (size) => Math.floor((place.width - 18) / size); // characters, of a size in pixels
  const longest = fits(6.4);
  const down = node.kind === "topic" ? 4 : 0;
  const title = s("title");
  const kind = s("text", { class: "node-kind", x: middle, y: place.y + 40 + down / 2, "text-anchor": "middle" });
  const shape = s(
    "g",
    null,
    s("path", { class: "node-shape", d: (SHAPES[node.kind] ?? SHAPES.view)(place) }),
    s("text", { class: `node-name${name.length > fits(7.6) ? " long" : ""}`, x: middle, y: place.y + 24 + down, "text-anchor": "middle" }, name.length > longest ? `${name.slice(0, longest - 1)}…` : name),
    kind,
    title,
  );
  const element = s("a", { href: hrefOfNode(node), "data-testid": "node", "data-node": node.id }, shape);
  const setState = ({ state }) => {
    const { tone, glyph } = toneOf(state);
    const plain = !state || ["topic", "operator"].includes(node.kind);
    setAttribute(shape, "class", `node ${node.kind} ${plain ? "" : tone}`.trim());
    kind.replaceChildren(`${node.kind}${plain ? "" : " · "}`, s("tspan", { class: "node-state" }, plain ? "" : `${glyph} ${state}`));
    setText(title, `${node.kind} ${node.name}${plain ? "" : `, ${state}`}`);
    setAttribute(element, "aria-label", title.textContent);
  };
  setState(node);
  return { element, setState };
};
