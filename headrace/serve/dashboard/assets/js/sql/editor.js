/**
 * The editor of the console. It stands in a shadow root, because there CodeMirror styles itself with
 * a constructed style sheet, which our Content-Security-Policy allows; a <style> element it would not.
 */

import {
  EditorState,
  EditorView,
  HighlightStyle,
  Prec,
  autocompletion,
  bracketMatching,
  closeBrackets,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  highlightSpecialChars,
  history,
  historyKeymap,
  keymap,
  placeholder,
  sql,
  syntaxHighlighting,
  tags,
} from "../../vendor/codemirror.js";
import { h } from "../dom.js";
import { DUCKDB } from "./dialects.js";
import { DUCKDB_FUNCTIONS } from "./words.js";

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--info)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.typeName, color: "var(--series-4)" },
  { tag: tags.comment, color: "var(--text-soft)", fontStyle: "italic" },
]);

const LOOK = EditorView.theme({
  "&": { backgroundColor: "var(--surface)", color: "var(--text)", fontSize: "13px" },
  "&.cm-focused": { outline: "none", boxShadow: "inset 3px 0 0 var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", minHeight: "120px", maxHeight: "40vh" },
  ".cm-content": { padding: "12px 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 16px" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-placeholder": { color: "var(--text-soft)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--accent-soft)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { background: "var(--accent-soft)", outline: "1px solid var(--accent)" },
  ".cm-tooltip": { background: "var(--surface)", border: "1px solid var(--line)", borderRadius: "6px", boxShadow: "var(--shadow-high)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12px", maxHeight: "14em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "2px 8px", color: "var(--text)" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { background: "var(--accent-soft)", color: "var(--text)" },
  ".cm-completionDetail": { color: "var(--text-soft)", fontStyle: "normal", marginLeft: "1em" },
  ".cm-completionIcon": { display: "none" },
});

/** Names of views with their columns, as the completion takes them. */
const schemaOf = (definitions) =>
  Object.fromEntries(
    (definitions?.views ?? [])
      .filter((view) => view.topic === null || view.topic === undefined)
      .map((view) => [view.name.replaceAll("\\", "\\\\").replaceAll(".", "\\."), view.columns.map((column) => ({ label: column.name, detail: column.type, type: "property" }))]),
  );

const functions = DUCKDB_FUNCTIONS.map((name) => ({ label: name, type: "function", detail: "function", apply: `${name}(`, boost: -2 }));

/** Offer columns of every view and functions; a name before a dot is completed by the schema. */
const completeWords = (definitions) => {
  const columns = new Map();
  for (const view of definitions?.views ?? []) for (const column of view.columns) columns.set(column.name, { label: column.name, detail: view.name, type: "property", boost: 1 });
  const options = [...columns.values(), ...functions];
  return (context) => {
    const word = context.matchBefore(/[\w$]+/);
    if (!word || (word.from > 0 && context.state.sliceDoc(word.from - 1, word.from) === ".")) return null;
    return { from: word.from, options, validFor: /^[\w$]*$/ };
  };
};

/**
 * @param {{text: string, definitions: any, onRun: () => void, onChange: (text: string) => void, scope: import("../scope.js").Scope}} options
 */
export const createEditor = ({ text, definitions, onRun, onChange, scope }) => {
  const host = h("div", { class: "editor", data: { testid: "editor" } });
  const root = host.attachShadow({ mode: "open" });
  const run = () => {
    onRun();
    return true;
  };
  const language = sql({ dialect: DUCKDB, schema: schemaOf(definitions), upperCaseKeywords: true });
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
        history(),
        drawSelection(),
        highlightSpecialChars(),
        bracketMatching(),
        closeBrackets(),
        autocompletion({ icons: false }),
        keymap.of([...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        language,
        language.language.data.of({ autocomplete: completeWords(definitions) }),
        syntaxHighlighting(COLOURS),
        LOOK,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": "SQL query" }),
        placeholder("SELECT …"),
        EditorView.updateListener.of((update) => update.docChanged && onChange(view.state.doc.toString())),
      ],
    }),
  });
  scope.defer(() => view.destroy());
  return {
    element: host,
    text: () => view.state.doc.toString(),
    set: (next) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } }),
    /** Put a name where the cursor is. */
    insert: (name) => {
      view.dispatch(view.state.replaceSelection(name));
      view.focus();
    },
    focus: () => view.focus(),
  };
};
