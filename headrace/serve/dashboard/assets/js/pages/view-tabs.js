/** How a view is made, and what it left out: one function for each tab. */

import { ApiError, at, getJson } from "../api.js";
import { h, replace, setText } from "../dom.js";
import { count, duration } from "../format.js";
import { live } from "../live.js";
import { plainCode, sqlCode } from "../parts/code.js";
import { empty, facts, failed, loading } from "../parts/panel.js";
import { recordsPart, topicRecords } from "../parts/records.js";
import { Table } from "../parts/table.js";
import { hrefOf } from "../router.js";
import { keysOf } from "../rows.js";
import { valueColumns, windowText } from "./view-rows.js";

const ERRORS_MS = 2_000;

export const definitionTab = (body, scope, view, definition) => {
  if (definition === null) return void body.append(empty("The definition is not known."));
  const current = view();
  const counters = h("span", { data: { testid: "counters" } });
  const drawCounters = () => setText(counters, Object.entries(view().counters).map(([name, value]) => `${name} ${count(value)}`).join(" · "));
  scope.listen(live, "status", drawCounters);
  drawCounters();
  const links = (names, page) => names.flatMap((name, index) => [index > 0 && ", ", h("a", { href: hrefOf(page, name) }, name)]);
  body.append(
    h(
      "div",
      { class: "stack" },
      sqlCode(definition.sql, "definition"),
      facts([
        ["Version", h("code", null, current.version)],
        ["Unit", current.unit],
        ["Reads", links(definition.inputs, "stream")],
        ["Key", definition.key.length > 0 ? h("code", null, definition.key.join(", ")) : "none: one row"],
        ["Window", definition.window ? windowText(definition.window) : "none: no record is late"],
        ["Allowed lateness", definition.window && (definition.allowed_lateness_us === null ? "for ever" : duration(definition.allowed_lateness_us))],
        ["Retention", definition.retention_us === null || definition.retention_us === undefined ? "for ever" : duration(definition.retention_us)],
        ["Emits", definition.emit],
        ["Sinks", current.readers.length > 0 && links(current.readers, "sink")],
        ["Counters", counters],
      ]),
    ),
  );
};

export const explainTab = (body, scope, name) => {
  body.append(loading());
  scope.run(
    async (signal) => {
      const found = await getJson(`/v1/explain?view=${encodeURIComponent(name)}`, { signal });
      const plan = Array.isArray(found) ? (found.find((each) => each.view === name) ?? found[0]) : found;
      replace(body, plan ? plainCode(plan.text ?? JSON.stringify(plan, null, 2), "explain") : empty("There is no plan of this view."));
    },
    (error) => replace(body, failed(error)),
  );
};

export const lateTab = (body, scope, name, current, definition) => {
  if (definition !== null && definition.window === null) {
    return void body.append(empty("A view without windows has no late records: every record finds its row."));
  }
  const inputs = current.inputs.flatMap((each, index) => [index > 0 && ", ", h("a", { href: hrefOf("stream", each) }, each)]);
  body.append(
    h("div", { class: "table-bar" }, h("p", { class: "soft" }, "A record is late for a window that had closed by its partition's watermark, plus the lateness that the view allows. How late records come: ", inputs, ".")),
    recordsPart({ path: topicRecords(`${name}.late`), scope, none: "No record was late.", tone: "late", testid: "late-record" }).element,
  );
};

/** Rows on which an expression fails, with its error: the relation `<view>.errors`. */
export const errorsTab = (body, scope, name, current) => {
  if (current.error_rows === null) {
    return void body.append(empty("This view has no expression that can fail on a row, or its windows overlap, where failing rows are not counted."));
  }
  body.append(loading());
  let table = null;
  scope.every(
    ERRORS_MS,
    async (signal) => {
      const found = await getJson(`${at`/v1/views/${`${name}.errors`}`}?limit=200`, { signal });
      if (found.rows.length === 0) {
        table = null;
        return void replace(body, empty("No row fails."));
      }
      if (table === null) {
        table = new Table({ caption: `Errors of ${name}`, testid: "errors", keyOf: (row) => row.key, columns: valueColumns(found.columns) });
        replace(body, table.element);
      }
      const keys = keysOf(found.rows, found.key, found.columns);
      table.update(found.rows.map((row, index) => ({ key: keys[index], row })), { note: found.more ? "there are more" : "" });
    },
    (error) => {
      if (error instanceof ApiError && error.status === 404) replace(body, empty("No row fails."));
      else if (table === null) replace(body, failed(error));
    },
  );
};
