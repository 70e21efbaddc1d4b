/** Tabs whose contents are made when they are first opened, and closed when another one is. */

import { h, replace, setAttribute } from "../dom.js";
import { Scope } from "../scope.js";

/**
 * @param {{label: string, scope: Scope, chosen?: string, onChoose?: (id: string) => void,
 *   tabs: {id: string, title: string, flush?: boolean, open: (body: HTMLElement, scope: Scope) => void}[]}} options
 */
export const tabs = ({ label, scope, tabs: all, chosen, onChoose }) => {
  const body = h("div", { class: "tab-body", role: "tabpanel", tabindex: "0" });
  let inner = null;
  let open = "";
  const buttons = new Map();
  const counts = new Map();

  const choose = (id, focus = false) => {
    const tab = all.find((each) => each.id === id) ?? all[0];
    inner?.close();
    inner = new Scope(scope);
    open = tab.id;
    for (const [each, button] of buttons) {
      setAttribute(button, "aria-selected", String(each === tab.id));
      setAttribute(button, "tabindex", each === tab.id ? "0" : "-1");
    }
    if (focus) buttons.get(tab.id).focus();
    setAttribute(body, "class", `tab-body${tab.flush ? " flush" : ""}`);
    setAttribute(body, "aria-label", tab.title);
    replace(body);
    tab.open(body, inner);
  };

  const move = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const ids = all.map((each) => each.id);
    const at = ids.findIndex((each) => buttons.get(each).getAttribute("aria-selected") === "true");
    const next = ids[(at + step + ids.length) % ids.length];
    choose(next, true);
    onChoose?.(next);
  };

  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label, on: { keydown: move } });
  for (const tab of all) {
    const number = h("span", { class: "count", hidden: true });
    const click = () => {
      choose(tab.id);
      onChoose?.(tab.id);
    };
    const button = h("button", { type: "button", role: "tab", data: { testid: `tab-${tab.id}` }, on: { click } }, tab.title, number);
    buttons.set(tab.id, button);
    counts.set(tab.id, number);
    list.append(button);
  }
  choose(chosen);
  return {
    element: h("section", { class: "panel span-12" }, list, body),
    /** Make the contents of the open tab anew: what they tell of has changed. */
    again: () => choose(open),
    /** Show a number beside the name of a tab; none for 0. */
    setCount: (id, text, tone = "") => {
      const number = counts.get(id);
      number.hidden = !text;
      number.textContent = text;
      setAttribute(number, "class", `count ${tone}`.trim());
    },
  };
};
