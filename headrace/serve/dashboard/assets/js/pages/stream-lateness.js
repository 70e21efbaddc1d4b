/** How late the records of a stream come, and what its views lose to the delay. */

import { ApiError, at, getJson } from "../api.js";
import { drawHistogram, rangeText } from "../charts/histogram.js";
import { h, replace, setText } from "../dom.js";
import { count, counted, duration } from "../format.js";
import { empty, failed, loading, panel } from "../parts/panel.js";
import { hrefOf } from "../router.js";

const POLL_MS = 5_000;

export const latenessPanel = ({ name, scope, span }) => {
  const { element, body } = panel({ title: "Lateness", note: "records, by how far behind the clock of their partition they come", span }, loading());
  const picture = latenessPicture();
  let found = null;
  const draw = () => {
    if (found === null) return;
    if (found.histogram.length === 0) return void replace(body, empty("No record yet."));
    if (body.firstChild !== picture.element) replace(body, picture.element);
    picture.update(found, Math.max(280, body.clientWidth - 32));
  };
  const resize = new ResizeObserver(draw);
  resize.observe(element);
  scope.defer(() => resize.disconnect());
  scope.every(
    POLL_MS,
    async (signal) => {
      found = await getJson(at`/v1/streams/${name}/lateness`, { signal });
      draw();
    },
    (error) => {
      if (error instanceof ApiError && [400, 404].includes(error.status)) replace(body, empty(error.message));
      else if (found === null) replace(body, failed(error));
    },
  );
  return element;
};

/** What can be opened or followed stays while the numbers change, and keeps the focus. */
const latenessPicture = () => {
  const drawing = h("div");
  const sentence = h("p", { class: "small soft" });
  const losses = h("ul", { class: "small" });
  const numbers = h("ul");
  const shown = new Map();
  return {
    element: h("div", null, drawing, sentence, losses, h("details", { class: "small", data: { testid: "lateness-numbers" } }, h("summary", null, "As numbers"), numbers)),
    update: (found, width) => {
      const behind = found.histogram.filter((each) => each.from_us >= found.delay_us && each.to_us > found.delay_us).reduce((sum, each) => sum + each.records, 0);
      replace(drawing, drawHistogram(found, width));
      replace(sentence, `${counted(found.sampled_records, "record")} looked at; `, h("b", null, counted(behind, "record")), ` came more than the delay of ${duration(found.delay_us)} behind.`);
      drawLosses(losses, shown, found.views ?? []);
      replace(numbers, found.histogram.map((each) => h("li", null, `${rangeText(each)}: ${count(each.records)}`)));
    },
  };
};

const drawLosses = (list, shown, views) => {
  const names = new Set(views.map((each) => each.view));
  for (const [name, { item }] of shown) {
    if (names.has(name)) continue;
    item.remove();
    shown.delete(name);
  }
  for (const { view, late, pairs } of views) {
    if (!shown.has(view)) {
      const text = h("span");
      shown.set(view, { text, item: h("li", null, h("a", { href: hrefOf("view", view, { tab: "late" }) }, view), text) });
      list.append(shown.get(view).item);
    }
    setText(shown.get(view).text, late === null || late === undefined ? ": not known" : ` lost ${counted(late, "pair")} of ${count(pairs)}`);
  }
};
