/** Beside the console: the names that can be asked for, and what was asked before. */

import { h, replace } from "../dom.js";
import { empty, panel } from "../parts/panel.js";

const MAX_OPEN = 200;

const quoted = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

/** @param {{definitions: any, onChoose: (name: string) => void}} options */
export const namesPanel = ({ definitions, onChoose }) => {
  const views = (definitions?.views ?? []).filter((each) => each.topic === null || each.topic === undefined);
  const put = (name) => h("button", { type: "button", title: `Insert ${name}`, on: { click: () => onChoose(quoted(name)) } }, name);
  const list = h("div", { class: "names side-list" });
  const draw = (wanted) => {
    const found = views.filter((each) => each.name.toLowerCase().includes(wanted));
    const entries = found.slice(0, MAX_OPEN).map((view) =>
      h("details", null, h("summary", null, view.name), h("ul", null, h("li", null, put(view.name), h("span", { class: "type" }, "view")), view.columns.map((column) => h("li", null, put(column.name), h("span", { class: "type", title: column.type }, column.type))))),
    );
    replace(list, entries.length > 0 ? entries : empty(views.length === 0 ? "There is no view yet." : "No view has such a name."));
  };
  const input = h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter names", on: { input: () => draw(input.value.toLowerCase()) } });
  draw("");
  return panel({ title: "Views and columns", flush: true, actions: views.length > 8 ? [input] : undefined }, list).element;
};

/** @param {{onChoose: (sql: string) => void}} options */
export const historyPanel = ({ onChoose }) => {
  const { element, body } = panel({ title: "Asked before", note: "in this browser", flush: true });
  return {
    element,
    update: (queries) => {
      const entry = (sql) => h("li", null, h("button", { type: "button", title: sql.slice(0, 2000), on: { click: () => onChoose(sql) } }, sql.replace(/\s+/g, " ").slice(0, 200)));
      replace(body, queries.length > 0 ? h("ul", { class: "history side-list", data: { testid: "history" } }, queries.map(entry)) : empty("Nothing yet."));
    },
  };
};
