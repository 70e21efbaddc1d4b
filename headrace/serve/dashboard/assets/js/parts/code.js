/** SQL with colours. The highlighter comes with the editor's file, which is loaded when it is needed. */

import { h } from "../dom.js";

/** A block of text as it is. */
export const plainCode = (text, testid) => h("pre", { class: "code", tabindex: "0", data: testid ? { testid } : {} }, text);

/** A block of SQL: plain at once, with colours as soon as the highlighter is there. */
export const sqlCode = (text, testid) => {
  const block = plainCode(text, testid);
  import("../sql/highlight.js")
    .then(({ highlightSql }) => block.replaceChildren(...highlightSql(text)))
    .catch(() => {
      // The text stands there without colours.
    });
  return block;
};
