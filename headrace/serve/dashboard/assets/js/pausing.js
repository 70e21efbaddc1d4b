/** Pause and resume a view or a sink. */

import { at, postJson } from "./api.js";
import { h, setText } from "./dom.js";
import { live } from "./live.js";
import { confirm } from "./parts/dialog.js";
import { isAdmin } from "./session.js";

/**
 * A button that pauses or resumes; null for who may not.
 * @param {{kind: "view" | "sink", name: string, state: () => string | undefined, scope: import("./scope.js").Scope, onError: (error: Error | null) => void}} options
 * `onError` is told null when another attempt begins.
 */
export const pauseButton = ({ kind, name, state, scope, onError }) => {
  if (!isAdmin()) return null;
  const button = h("button", { type: "button", data: { testid: "pause" } });
  const draw = () => {
    const paused = state() === "paused";
    setText(button, paused ? "Resume" : "Pause");
    button.hidden = !["live", "paused", "failed"].includes(state());
  };
  const paused = () => ({
    title: `Pause ${kind} ${name}?`,
    text: kind === "view" ? "Its rows stay as they are and are marked as paused. Nothing is lost: after a resume it goes on where it stopped." : "Its changes are kept until it is resumed; nothing is lost.",
    yes: "Pause",
  });
  const resumed = () => ({ title: `Resume ${kind} ${name}?`, text: "It goes on where it stopped, and catches up.", yes: "Resume" });
  button.addEventListener("click", async () => {
    const action = state() === "paused" ? "resume" : "pause";
    if (!(await confirm(action === "pause" ? paused() : resumed()))) return;
    button.disabled = true;
    onError(null);
    await scope.run(async (signal) => {
      const path = kind === "view" ? at`/v1/views/${name}/${action}` : at`/v1/sinks/${name}/${action}`;
      await postJson(path, undefined, { signal });
      await live.refresh();
    }, onError);
    button.disabled = false;
    draw();
  });
  scope.listen(live, "status", draw);
  draw();
  return button;
};
