/** States in words, colours and shapes: colour alone says nothing to some people. */

import { h, setAttribute, setText } from "../dom.js";

const STATES = {
  live: { tone: "good", glyph: "●" },
  up: { tone: "good", glyph: "●" },
  building: { tone: "info", glyph: "◐" },
  paused: { tone: "warn", glyph: "❚❚" },
  failed: { tone: "bad", glyph: "✕" },
  stale: { tone: "warn", glyph: "◌" },
  down: { tone: "bad", glyph: "✕" },
  idle: { tone: "", glyph: "○" },
};

/** @returns {{tone: string, glyph: string}} */
export const toneOf = (state) => STATES[state] ?? { tone: "", glyph: "○" };

/** A state as a tag. */
export const stateTag = (state, text = state, testid = "state") => {
  const tag = h("span", { class: "tag", data: { testid } });
  updateTag(tag, state, text);
  return tag;
};

/** Change a tag in its place. */
export const updateTag = (tag, state, text = state) => {
  const { tone, glyph } = toneOf(state);
  setAttribute(tag, "class", `tag ${tone}`.trim());
  setAttribute(tag, "data-glyph", glyph);
  setAttribute(tag, "data-state", state);
  setText(tag, text);
};
