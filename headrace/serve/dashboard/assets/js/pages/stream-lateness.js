/** How late the records of a stream come, and what its views lose to the delay. */

import { ApiError, at, getJson } from "../api.js";
import { drawHistogram, rangeText } from "../charts/histogram.js";
import { h, replace } from "../dom.js";
import { count, counted, duration } from "../format.js";
import { empty, failed, loading, panel } from "../parts/panel.js";
import { hrefOf } from "../router.js";

const POLL_MS = 5_000;

export const latenessPanel = ({ name, scope, span }) => {
  const { element, body } = panel({ title: "Lateness", note: "records, by how far behind the clock of their partition they come", span }, loading());
  let found = null;
  const draw = () => {
    if (found !== null) replace(body, found.histogram.length === 0 ? empty("No record yet.") : drawing(found, body.clientWidth));
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

const drawing = (found, width) => {
  const room = Math.max(280, width - 32);
  const behind = found.histogram.filter((each) => each.from_us >= found.delay_us && each.to_us > found.delay_us).reduce((sum, each) => sum + each.records, 0);
  return [
    drawHistogram(found, room),
    h("p", { class: "small soft" }, `${counted(found.sampled_records, "record")} looked at; `, h("b", null, counted(behind, "record")), ` came more than the delay of ${duration(found.delay_us)} behind.`),
    lossesPart(found),
    h("details", { class: "small" }, h("summary", null, "As numbers"), h("ul", null, found.histogram.map((each) => h("li", null, `${rangeText(each)}: ${count(each.records)}`)))),
  ];
};

const lossesPart = (found) => {
  if (!found.views?.length) return null;
  const sentence = (each) => h("li", null, h("a", { href: hrefOf("view", each.view, { tab: "late" }) }, each.view), each.late === null || each.late === undefined ? ": not known" : ` lost ${counted(each.late, "pair")} of ${count(each.pairs)}`);
  return h("ul", { class: "small" }, found.views.map(sentence));
};
