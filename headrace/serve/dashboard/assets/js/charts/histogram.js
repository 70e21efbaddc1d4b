/** How late records come: a bar for each range of lateness, with the delay drawn in. */

import { s } from "../dom.js";
import { counted, duration, short } from "../format.js";

const HEIGHT = 240;
const TOP = 34;
const BOTTOM = 44;
const LEFT = 48;
const RIGHT = 26;

/**
 * Counts stand on a logarithmic scale: the few records far behind are what the delay is about.
 * @param {{histogram: {from_us: number, to_us: number, records: number}[], delay_us: number, suggested_delay_us: number | null}} found
 * @param {number} width in pixels
 */
export const drawHistogram = (found, width) => {
  const buckets = found.histogram;
  const most = Math.max(1, ...buckets.map((each) => each.records));
  const top = Math.ceil(Math.log10(most) + 0.0001);
  const step = (width - LEFT - RIGHT) / Math.max(1, buckets.length);
  const y = (records) => (records <= 0 ? HEIGHT - BOTTOM : HEIGHT - BOTTOM - 4 - (Math.log10(records) / top) * (HEIGHT - TOP - BOTTOM - 4));
  const x = (us) => LEFT + step * placeOf(buckets, us);
  const picture = s("svg", { class: "histogram", viewBox: `0 0 ${width} ${HEIGHT}`, width, height: HEIGHT, role: "img", "aria-label": describe(found), "data-testid": "lateness-histogram" });
  for (let power = 0; power <= top; power += 1) {
    const at = y(10 ** power);
    picture.append(s("line", { class: "gridline", x1: LEFT, x2: width - RIGHT, y1: at, y2: at }), s("text", { x: LEFT - 8, y: at + 4, "text-anchor": "end" }, short(10 ** power)));
  }
  const everySecond = step < 44 ? 2 : 1;
  buckets.forEach((bucket, index) => {
    const left = LEFT + index * step;
    const behind = bucket.from_us >= found.delay_us && bucket.to_us > found.delay_us;
    const bar = s("rect", { class: `bar${behind ? " behind" : ""}`, x: left + 2, width: Math.max(1, step - 4), y: y(bucket.records), height: HEIGHT - BOTTOM - y(bucket.records), rx: 2 }, s("title", null, `${rangeText(bucket)}: ${counted(bucket.records, "record")}`));
    picture.append(bar);
    if (index % everySecond === 0) picture.append(s("text", { x: left + step, y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, boundText(bucket.to_us)));
  });
  picture.append(s("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
  picture.append(s("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 8, "text-anchor": "middle" }, "lateness, at most"));
  mark(picture, x(found.delay_us), "delay", `delay ${duration(found.delay_us)}`, width, 12);
  if (found.suggested_delay_us !== null && found.suggested_delay_us !== undefined && found.suggested_delay_us !== found.delay_us) {
    mark(picture, x(found.suggested_delay_us), "suggested", `suggested ${duration(found.suggested_delay_us)}`, width, 26);
  }
  return picture;
};

const mark = (picture, at, name, text, width, y) => {
  const end = at > width * 0.7;
  picture.append(
    s("line", { class: name, x1: at, x2: at, y1: y + 2, y2: HEIGHT - BOTTOM }),
    s("text", { class: `${name}-label`, x: at + (end ? -5 : 5), y, "text-anchor": end ? "end" : "start" }, text),
  );
};

/** Where a lateness stands among the buckets, which are of different widths, in buckets. */
const placeOf = (buckets, us) => {
  const index = buckets.findIndex((each) => us <= each.to_us);
  if (index < 0) return buckets.length;
  const { from_us: from, to_us: to } = buckets[index];
  return index + (to <= from ? 1 : Math.min(1, Math.max(0, (us - from) / (to - from))));
};

const boundText = (us) => duration(us).replace(" ", " ");

export const rangeText = (bucket) => (bucket.to_us <= 0 ? "not late" : `${duration(Math.max(0, bucket.from_us))} to ${duration(bucket.to_us)}`);

const describe = (found) => `Lateness of records; the delay is ${duration(found.delay_us)}. ${found.histogram.map((each) => `${rangeText(each)}: ${each.records}`).join("; ")}`;
