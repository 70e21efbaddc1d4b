/** The head of the page of one thing: what it is, its name, its state, and what can be done. */

import { h, replace } from "../dom.js";
import { hrefOf } from "../router.js";
import { stateTag } from "../parts/state.js";

/**
 * @param {{kind: string, name: string, actions?: (Node | null)[]}} options
 */
export const pageHead = ({ kind, name, actions = [] }) => {
  const state = stateTag("starting", "…", "state");
  const element = h("div", { class: "page-head" }, h("h1", { data: { testid: "page-name" } }, h("span", { class: "kind" }, `${kind} `), name), state, h("div", { class: "actions" }, actions));
  return { element, state };
};

/** What is shown instead of a page when the engine does not know the name. */
export const notFound = (main, kind, name) =>
  replace(main, h("div", { class: "state-note", data: { testid: "not-found" } }, h("p", null, `The engine knows no ${kind} `, h("code", null, name), "."), h("a", { href: hrefOf(kind === "view" ? "views" : "streams") }, `All ${kind === "view" ? "views" : "streams"}`)));
