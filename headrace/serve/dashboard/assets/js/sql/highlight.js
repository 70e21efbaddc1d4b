/** Colours for SQL that is only shown. Names of classes: `tok-*`, in data.css. */

import { classHighlighter, highlightCode } from "../../vendor/codemirror.js";
import { h } from "../dom.js";
import { SHOWN_DIALECT } from "./dialects.js";

/** @param {string} text @returns {(Node | string)[]} */
export const highlightSql = (text) => {
  const parts = [];
  const put = (code, classes) => parts.push(classes ? h("span", { class: classes }, code) : code);
  highlightCode(text, SHOWN_DIALECT.language.parser.parse(text), classHighlighter, put, () => parts.push("\n"));
  return parts;
};
