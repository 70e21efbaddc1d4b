/** Questions that need an answer before something is changed, and texts that are too long for their place. */

import { h } from "../dom.js";

/**
 * Ask; resolves to whether the answer was yes. Escape is no.
 * @param {{title: string, text: string, yes: string}} question
 * @returns {Promise<boolean>}
 */
export const confirm = ({ title, text, yes }) =>
  new Promise((resolve) => {
    const dialog = h(
      "dialog",
      { "aria-label": title, data: { testid: "confirm" } },
      h("h2", null, title),
      h("p", null, text),
      h(
        "form",
        { method: "dialog", class: "dialog-actions" },
        h("button", { value: "no" }, "Cancel"),
        h("button", { value: "yes", class: "primary", data: { testid: "confirm-yes" } }, yes),
      ),
    );
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });

/** Show a whole text. @param {{title: string, text: string}} shown */
export const showText = ({ title, text }) => {
  const dialog = h(
    "dialog",
    { class: "whole-text", "aria-label": title, data: { testid: "whole-text" } },
    h("h2", null, title),
    h("pre", { class: "code", tabindex: "0" }, text),
    h("form", { method: "dialog", class: "dialog-actions" }, h("button", { class: "primary" }, "Close")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
};
