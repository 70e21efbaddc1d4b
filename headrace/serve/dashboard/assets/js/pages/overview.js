/** The overview: is all well, and since when. */

import { h } from "../dom.js";
import { count, duration, durationParts, milliseconds, rate, short } from "../format.js";
import { behindUs, live } from "../live.js";
import { createPlot } from "../charts/plot.js";
import { figure } from "../parts/figure.js";
import { panel } from "../parts/panel.js";
import { STEPS, turns } from "../turns.js";
import { hrefOf } from "../router.js";
import { recall, remember } from "../stored.js";
import { asideFigures } from "./overview-aside.js";
import { enginePanel } from "./overview-engine.js";
import { streamTable, viewTable } from "./lists.js";

const SPANS = [[120, "2 min"], [600, "10 min"]];
const MAX_STREAMS = 8;
const MAX_LISTED = 10;
const MIN_RANGE_SECONDS = 30;

export const overviewPage = ({ main, scope }) => {
  const figures = {
    throughput: figure({ label: "Throughput", testid: "throughput" }),
    lag: figure({ label: "Lag", testid: "lag" }),
    fresh: figure({ label: "Freshness", testid: "freshness" }),
    behind: figure({ label: "Watermark behind the clock", testid: "watermark-behind" }),
    turn: figure({ label: "Turn", testid: "turn" }),
  };
  const aside = asideFigures();
  const plots = createPlots(scope);
  const span = spanChoice(() => draw());
  const engine = enginePanel();
  const streams = streamTable({ caption: "Streams", limit: MAX_LISTED });
  const views = viewTable({ caption: "Views", limit: MAX_LISTED });

  main.append(
    h("div", { class: "page-head" }, h("h1", null, "Overview"), h("div", { class: "actions" }, span.element)),
    h(
      "div",
      { class: "stack" },
      engine.notices,
      h("div", { class: "figures" }, Object.values(figures).map((each) => each.element)),
      h("div", { class: "figures" }, aside.elements),
      h(
        "div",
        { class: "grid" },
        plotPanel("Throughput", "records read per second", plots.throughput, 6),
        plotPanel("Freshness", "arrival until committed, per second", plots.fresh, 6),
        plotPanel("Lag", "records in the log, not read yet", plots.lag, 6),
        plotPanel("Watermark behind the clock", "by stream", plots.behind, 6),
        plotPanel("Turn latency by step", "mean of each second", plots.steps, 8),
        engine.element,
        panel({ title: "Streams", span: 12, flush: true, actions: [h("a", { href: hrefOf("streams") }, "All streams")] }, streams.element).element,
        panel({ title: "Views", span: 12, flush: true, actions: [h("a", { href: hrefOf("views") }, "All views")] }, views.element).element,
      ),
    ),
  );

  const draw = () => {
    if (live.status === null) return;
    const columns = turns.columns(live.status.taken_us, span.seconds());
    drawFigures(figures, columns);
    drawPlots(plots, columns, span.seconds());
  };
  const update = () => {
    aside.update();
    engine.update();
    streams.update();
    views.update();
    draw();
  };
  scope.listen(live, "status", update);
  if (live.status !== null) update();
  // Whoever has only just come sees the past minutes at once; after that, what is new.
  scope.every(1_000, async (signal) => {
    await turns.refresh(signal);
    draw();
  });
  return "Overview";
};

const plotPanel = (title, note, plot, span) => panel({ title, note, span }, plot.element).element;

const createPlots = (scope) => {
  const plot = (label, format, testid, extra) => createPlot({ scope, label, format, testid, emptyText: "No turn yet", sync: "overview", ...extra });
  return {
    throughput: plot("Records read per second", (value) => `${short(value)}/s`, "plot-throughput"),
    fresh: plot("Freshness", milliseconds, "plot-freshness"),
    lag: plot("Records not read yet", short, "plot-lag"),
    behind: plot("Watermark behind the clock", (seconds) => duration(seconds * 1e6), "plot-watermark", { emptyText: "No stream has a watermark yet" }),
    steps: plot("Milliseconds of a turn by step", milliseconds, "plot-steps", { stacked: true, height: 210 }),
  };
};

const spanChoice = (onChange) => {
  let chosen = recall("span", SPANS[0][0]);
  const buttons = SPANS.map(([seconds, text]) => h("button", { type: "button", "aria-pressed": String(seconds === chosen), data: { seconds } }, text));
  for (const button of buttons) {
    button.addEventListener("click", () => {
      chosen = Number(button.dataset.seconds);
      remember("span", chosen);
      for (const each of buttons) each.setAttribute("aria-pressed", String(each === button));
      onChange();
    });
  }
  return { element: h("div", { class: "segmented", role: "group", "aria-label": "How far back the plots go" }, buttons), seconds: () => chosen };
};

const recent = (column, length) => column.slice(-length).filter((each) => each !== null);
const mean = (values) => (values.length === 0 ? null : values.reduce((sum, each) => sum + each, 0) / values.length);

const drawFigures = (figures, columns) => {
  const { status } = live;
  const perSecond = mean(recent(columns.records, 5));
  figures.throughput.set(...rate(perSecond), `${count(columns.turns.slice(-60).reduce((sum, each) => sum + each, 0))} turns in the last minute`);
  const lag = live.samples.at(-1)?.lag ?? 0;
  figures.lag.set(count(lag), lag === 1 ? "record" : "records", lagNote(lag, perSecond));
  const fresh = recent(columns.fresh, 10).at(-1) ?? null;
  const worst = Math.max(...recent(columns.freshWorst, 60), -Infinity);
  figures.fresh.set(...durationParts(fresh === null ? null : fresh * 1000), Number.isFinite(worst) ? `worst of a minute ${milliseconds(worst)}` : "no record in this minute");
  drawBehind(figures.behind, status);
  const unit = status.units.find((each) => each.name === "main");
  const last = unit?.last;
  const total = last ? Object.values(last.milliseconds).reduce((sum, each) => sum + each, 0) : null;
  figures.turn.set(...durationParts(total === null ? null : total * 1000), last ? `${last.gear} gear, turn ${count(unit.turn)}` : "no turn yet");
};

const lagNote = (lag, perSecond) => {
  if (lag === 0) return "everything is read";
  return perSecond ? `about ${duration((lag / perSecond) * 1e6)} of reading` : "not being read";
};

const drawBehind = (target, status) => {
  const known = status.streams.map((each) => [each.name, behindUs(status, each)]).filter(([, us]) => us !== null);
  const [name, worst] = known.sort(([, left], [, right]) => right - left)[0] ?? [null, null];
  target.set(...durationParts(worst), name === null ? "no stream has one yet" : known.length === 1 ? `stream ${name}` : `furthest: ${name}`);
};

const drawPlots = (plots, columns, seconds) => {
  // All plots have the same time axis, so that what happened at one moment stands above each other.
  const now = live.status.taken_us / 1e6 - 1;
  const first = Math.min(columns.xs[0] ?? now, live.samples[0].atUs / 1e6);
  const range = [Math.max(now - seconds, Math.min(first, now - MIN_RANGE_SECONDS)), now];
  plots.throughput.set(["records"], columns.xs, [columns.records], range);
  plots.fresh.set(["median", "worst"], columns.xs, [columns.fresh, columns.freshWorst], range);
  plots.steps.set(STEPS, columns.xs, columns.steps, range);
  const points = lagPoints(range[0]);
  const xs = points.map((each) => each.second);
  plots.lag.set(["records"], xs, [points.map((each) => each.lag)], range);
  const names = [...(live.samples.at(-1)?.behindUs.keys() ?? [])].sort().slice(0, MAX_STREAMS);
  plots.behind.set(names, xs, names.map((name) => points.map((each) => each.behind[name] ?? null)), range);
};

/** Lag and watermarks: what this page saw itself, and before that what the turns tell. */
const lagPoints = (from) => {
  const seconds = (us) => (us === null ? null : us / 1e6);
  const own = live.samples.map((each) => ({ second: each.atUs / 1e6, lag: each.lag, behind: Object.fromEntries([...each.behindUs].map(([name, us]) => [name, seconds(us)])) }));
  return [...turns.past(own[0].second), ...own].filter((each) => each.second >= from);
};
