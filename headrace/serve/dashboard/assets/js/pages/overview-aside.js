/**
 * Late, dead and duplicate records, and rows that fail: how many, and an alarm while they grow,
 * which says where most of them are and leads there.
 */

import { count, short } from "../format.js";
import { live, ownerOf } from "../live.js";
import { figure } from "../parts/figure.js";
import { hrefOf } from "../router.js";

const ALARM_SECONDS = 60;

/** What is counted: whose counter it is, and which part of whose page shows the records. */
const KINDS = [
  { id: "late", label: "Late", unit: "pairs", counter: "late", owners: ["view"], tab: "late", tone: "warn" },
  { id: "dead", label: "Dead", unit: "records", counter: "dead", owners: ["stream", "view"], tab: "dead", tone: "bad" },
  { id: "duplicate", label: "Duplicate", unit: "records", counter: "duplicate", owners: ["stream"], tab: "duplicate", tone: "warn" },
];

export const asideFigures = () => {
  const figures = new Map(KINDS.map((kind) => [kind.id, figure({ label: kind.label, testid: `${kind.id}-total`, href: hrefOf("overview") })]));
  const errors = figure({ label: "Rows that fail", testid: "error-rows", href: hrefOf("views") });
  const waiting = figure({ label: "Waiting to be published", testid: "waiting" });
  return {
    elements: [...[...figures.values()].map((each) => each.element), errors.element, waiting.element],
    update: () => {
      for (const kind of KINDS) drawKind(figures.get(kind.id), kind);
      drawErrors(errors);
      drawWaiting(waiting);
    },
  };
};

/** Every stream or view with its total of a kind, and by how much it grew. */
const shares = (kind) =>
  kind.owners.flatMap((owner) => {
    const entries = owner === "stream" ? live.status.streams : live.status.views;
    return entries
      .filter((each) => each.state !== "building")
      .map((each) => ({ owner, name: each.name, total: each.counters[kind.counter] ?? 0, grown: live.growth(ownerOf(owner, each), kind.counter, ALARM_SECONDS) ?? 0 }));
  });

const drawKind = (target, kind) => {
  const found = shares(kind);
  const total = found.reduce((sum, each) => sum + each.total, 0);
  const grown = found.reduce((sum, each) => sum + each.grown, 0);
  const by = grown > 0 ? "grown" : "total";
  const most = found.reduce((best, each) => (each[by] > (best?.[by] ?? 0) ? each : best), null);
  const note = grown > 0 ? `▲ ${short(grown)} in a minute, most in ${most.name} ›` : total > 0 ? `none new, most in ${most.name} ›` : "none";
  target.set(count(total), kind.unit, note, grown > 0 ? kind.tone : "");
  target.link(most === null ? hrefOf(kind.owners[0] === "view" ? "views" : "streams") : hrefOf(most.owner, most.name, { tab: kind.tab }));
};

const drawErrors = (target) => {
  const failing = live.status.views.filter((each) => each.error_rows);
  const total = failing.reduce((sum, each) => sum + each.error_rows, 0);
  const most = failing.sort((left, right) => right.error_rows - left.error_rows)[0];
  target.set(count(total), total === 1 ? "row" : "rows", most ? `most in ${most.name} ›` : "none", most ? "warn" : "");
  target.link(most ? hrefOf("view", most.name, { tab: "errors" }) : hrefOf("views"));
};

const drawWaiting = (target) => {
  const { outbox_records: outbox, sink_rows: sinks, written_rows: written } = live.status;
  target.set(count(outbox + sinks + written), "rows", `side topics ${short(outbox)}, sinks ${short(sinks)}, written ${short(written)}`);
};
