/** A stream: what its records look like, how late they come, and those that could not be read. */

import { h, replace } from "../dom.js";
import { at } from "../api.js";
import { count, duration, durationParts, percent, rate } from "../format.js";
import { behindUs, live, ownerOf } from "../live.js";
import { sqlCode } from "../parts/code.js";
import { figure } from "../parts/figure.js";
import { empty, facts, loading, notice, panel } from "../parts/panel.js";
import { recordsPart, topicRecords } from "../parts/records.js";
import { updateTag } from "../parts/state.js";
import { Table } from "../parts/table.js";
import { tabs } from "../parts/tabs.js";
import { hrefOf, setParams } from "../router.js";
import { keepInView, pageHead, presence } from "./heads.js";
import { latenessPanel } from "./stream-lateness.js";
import { partitionTable } from "./stream-partitions.js";

export const streamPage = ({ main, scope, name, params }) => {
  const stream = () => {
    const found = (live.status?.streams ?? []).filter((each) => each.name === name);
    return found.find((each) => each.state !== "building") ?? found[0] ?? null;
  };
  const definition = () => live.definitions?.streams.find((each) => each.name === name) ?? null;
  const topic = h("a", { class: "button" }, "Topic");
  const head = pageHead({ kind: "stream", name, actions: [topic] });
  const figures = streamFigures();
  const notices = h("div", { class: "notices" });
  const partitions = partitionTable(name);
  const schema = panel({ title: "Schema", span: 5, flush: true }, loading());
  const lateness = latenessPanel({ name, scope, span: 7 });
  const all = tabs({ label: `Records of ${name}`, scope, chosen: params.get("tab") ?? "records", onChoose: (tab) => setParams({ tab }), tabs: tabsOf(name, definition) });
  const setKnown = presence(
    main,
    "stream",
    name,
    head.element,
    h(
      "div",
      { class: "stack" },
      notices,
      h("div", { class: "figures" }, figures.elements),
      all.element,
      h("div", { class: "grid" }, lateness, schema.element),
      panel({ title: "Partitions", flush: true }, partitions.element).element,
    ),
  );

  let drawn = JSON.stringify(definition());
  const drawDefinition = () => {
    const found = definition();
    if (found !== null) replace(schema.body, schemaTable(found));
    const next = JSON.stringify(found);
    if (next !== drawn) all.again();
    drawn = next;
  };
  const update = () => {
    const found = stream();
    if (!setKnown(found !== null)) return;
    updateTag(head.state, found.state);
    topic.setAttribute("href", hrefOf("topic", found.topic));
    topic.textContent = `Topic ${found.topic}`;
    figures.update(found);
    partitions.update(found.partitions);
    all.setCount("dead", found.counters.dead ? count(found.counters.dead) : "", "bad");
    all.setCount("duplicate", found.counters.duplicate ? count(found.counters.duplicate) : "", "warn");
    const unguarded = !found.guarded && "Records come without an arrival time, so a clock that runs ahead can close windows.";
    if (Boolean(unguarded) !== notices.hasChildNodes()) replace(notices, unguarded && notice("warn", unguarded));
  };
  scope.listen(live, "status", update);
  scope.listen(live, "definitions", drawDefinition);
  if (live.status) update();
  drawDefinition();
  if (params.get("tab")) keepInView(all.element, scope);
  return name;
};

const tabsOf = (name, definition) => [
  { id: "records", title: "Recent records", flush: true, open: (body, scope) => body.append(recordsPart({ path: at`/v1/streams/${name}/records`, scope, none: "No record yet. Append one with `headrace append`." }).element) },
  { id: "dead", title: "Dead letters", flush: true, open: (body, scope) => body.append(recordsPart({ path: topicRecords(`${name}.dead`), scope, none: "No dead letters: every record could be read.", testid: "dead-letter" }).element) },
  { id: "duplicate", title: "Duplicates", flush: true, open: (body, scope) => duplicatesTab(body, scope, name, definition()) },
  { id: "definition", title: "Definition", open: (body) => body.append(definition() ? definitionPart(definition()) : empty("The definition is not known.")) },
];

const duplicatesTab = (body, scope, name, definition) => {
  if (definition !== null && !definition.unique) return void body.append(empty("This stream has no unique id, so no record is a duplicate."));
  body.append(recordsPart({ path: topicRecords(`${name}.duplicate`), scope, none: "None is kept. Duplicates are counted; with duplicates = 'topic' they are kept as well.", tone: "late" }).element);
};

const definitionPart = (found) =>
  h(
    "div",
    { class: "stack" },
    sqlCode(found.sql, "definition"),
    facts([
      ["Where", found.file && h("code", null, `${found.file}:${found.line}`)],
      ["Topic", h("a", { href: hrefOf("topic", found.topic) }, found.topic)],
      ["Event time", found.event_time ? h("code", null, found.event_time) : "none"],
      ["Watermark delay", found.event_time && duration(found.delay_us)],
      ["Key", found.key ? h("code", null, String(found.key)) : "none"],
      ["Unique id", found.unique ? h("code", null, String(found.unique)) : "none"],
      ["Read by", found.readers?.length > 0 ? found.readers.flatMap((each, index) => [index > 0 && ", ", h("a", { href: hrefOf("view", each) }, each)]) : "no view"],
    ]),
  );

const schemaTable = (found) => {
  const role = (column) => [column.name === found.event_time && "event time", column.name === found.key && "key", column.name === found.unique && "unique id"].filter(Boolean).join(", ");
  const table = new Table({
    caption: "Columns",
    noun: "column",
    testid: "schema",
    keyOf: (row) => row.name,
    columns: [
      { name: "name", label: "Column", text: (row) => [row.name, role(row)].filter(Boolean).join(" · "), sortable: false },
      { name: "type", label: "Type", text: (row) => row.type, mono: true, sortable: false },
      { name: "nullable", label: "NULL", text: (row) => (row.nullable ? "yes" : "no"), sortable: false },
    ],
  });
  table.update(found.columns);
  return table.element;
};

const streamFigures = () => {
  const all = {
    rate: figure({ label: "Reads", testid: "rate" }),
    lag: figure({ label: "Lag", testid: "lag" }),
    behind: figure({ label: "Watermark behind the clock", testid: "watermark-behind" }),
    dead: figure({ label: "Dead", testid: "dead-total" }),
    duplicate: figure({ label: "Duplicate", testid: "duplicate-total" }),
  };
  return {
    elements: Object.values(all).map((each) => each.element),
    update: (found) => {
      const owner = ownerOf("stream", found);
      const { read, dead, duplicate } = found.counters;
      all.rate.set(...rate(live.rate(owner, "read")), `${count(read)} in all`);
      all.lag.set(count(found.lag_records), "records", found.lag_records === 0 ? "everything is read" : "in the log, not read yet");
      const behind = behindUs(live.status, found);
      all.behind.set(...durationParts(behind), behind === null ? "no watermark yet" : "windows before it are closed");
      const grownDead = live.growth(owner, "dead") ?? 0;
      all.dead.set(count(dead), "records", shareText(dead, read, grownDead), grownDead > 0 ? "bad" : "");
      const grown = live.growth(owner, "duplicate") ?? 0;
      all.duplicate.set(count(duplicate), "records", shareText(duplicate, read, grown), grown > 0 ? "warn" : "");
    },
  };
};

const shareText = (part, whole, grown) => {
  if (grown > 0) return `▲ ${count(grown)} in a minute`;
  return part === 0 ? "none" : `${percent(part, whole)} of what was read`;
};
