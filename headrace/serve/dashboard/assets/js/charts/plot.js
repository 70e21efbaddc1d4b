/**
 * A plot over time: lines, or areas that are stacked. A legend below says the values under the
 * pointer, or the last ones. Colours follow the theme.
 */

import uPlot from "../../vendor/uplot.js";
import { cssVariable, h, replace, setText } from "../dom.js";
import { moment } from "../format.js";
import { themeEvents } from "../theme.js";

const SERIES_COLOURS = 8;
const MIN_SPAN_SECONDS = 30;
const DAY_SECONDS = 86_400;
const LINE = 14; // pixels, of a line of labels below the time axis
const MIN_AXIS = 58; // so that plots that stand above each other begin at the same place

const colourOf = (index) => `--series-${(index % SERIES_COLOURS) + 1}`;

/** Texts on the canvas cannot use CSS variables, and --font is a list of names. */
const fontOf = () => `11px ${cssVariable("--font")}`;

const axis = (extra) => ({
  stroke: () => cssVariable("--text-soft"),
  font: fontOf(),
  grid: { stroke: () => cssVariable("--grid"), width: 1 },
  ticks: { show: false },
  ...extra,
});

/** How much room the labels of the time axis take: one line, or two with a date. */
const timeAxisSize = (_plot, labels) => LINE * (labels?.some((each) => each.includes("\n")) ? 3 : 2);

/** Measures texts. Not the plot's own context: uPlot remembers which font it has set there. */
const ruler = document.createElement("canvas").getContext("2d");

/** How much room the widest label of the y axis takes. */
const axisSize = (_plot, labels) => {
  if (!labels) return MIN_AXIS;
  const longest = labels.reduce((most, each) => (each && each.length > most.length ? each : most), "");
  ruler.font = fontOf();
  return Math.max(MIN_AXIS, Math.ceil(ruler.measureText(longest).width + 18));
};

/**
 * The times of an axis in UTC, as everywhere in Headrace. The date stands below the first time of a
 * day, unless all are of today.
 */
export const timeLabels = (splits, increment, nowMs = Date.now()) => {
  let before = dayAndTime(nowMs)[0];
  return splits.map((second) => {
    const [day, time] = dayAndTime(second * 1000);
    if (increment >= DAY_SECONDS) return day;
    const shown = time.slice(0, increment >= 60 ? 5 : increment >= 1 ? 8 : 12);
    const label = day === before ? shown : `${shown}\n${day}`;
    before = day;
    return label;
  });
};

const dayAndTime = (ms) => new Date(ms).toISOString().split("T");

/**
 * @param {{scope: import("../scope.js").Scope, label: string, format: (value: number) => string, height?: number,
 *   stacked?: boolean, testid?: string, emptyText?: string, sync?: string}} options
 * Plots with the same `sync` show the pointer at the same time.
 */
export const createPlot = ({ scope, label, format, height = 170, stacked = false, testid, emptyText = "Nothing yet", sync }) => {
  const canvas = h("div", { class: "chart", role: "img", "aria-label": label, data: testid ? { testid } : {} });
  const note = h("div", { class: "chart-empty" }, emptyText);
  const legend = h("ul", { class: "legend" });
  const element = h("div", null, canvas, legend);
  canvas.append(note);
  let plot = null;
  let names = [];
  let raw = [];
  let values = [];
  let time = null;
  let range = null;

  const build = () => {
    plot?.destroy();
    const series = names.map((name, index) => ({
      label: name,
      stroke: () => cssVariable(colourOf(index)),
      fill: stacked ? () => `${cssVariable(colourOf(index))}55` : names.length === 1 ? () => `${cssVariable(colourOf(index))}1f` : undefined,
      width: 1.5,
      points: { show: false, filter: (u, at) => lonePoints(u.data[at]), size: 5, fill: () => cssVariable(colourOf(index)) },
      spanGaps: false,
    }));
    plot = new uPlot(
      {
        width: Math.max(120, canvas.clientWidth),
        height,
        padding: [8, 26, 0, 0],
        tzDate: (second) => uPlot.tzDate(new Date(second * 1000), "Etc/UTC"),
        legend: { show: false },
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false }, ...(sync ? { sync: { key: sync } } : {}) },
        scales: { x: { time: true, range: (_u, from, to) => range ?? spanOf(from, to) }, y: { range: (_u, low, high) => rangeOf(low, high) } },
        axes: [axis({ values: (_u, splits, _axis, _space, increment) => timeLabels(splits, increment), space: 70, size: timeAxisSize }), axis({ values: (_u, splits) => splits.map(format), size: axisSize, space: 36 })],
        series: [{}, ...series],
        bands: stacked ? names.slice(1).map((_, index) => ({ series: [index + 2, index + 1] })) : [],
        hooks: { setCursor: [drawLegend] },
      },
      [[], ...names.map(() => [])],
      canvas,
    );
    time = h("li", { class: "time" });
    replace(legend, names.map((name, index) => {
      const swatch = h("span", { class: "swatch" });
      swatch.style.setProperty("--swatch", `var(${colourOf(index)})`);
      const value = h("b");
      values[index] = value;
      return h("li", null, swatch, h("span", null, name), value);
    }), time);
  };

  const drawLegend = () => {
    if (raw.length === 0 || plot === null) return;
    const hovered = plot.cursor.idx;
    const over = hovered !== null && hovered !== undefined && plot.cursor.left >= 0;
    names.forEach((_, index) => {
      const column = raw[index + 1];
      const found = over ? column[hovered] : lastOf(column);
      setText(values[index], found === null || found === undefined ? "–" : format(found));
    });
    setText(time, over ? `at ${moment(raw[0][hovered] * 1e6)}` : "");
  };

  const resize = new ResizeObserver(() => {
    if (plot !== null && canvas.clientWidth > 0) plot.setSize({ width: canvas.clientWidth, height });
  });
  resize.observe(canvas);
  scope.defer(() => {
    resize.disconnect();
    plot?.destroy();
  });
  scope.listen(themeEvents, "change", () => plot?.redraw(false, true));

  return {
    element,
    /**
     * @param {string[]} nextNames @param {number[]} xs in seconds @param {(number | null)[][]} columns one per name
     * @param {[number, number] | null} [nextRange] of the time axis; otherwise that of the data
     */
    set: (nextNames, xs, columns, nextRange = null) => {
      range = nextRange;
      if (plot === null || nextNames.join("\0") !== names.join("\0")) {
        names = nextNames;
        values = [];
        build();
      }
      raw = [xs, ...columns];
      const filled = columns.some((column) => column.some((each) => each !== null));
      note.hidden = filled;
      plot.setData([xs, ...(stacked ? stack(columns) : columns)]);
      drawLegend();
      canvas.setAttribute("aria-label", `${label}. Last: ${names.map((name, index) => `${name} ${values[index].textContent}`).join(", ")}`);
      canvas.dataset.points = String(filled ? xs.length : 0);
    },
  };
};

const lastOf = (column) => column.findLast((each) => each !== null && each !== undefined) ?? null;

/** The places of points that make no line, because there is none beside them: they are drawn as dots. */
export const lonePoints = (column) => {
  const known = (at) => column[at] !== null && column[at] !== undefined;
  return [...column.keys()].filter((at) => known(at) && !known(at - 1) && !known(at + 1));
};

const spanOf = (from, to) => {
  if (from === null || to === null) return [Date.now() / 1000 - MIN_SPAN_SECONDS, Date.now() / 1000];
  return to - from < MIN_SPAN_SECONDS ? [to - MIN_SPAN_SECONDS, to] : [from, to];
};

/** From zero where all values are positive, with a little air above. */
const rangeOf = (low, high) => {
  if (low === null || high === null || (low === 0 && high === 0)) return [0, 1];
  const room = (Math.max(high, 0) - Math.min(low, 0)) * 0.08;
  return [low < 0 ? low - room : 0, high > 0 ? high + room : 0];
};

/** The sums from the first column upwards. uPlot draws them from the largest to the smallest. */
const stack = (columns) => {
  const sums = columns.map(() => []);
  for (let at = 0; at < (columns[0]?.length ?? 0); at += 1) {
    let sum = 0;
    columns.forEach((column, index) => {
      sum = column[at] === null ? null : sum + column[at];
      sums[index].push(sum);
    });
  }
  return sums;
};
