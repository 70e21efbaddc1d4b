/**
 * The parts of CodeMirror that the SQL console uses, as one file.
 *
 * CodeMirror 6 and not 5: version 5 needs no bundling, but only gets repairs, types badly on phones
 * and is hard to read for screen readers. Version 6 can also be mounted in a shadow root, where it
 * styles itself with a constructed style sheet, which a Content-Security-Policy without
 * 'unsafe-inline' allows.
 */
export { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { SQLDialect, PostgreSQL, keywordCompletionSource, schemaCompletionSource, sql } from "@codemirror/lang-sql";
export { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
export { Compartment, EditorState, Prec } from "@codemirror/state";
export { EditorView, drawSelection, highlightSpecialChars, keymap, placeholder } from "@codemirror/view";
export { classHighlighter, highlightCode, tags } from "@lezer/highlight";
