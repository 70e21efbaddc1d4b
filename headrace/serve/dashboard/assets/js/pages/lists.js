/** All streams and all views, as tables: a part of the overview, and pages of their own. */

import { h } from "../dom.js";
import { bytes, count, duration, rate, short } from "../format.js";
import { behindUs, live, ownerOf } from "../live.js";
import { panel } from "../parts/panel.js";
import { toneOf } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { hrefOf, setParams } from "../router.js";

const number = (name, label, value, text = (row) => count(value(row)), extra = {}) => ({ name, label, kind: "number", value, text, ...extra });
const perSecond = (kind, counter) => (row) => live.rate(ownerOf(kind, row), counter);
const rateText = (value) => (row) => {
  const found = value(row);
  return found === null ? "–" : `${rate(found)[0]}/s`;
};
/** What a table puts aside is counted as its changes are. */
const changesOf = (row) => (row.kind === "table" ? live.status.streams.find((each) => each.name === row.name && each.unit === row.unit) : null) ?? row;
const counterOf = (name) => (row) => row.counters[name] ?? 0;
/** A counter that grows stands out, and so does the reason to look. */
const alarming = (kind, counter, tone) => (row) => ((live.growth(ownerOf(kind, row), counter) ?? 0) > 0 ? tone : "");

const nameColumn = (kind) => ({ name: "name", label: "Name", text: (row) => row.name, href: (row) => hrefOf(kind, row.name) });
const stateColumn = { name: "state", label: "State", text: (row) => row.state, tag: (row) => toneOf(row.state) };
const behindColumn = number("behind", "Watermark behind", (row) => behindUs(live.status, row), (row) => {
  const found = behindUs(live.status, row);
  return found === null ? "–" : duration(found);
});

const STREAM_COLUMNS = [
  nameColumn("stream"),
  stateColumn,
  number("rate", "Reads", perSecond("stream", "read"), rateText(perSecond("stream", "read"))),
  number("lag", "Lag, records", (row) => row.lag_records),
  behindColumn,
  number("read", "Read", counterOf("read")),
  number("dead", "Dead", counterOf("dead"), undefined, { tone: alarming("stream", "dead", "bad") }),
  number("duplicate", "Duplicate", counterOf("duplicate"), undefined, { tone: alarming("stream", "duplicate", "warn") }),
  { name: "topic", label: "Topic", text: (row) => row.topic, href: (row) => hrefOf("topic", row.topic) },
];

const VIEW_COLUMNS = [
  nameColumn("view"),
  { name: "kind", label: "Kind", text: (row) => row.kind },
  stateColumn,
  number("rate", "Sees", perSecond("view", "seen"), rateText(perSecond("view", "seen"))),
  number("lag", "Lag, records", (row) => row.lag_records),
  number("rows", "State rows", (row) => row.state_rows),
  number("bytes", "About", (row) => row.state_bytes_estimate, (row) => bytes(row.state_bytes_estimate)),
  behindColumn,
  number("late", "Late", counterOf("late"), undefined, { tone: alarming("view", "late", "warn") }),
  number("dead", "Dead", (row) => changesOf(row).counters.dead ?? 0, undefined, { tone: (row) => alarming(row.kind === "table" ? "stream" : "view", "dead", "bad")(changesOf(row)) }),
  number("errors", "Errors", (row) => row.error_rows ?? 0, (row) => (row.error_rows === null ? "–" : short(row.error_rows)), { tone: (row) => (row.error_rows ? "warn" : "") }),
  { name: "inputs", label: "Reads from", text: (row) => row.inputs.join(", ") },
];

const definitionTable = (kind, columns, entries) => ({ caption, limit = Infinity, filter = () => "", sort = null, onSort }) => {
  const table = new Table({ columns, caption, noun: kind, keyOf: (row) => `${row.name}@${row.version}`, testid: `${kind}-table`, sort, onSort, emptyText: `No ${kind} to show. The engine enters the definitions of a project when it starts.` });
  return {
    element: table.element,
    update: () => {
      const wanted = filter().toLowerCase();
      const all = entries();
      const found = all.filter((row) => wanted === "" || row.name.toLowerCase().includes(wanted) || row.state.includes(wanted));
      // What is not live comes first where only some are listed: it is what people look for.
      const first = limit < found.length ? [...found].sort((left, right) => Number(left.state === "live") - Number(right.state === "live")) : found;
      table.update(first.slice(0, limit), { total: all.length });
    },
  };
};

export const streamTable = definitionTable("stream", STREAM_COLUMNS, () => live.status.streams.filter((each) => each.kind !== "table"));
export const viewTable = definitionTable("view", VIEW_COLUMNS, () => live.status.views);

const listPage = (title, makeTable) => ({ main, scope, params }) => {
  const input = h("input", { type: "search", placeholder: "Filter by name or state", "aria-label": "Filter", value: params.get("filter") ?? "", data: { testid: "filter" } });
  const [, name, way] = /^([^-]+)(-?)$/.exec(params.get("sort") ?? "") ?? [];
  const table = makeTable({
    caption: title,
    filter: () => input.value,
    sort: name ? { name, descending: way === "-" } : null,
    onSort: (sort) => setParams({ sort: `${sort.name}${sort.descending ? "-" : ""}` }),
  });
  input.addEventListener("input", () => {
    setParams({ filter: input.value });
    if (live.status) table.update();
  });
  main.append(h("div", { class: "page-head" }, h("h1", null, title), h("div", { class: "actions" }, input)), panel({ title: `All ${title.toLowerCase()}`, flush: true }, table.element).element);
  scope.listen(live, "status", () => table.update());
  if (live.status) table.update();
  return title;
};

export const streamsPage = listPage("Streams", streamTable);
export const viewsPage = listPage("Views", viewTable);
