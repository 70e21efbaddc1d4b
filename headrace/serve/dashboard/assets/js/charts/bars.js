/** The largest values as bars, and single values as large numbers. */

import { h, replace } from "../dom.js";
import { valueText } from "../format.js";
import { toNumber } from "../types.js";

const MAX_BARS = 15;

/**
 * @param {{name: string | null, value: any}[]} entries
 * @param {{type: string, label: string}} options of the numbers
 */
export const drawBars = (parent, entries, { type, label }) => {
  const known = entries.filter((each) => toNumber(each.value) !== null);
  const sorted = known.sort((left, right) => toNumber(right.value) - toNumber(left.value));
  const most = sorted.reduce((largest, each) => Math.max(largest, Math.abs(toNumber(each.value))), 0);
  const rows = sorted.slice(0, MAX_BARS).flatMap(({ name, value }) => {
    const fill = h("div", { class: `fill${toNumber(value) < 0 ? " negative" : ""}` });
    fill.style.width = `${most === 0 ? 0 : (Math.abs(toNumber(value)) / most) * 100}%`;
    return [
      h("div", { class: "name", title: name ?? "NULL" }, name ?? h("em", { class: "soft" }, "NULL")),
      h("div", { class: "track" }, fill),
      h("div", { class: "amount", data: { testid: "bar" } }, valueText(value, type)),
    ];
  });
  const rest = sorted.length > MAX_BARS ? h("p", { class: "soft small" }, `The ${MAX_BARS} largest of ${sorted.length}.`) : null;
  replace(parent, h("div", { class: "bars", role: "img", "aria-label": `${label}: ${sorted.slice(0, 5).map((each) => `${each.name ?? "NULL"} ${each.value}`).join(", ")}` }, rows), rest);
};

/** @param {{label: string, value: any, type: string}[]} numbers */
export const drawNumbers = (parent, numbers) =>
  replace(
    parent,
    h(
      "div",
      { class: "big-numbers" },
      numbers.map(({ label, value, type }) =>
        h("div", { class: "big-number" }, h("div", { class: "figure-label" }, label), h("div", { class: "figure-value", data: { testid: "big-number" } }, valueText(value, type) ?? "NULL")),
      ),
    ),
  );
