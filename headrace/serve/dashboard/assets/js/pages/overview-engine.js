/** The engine itself, and all that somebody should know about before looking at numbers. */

import { h, replace } from "../dom.js";
import { ago, bytes, count, counted } from "../format.js";
import { live } from "../live.js";
import { facts, loading, notice, panel } from "../parts/panel.js";
import { hrefOf } from "../router.js";

const MAX_NOTICES = 6;

export const enginePanel = () => {
  const { element, body } = panel({ title: "Engine", span: 4, testid: "engine" }, loading());
  const notices = h("div", { class: "notices", role: "status", "aria-live": "polite", data: { testid: "notices" } });
  let shown = "";
  return {
    element,
    notices,
    update: () => {
      replace(body, facts(engineFacts(live.status)));
      const found = noticesOf(live.status);
      const signature = JSON.stringify(found.map(([tone, ...text]) => [tone, text.map((each) => (each instanceof Node ? each.textContent : each))]));
      if (signature === shown) return; // a list that is the same is not announced again
      shown = signature;
      const more = found.length - MAX_NOTICES;
      replace(notices, found.slice(0, MAX_NOTICES).map((each) => notice(...each)), more > 0 && notice("info", `${counted(more, "more notice")}; \`headrace status\` shows all.`));
    },
  };
};

const engineFacts = (status) => {
  const { engine, serving } = status;
  const state = status.views.reduce((sum, each) => sum + each.state_rows, 0);
  const size = status.views.reduce((sum, each) => sum + each.state_bytes_estimate, 0);
  return [
    ["Project", status.project],
    ["Version", engine?.version],
    ["Running", engine ? startedText(engine.started, status.taken_us) : "no engine runs"],
    ["Process", engine && `pid ${engine.pid}${engine.watches ? ", watches the definitions" : ""}`],
    ["Commit", h("span", { data: { testid: "commit" } }, count(status.commit))],
    ["Holds", `${counted(kinds(status.streams, "stream"), "stream")}, ${counted(kinds(status.views, "table"), "table")}, ${counted(status.views.length - kinds(status.views, "table"), "view")}, ${counted(status.sinks.length, "sink")}`],
    ["State", `${counted(state, "row")}, about ${bytes(size)}`],
    ["Serves", serving && `${counted(serving.subscribers ?? 0, "subscriber")}, ${counted(serving.queries ?? 0, "query", "queries")} under way`],
  ];
};

const kinds = (entries, kind) => entries.filter((each) => each.kind === kind).length;

const startedText = (started, nowUs) => {
  const at = Date.parse(started);
  return Number.isNaN(at) ? started : h("span", { title: started }, `since ${ago(at * 1000, nowUs)}`.replace("since", "started"));
};

const noticesOf = (status) => {
  const found = [];
  for (const view of status.views) {
    const link = h("a", { href: hrefOf("view", view.name) }, `View ${view.name}`);
    if (view.state === "failed") found.push(["bad", link, ` failed: ${view.reason || "no reason was given"}`]);
    else if (view.state === "paused") found.push(["warn", link, ` is paused${view.reason ? `: ${view.reason}` : "; its rows stand still."}`]);
    else if (view.state === "stale") found.push(["warn", link, ` is stale: ${view.reason || "one of its inputs is behind"}`]);
    else if (view.reason) found.push(["info", link, ` ${view.state}: ${view.reason}`]);
  }
  for (const sink of status.sinks) {
    if (sink.state === "paused") found.push(["warn", h("a", { href: hrefOf("sink", sink.name) }, `Sink ${sink.name}`), ` is paused; ${counted(sink.rows, "row")} wait.`]);
  }
  found.push(...driftNotices(status));
  found.push(...status.warnings.map((text) => ["warn", text]));
  if (status.void_markers > 0) found.push(["warn", `headrace.time holds ${counted(status.void_markers, "record")} that the engine did not write; they have no effect.`]);
  const order = ["bad", "warn", "info"];
  return found.sort(([left], [right]) => order.indexOf(left) - order.indexOf(right));
};

const driftNotices = ({ definitions, engine }) => {
  if (!definitions) return [];
  if (definitions.problems.length > 0) return [["bad", `Definitions on disk are refused: ${definitions.problems[0]}. \`headrace check --types\` shows all.`]];
  const advice = engine?.watches ? "The engine applies them, or says after a restart." : "Restart the engine, or run it with --watch.";
  return [["info", `Definitions on disk differ (${definitions.changed.join(", ")}). ${advice}`]];
};
