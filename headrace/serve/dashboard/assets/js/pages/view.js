/** A view: its rows and a chart of them, how it is made, and what it left out. */

import { h, replace } from "../dom.js";
import { bytes, count, counted, durationParts, percent, rate } from "../format.js";
import { behindUs, live, ownerOf, versionsOf } from "../live.js";
import { pauseButton } from "../pausing.js";
import { figure } from "../parts/figure.js";
import { notice } from "../parts/panel.js";
import { recordsPart, topicRecords } from "../parts/records.js";
import { updateTag } from "../parts/state.js";
import { tabs } from "../parts/tabs.js";
import { readPlace, setParams } from "../router.js";
import { Scope } from "../scope.js";
import { keepInView, pageHead, presence } from "./heads.js";
import { queryLink } from "./sql.js";
import { rowsPanels } from "./view-rows.js";
import { definitionTab, errorsTab, explainTab, lateTab } from "./view-tabs.js";

export const viewPage = ({ main, scope, name, params }) => {
  const versions = () => versionsOf(live.status?.views ?? [], name);
  const definition = () => live.definitions?.views.find((each) => each.name === name) ?? null;
  const problems = h("div", { class: "notices" });
  const stateNotices = h("div", { class: "notices", role: "status" });
  const onError = (error) => replace(problems, error && notice("bad", error.message));
  const pause = pauseButton({ kind: "view", name, state: () => versions().current?.state, scope, onError });
  const query = queryLink(`SELECT *\nFROM ${quoted(name)}\nLIMIT 100`);
  const head = pageHead({ kind: "view", name, actions: [query, pause] });
  const figures = viewFigures();
  const content = h("div", { class: "stack" });
  const setKnown = presence(main, "view", name, head.element, h("div", { class: "stack" }, stateNotices, problems, h("div", { class: "figures" }, figures.elements), content));
  let made = null;
  let madeOf = "";
  let inner = null;

  /** Make rows and tabs, anew where the view is another one: edited, or dropped and made again. */
  const make = (current) => {
    const found = definition();
    const signature = JSON.stringify([current.version, current.readers, current.topic, found]);
    if (signature === madeOf) return;
    inner?.close();
    inner = new Scope(scope);
    const { params: chosen } = readPlace(); // as they are now: filter and tab may have changed since
    const written = current.topic !== null && current.topic !== undefined;
    const parts = written ? [] : rowsPanels({ name, scope: inner, params: chosen, definition: found, stateRows: current.state_rows });
    const all = tabs({ label: `About ${name}`, scope: inner, chosen: chosen.get("tab") ?? undefined, onChoose: (tab) => setParams({ tab }), tabs: tabsOf(name, () => versions().current ?? current, found, written) });
    replace(content, parts, all.element);
    if (made === null && params.get("tab")) keepInView(all.element, scope);
    made = all;
    madeOf = signature;
  };
  let noticed = "";
  const update = () => {
    const { current, all } = versions();
    if (!setKnown(current !== null)) {
      inner?.close();
      madeOf = "";
      return;
    }
    if (live.definitions !== null) make(current);
    updateTag(head.state, current.state);
    figures.update(current);
    const found = noticesOf(current, all);
    if (JSON.stringify(found) !== noticed) {
      noticed = JSON.stringify(found);
      replace(stateNotices, found.map((each) => notice(...each)));
    }
    setCounts(made, current);
  };
  scope.listen(live, "status", update);
  scope.listen(live, "definitions", update);
  if (live.status) update();
  return name;
};

const quoted = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

const tabsOf = (name, current, definition, written) => [
  ...(written ? [{ id: "records", title: "Records written", flush: true, open: (body, scope) => body.append(recordsPart({ path: topicRecords(current().topic), scope, none: "It has written nothing yet." }).element) }] : []),
  { id: "definition", title: "Definition", open: (body, scope) => definitionTab(body, scope, current, definition) },
  { id: "pipeline", title: "Pipeline", open: (body, scope) => explainTab(body, scope, name) },
  { id: "late", title: "Late", flush: true, open: (body, scope) => lateTab(body, scope, name, current(), definition) },
  { id: "dead", title: "Dead", flush: true, open: (body, scope) => body.append(recordsPart({ path: topicRecords(`${name}.dead`), scope, none: "No record is dead for this view.", testid: "dead-letter" }).element) },
  ...(written ? [] : [{ id: "errors", title: "Errors", flush: true, open: (body, scope) => errorsTab(body, scope, name, current()) }]),
];

const setCounts = (made, view) => {
  made?.setCount("late", view.counters.late ? count(view.counters.late) : "", "warn");
  made?.setCount("dead", view.counters.dead ? count(view.counters.dead) : "", "bad");
  if (view.topic === null) made?.setCount("errors", view.error_rows ? count(view.error_rows) : "", "warn");
};

const noticesOf = (current, all) => {
  const found = [];
  if (current.state === "failed") found.push(["bad", `This view failed and stands still: ${current.reason || "no reason was given"}`]);
  else if (current.state === "paused") found.push(["warn", `This view is paused${current.reason ? `: ${current.reason}` : "; its rows are those of the moment it was paused."}`]);
  else if (current.reason) found.push([current.state === "live" ? "info" : "warn", current.reason]);
  for (const each of all.filter((other) => other !== current)) {
    found.push(["info", `Version ${each.version} is ${each.state} beside this one (${current.version}); ${counted(each.lag_records, "record")} to go.${each.reason ? ` ${each.reason}` : ""}`]);
  }
  return found;
};

const viewFigures = () => {
  const all = {
    rows: figure({ label: "State", testid: "state-rows" }),
    rate: figure({ label: "Sees", testid: "rate" }),
    lag: figure({ label: "Lag", testid: "lag" }),
    behind: figure({ label: "Closed before", testid: "watermark-behind" }),
    late: figure({ label: "Late", testid: "late-total" }),
  };
  return {
    elements: Object.values(all).map((each) => each.element),
    update: (view) => {
      const owner = ownerOf("view", view);
      all.rows.set(count(view.state_rows), view.state_rows === 1 ? "row" : "rows", `about ${bytes(view.state_bytes_estimate)}`);
      all.rate.set(...rate(live.rate(owner, "seen")), `${count(view.counters.seen)} in all`);
      all.lag.set(count(view.lag_records), "records", view.lag_records === 0 ? "everything is read" : "in the log, not read yet");
      const behind = behindUs(live.status, view);
      all.behind.set(...durationParts(behind), behind === null ? "no watermark yet" : "behind the clock");
      const grown = live.growth(owner, "late") ?? 0;
      all.late.set(count(view.counters.late), "pairs", lateNote(view, grown), grown > 0 ? "warn" : "");
    },
  };
};

const lateNote = (view, grown) => {
  if (grown > 0) return `▲ ${count(grown)} in a minute`;
  return view.counters.late === 0 ? "none" : `${percent(view.counters.late, view.counters.pairs)} of ${count(view.counters.pairs)} pairs`;
};
