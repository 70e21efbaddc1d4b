/** Keys for the whole page; `?` lists them. None acts while somebody types. */

import { h } from "./dom.js";
import { go, hrefOf } from "./router.js";
import { toggleTheme } from "./theme.js";

const PAGES = { o: "overview", g: "graph", v: "views", s: "streams", q: "sql" };
const HELP = [
  [["g", "o"], "Overview"],
  [["g", "g"], "Graph"],
  [["g", "v"], "Views"],
  [["g", "s"], "Streams"],
  [["g", "q"], "SQL"],
  [["/"], "Search for a view or a stream"],
  [["t"], "Light or dark"],
  [["Ctrl", "Enter"], "Run the query (SQL)"],
  [["?"], "This list"],
];
const SEQUENCE_MS = 1_200;

const isTyping = (event) => {
  const target = event.composedPath()[0];
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
};

/** @param {{onSearch: () => void}} actions */
export const listenToKeys = ({ onSearch }) => {
  let begun = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || document.querySelector("dialog[open]")) return;
    const after = performance.now() - begun < SEQUENCE_MS;
    begun = 0;
    if (after && PAGES[event.key]) go(hrefOf(PAGES[event.key]));
    else if (event.key === "g") begun = performance.now();
    else if (event.key === "t") toggleTheme();
    else if (event.key === "?") showHelp();
    else if (event.key === "/") onSearch();
    else return;
    event.preventDefault();
  });
};

export const showHelp = () => {
  const keys = HELP.flatMap(([names, text]) => [h("dt", null, names.flatMap((name, index) => [index > 0 && " ", h("kbd", null, name)])), h("dd", null, text)]);
  const dialog = h("dialog", { class: "help", "aria-label": "Keys", data: { testid: "help" } }, h("h2", null, "Keys"), h("dl", null, keys), h("form", { method: "dialog", class: "dialog-actions" }, h("button", { class: "primary" }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
};
