/**
 * Where the nodes of a graph stand: layers by the longest way from a source, an order within each
 * layer that crosses few edges, and bends where an edge passes a layer. Works on ids alone, so the
 * same graph always looks the same.
 */

const SWEEPS = 6;

/**
 * @param {string[]} ids
 * @param {{from: string, to: string}[]} edges
 * @returns {{layers: string[][], routes: Map<string, string[]>}} layers of ids, those of bends among
 *   them, and for each edge ("from\nto") the ids that it goes through
 */
export const layerGraph = (ids, edges) => {
  const known = new Set(ids);
  const forward = withoutCycles(ids, edges.filter((each) => known.has(each.from) && known.has(each.to) && each.from !== each.to));
  const depth = depths(ids, forward);
  const layers = [];
  for (const id of ids) (layers[depth.get(id)] ??= []).push(id);
  const { routes, links } = addBends(layers, forward, depth);
  orderLayers(layers, links);
  return { layers, routes };
};

/** Leave out edges that lead back, found by a depth-first walk: a sink's topic may be read again. */
const withoutCycles = (ids, edges) => {
  const targets = new Map(ids.map((id) => [id, []]));
  for (const edge of edges) targets.get(edge.from).push(edge);
  const state = new Map();
  const kept = [];
  for (const root of ids) {
    if (state.has(root)) continue;
    const path = [{ id: root, at: 0 }];
    state.set(root, "open");
    while (path.length > 0) {
      const top = path.at(-1);
      const edge = targets.get(top.id)[top.at];
      top.at += 1;
      if (edge === undefined) {
        state.set(top.id, "done");
        path.pop();
      } else if (state.get(edge.to) !== "open") {
        kept.push(edge);
        if (!state.has(edge.to)) {
          state.set(edge.to, "open");
          path.push({ id: edge.to, at: 0 });
        }
      }
    }
  }
  return kept;
};

const depths = (ids, edges) => {
  const incoming = new Map(ids.map((id) => [id, 0]));
  const targets = new Map(ids.map((id) => [id, []]));
  for (const { from, to } of edges) {
    incoming.set(to, incoming.get(to) + 1);
    targets.get(from).push(to);
  }
  const depth = new Map(ids.map((id) => [id, 0]));
  const ready = ids.filter((id) => incoming.get(id) === 0);
  while (ready.length > 0) {
    const id = ready.shift();
    for (const to of targets.get(id)) {
      depth.set(to, Math.max(depth.get(to), depth.get(id) + 1));
      incoming.set(to, incoming.get(to) - 1);
      if (incoming.get(to) === 0) ready.push(to);
    }
  }
  return depth;
};

const addBends = (layers, edges, depth) => {
  const routes = new Map();
  const links = [];
  for (const { from, to } of edges) {
    const route = [from];
    for (let layer = depth.get(from) + 1; layer < depth.get(to); layer += 1) {
      const bend = `bend\n${from}\n${to}\n${layer}`;
      layers[layer].push(bend);
      route.push(bend);
    }
    route.push(to);
    routes.set(`${from}\n${to}`, route);
    for (let at = 1; at < route.length; at += 1) links.push([route[at - 1], route[at]]);
  }
  return { routes, links };
};

/** Sort each layer by the mean place of its neighbours, from the left and from the right in turn. */
const orderLayers = (layers, links) => {
  const before = new Map();
  const after = new Map();
  for (const [from, to] of links) {
    (before.get(to) ?? before.set(to, []).get(to)).push(from);
    (after.get(from) ?? after.set(from, []).get(from)).push(to);
  }
  const place = new Map();
  const number = (layer) => layer.forEach((id, index) => place.set(id, layer.length === 1 ? 0.5 : index / (layer.length - 1)));
  layers.forEach(number);
  const sortBy = (layer, neighbours) => {
    const mean = (id) => {
      const found = neighbours.get(id) ?? [];
      return found.length === 0 ? place.get(id) : found.reduce((sum, each) => sum + place.get(each), 0) / found.length;
    };
    const means = new Map(layer.map((id) => [id, mean(id)]));
    layer.sort((left, right) => means.get(left) - means.get(right));
    number(layer);
  };
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    if (sweep % 2 === 0) layers.slice(1).forEach((layer) => sortBy(layer, before));
    else [...layers].reverse().slice(1).forEach((layer) => sortBy(layer, after));
  }
};

/** The ids of what leads to, or comes from, any of these, and these themselves. */
export const connected = (ids, edges) => {
  const found = new Set(ids);
  for (const [here, there] of [["from", "to"], ["to", "from"]]) {
    const queue = [...ids];
    const seen = new Set(ids);
    while (queue.length > 0) {
      const id = queue.pop();
      for (const edge of edges) {
        if (edge[here] !== id || seen.has(edge[there])) continue;
        seen.add(edge[there]);
        queue.push(edge[there]);
      }
    }
    for (const id of seen) found.add(id);
  }
  return found;
};
