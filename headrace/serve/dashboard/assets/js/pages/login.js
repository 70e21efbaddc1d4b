/** Log in, for who did not come by the link that the engine printed. */

import { h } from "../dom.js";
import { logIn } from "../session.js";

/** @param {{onDone: () => void, message?: string}} options */
export const loginPage = ({ onDone, message = "" }) => {
  const field = h("input", { type: "password", id: "token", name: "token", required: true, autocomplete: "current-password", spellcheck: "false", data: { testid: "token" } });
  const error = h("p", { role: "alert", class: "notice bad", data: { testid: "login-error" } });
  const button = h("button", { class: "primary", data: { testid: "login" } }, "Log in");
  const say = (text) => {
    error.textContent = text;
    error.hidden = text === "";
  };
  const submit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    say("");
    try {
      await logIn(field.value.trim());
      onDone();
    } catch (problem) {
      say(problem.status === 401 ? "This token is not valid, or it has expired." : problem.message);
      field.select();
    }
    button.disabled = false;
  };
  say(message);
  const element = h(
    "main",
    { id: "main", tabindex: "-1" },
    h(
      "section",
      { class: "panel login", "aria-label": "Log in" },
      h("div", { class: "brand" }, h("img", { src: "/assets/icon.svg", alt: "" }), "Headrace"),
      h("p", null, "Open the link that the engine printed when it started. It looks like ", h("code", null, "http://127.0.0.1:8080/#token=…"), ". This command prints it again:"),
      h("pre", { class: "code" }, "headrace dashboard"),
      h("form", { on: { submit } }, h("label", { for: "token" }, "Or paste a token", field), error, button),
    ),
  );
  return { element, focus: () => field.focus() };
};
