/** Find a view, a stream, a topic or a sink by its name. */

import { h, replace, setAttribute } from "./dom.js";
import { live } from "./live.js";
import { go, hrefOf } from "./router.js";

const MAX_FOUND = 12;

const candidates = () => {
  const known = live.definitions;
  if (known === null) return [];
  const of = (kind, entries) => entries.map((each) => ({ kind, name: each.name }));
  return [...of("view", known.views), ...of("stream", known.streams.filter((each) => each.kind !== "table")), ...of("sink", known.sinks), ...of("topic", [...new Set(known.streams.map((each) => each.topic))].map((name) => ({ name })))];
};

const find = (text) => {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return [];
  const place = (each) => each.name.toLowerCase().indexOf(wanted);
  return candidates().filter((each) => place(each) >= 0).sort((left, right) => place(left) - place(right) || left.name.length - right.name.length).slice(0, MAX_FOUND);
};

export const searchPart = () => {
  const list = h("div", { class: "search-list", role: "listbox", id: "search-list", "aria-label": "Found", hidden: true });
  const input = h("input", { type: "search", placeholder: "Search", "aria-label": "Search for a view or a stream", role: "combobox", "aria-expanded": "false", "aria-controls": "search-list", autocomplete: "off", data: { testid: "search" } });
  const element = h("div", { class: "search" }, input, h("kbd", { "aria-hidden": "true" }, "/"), list);
  let found = [];
  let chosen = 0;

  const close = () => {
    list.hidden = true;
    setAttribute(input, "aria-expanded", "false");
  };
  const open = (each) => {
    input.value = "";
    close();
    input.blur();
    go(hrefOf(each.kind, each.name));
  };
  const draw = () => {
    found = find(input.value);
    chosen = Math.min(chosen, Math.max(0, found.length - 1));
    list.hidden = input.value.trim() === "";
    setAttribute(input, "aria-expanded", String(!list.hidden));
    setAttribute(input, "aria-activedescendant", found.length > 0 ? `found-${chosen}` : null);
    const options = found.map((each, index) => {
      const pick = (event) => {
        event.preventDefault();
        open(each);
      };
      return h("div", { role: "option", id: `found-${index}`, "aria-selected": String(index === chosen), on: { mousedown: pick } }, h("span", null, each.name), h("span", { class: "soft" }, each.kind));
    });
    replace(list, options.length > 0 ? options : h("div", { class: "none" }, "No name contains this."));
  };
  input.addEventListener("input", () => {
    chosen = 0;
    draw();
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      input.value = "";
      close();
      input.blur();
    } else if (event.key === "Enter" && found[chosen] && !list.hidden) {
      open(found[chosen]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : -1) + found.length) % Math.max(1, found.length);
      draw();
    }
  });
  return { element, focus: () => input.focus() };
};
