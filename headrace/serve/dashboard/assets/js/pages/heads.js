/** The head of the page of one thing: what it is, its name, its state, and what can be done. */

import { h } from "../dom.js";
import { hrefOf } from "../router.js";
import { stateTag } from "../parts/state.js";
import { Scope } from "../scope.js";

/**
 * @param {{kind: string, name: string, actions?: (Node | null)[]}} options
 */
export const pageHead = ({ kind, name, actions = [] }) => {
  const state = stateTag("starting", "…", "state");
  const element = h("div", { class: "page-head" }, h("h1", { data: { testid: "page-name" } }, h("span", { class: "kind" }, `${kind} `), name), state, h("div", { class: "actions" }, actions));
  return { element, state };
};

/**
 * Put the parts of a page into `main`. Returns a function that is told whether the engine knows the
 * name, as often as that may have changed: while it does not, a note stands in place of the parts.
 */
export const presence = (main, kind, name, ...parts) => {
  const content = h("div", null, parts);
  const all = kind === "view" ? "views" : "streams";
  const note = h("div", { class: "state-note", hidden: true, data: { testid: "not-found" } }, h("p", null, `The engine knows no ${kind} `, h("code", null, name), "."), h("a", { href: hrefOf(all) }, `All ${all}`));
  main.append(content, note);
  return (known) => {
    content.hidden = !known;
    note.hidden = known;
    return known;
  };
};

const SETTLED_MS = 3_000;

/** Bring an element into view and keep it there while the page above it fills, until somebody moves. */
export const keepInView = (element, scope) => {
  const inner = new Scope(scope);
  const watch = new ResizeObserver(() => element.scrollIntoView({ block: "nearest" }));
  watch.observe(document.getElementById("main"));
  inner.defer(() => watch.disconnect());
  for (const type of ["wheel", "touchstart", "pointerdown", "keydown"]) inner.listen(window, type, () => inner.close(), { passive: true });
  inner.pause(SETTLED_MS).then(() => inner.close());
};
