/** A figure: its name, a large number with its unit, and a line about it. */

import { h, setAttribute, setText } from "../dom.js";

/**
 * @param {{label: string, testid: string, href?: string}} options
 * @returns {{element: HTMLElement, set: (value: string, unit?: string, note?: string, alarm?: "" | "warn" | "bad") => void, link: (href: string) => void}}
 */
export const figure = ({ label, testid, href }) => {
  const value = h("span", { data: { testid } });
  const unit = h("span", { class: "figure-unit" });
  const note = h("span", { class: "figure-note", data: { testid: `${testid}-note` } });
  const element = h(
    href === undefined ? "div" : "a",
    { class: "figure", href },
    h("span", { class: "figure-label" }, label),
    h("span", { class: "figure-value" }, value, unit),
    note,
  );
  return {
    element,
    set: (text, unitText = "", noteText = "", alarm = "") => {
      setText(value, text);
      setText(unit, unitText);
      setText(note, noteText);
      setAttribute(note, "title", noteText || null); // it is cut off where there is no room
      setAttribute(element, "class", `figure${alarm ? " alarm" : ""}${alarm === "bad" ? " bad" : ""}`);
      setAttribute(element, "data-alarm", alarm || null);
    },
    link: (target) => setAttribute(element, "href", target),
  };
};
