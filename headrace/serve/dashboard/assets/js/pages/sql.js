/** The console: ask the tables in DuckDB's SQL, and watch the answer. */

import { isAbort, isPassing, postJson, request } from "../api.js";
import { h, replace, setAttribute, setText } from "../dom.js";
import { count, counted, milliseconds } from "../format.js";
import { live } from "../live.js";
import { failed, loading } from "../parts/panel.js";
import { hrefOf, setParams } from "../router.js";
import { recall, remember } from "../stored.js";
import { answerPart } from "./sql-answer.js";
import { historyPanel, namesPanel } from "./sql-side.js";

const MAX_ROWS = 10_000;
const TIMEOUT_MS = 120_000;
const HISTORY = 30;
const MIN_RERUN_MS = 1_000;
const MAX_DRAFT = 100_000;

/** The query of a button that was pressed on another page. Only that runs unasked: a link may come from anybody. */
let pressed = null;

/** A button that leads to the console and runs a query there. */
export const queryLink = (sql) => {
  const press = (event) => {
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey) pressed = sql; // else it opens in another tab
  };
  return h("a", { class: "button", href: hrefOf("sql", null, { q: sql }), data: { testid: "open-sql" }, on: { click: press } }, "Query");
};

export const sqlPage = ({ main, scope, params }) => {
  const shared = params.get("q");
  const text = shared ?? recall("draft", "");
  const runAtOnce = pressed !== null && pressed === shared;
  pressed = null;
  const runButton = h("button", { type: "button", class: "primary", title: "Ctrl+Enter or ⌘+Enter", data: { testid: "run" } }, "Run");
  const cancelButton = h("button", { type: "button", data: { testid: "cancel" }, hidden: true }, "Cancel");
  const follow = h("input", { type: "checkbox", id: "rerun", data: { testid: "rerun" } });
  const share = h("button", { type: "button", data: { testid: "share" } }, "Copy link");
  const csv = h("button", { type: "button", data: { testid: "csv" } }, "CSV");
  const status = h("span", { class: "end", role: "status", "aria-live": "polite", data: { testid: "sql-status" } }, "Ctrl+Enter runs the query");
  const editorBox = h("div", null, loading("Loading the editor…"));
  const answer = answerPart({ scope, params });
  const side = h("div", { class: "stack span-4" });
  let editor = null;
  let running = null;
  let asked = null;
  let lastCommit = null;
  let lastEnd = 0;

  main.append(
    h("div", { class: "page-head" }, h("h1", null, "SQL"), h("span", { class: "soft" }, "Speaks DuckDB's SQL over the views; reads only.")),
    h(
      "div",
      { class: "grid" },
      h(
        "div",
        { class: "stack span-8" },
        h("section", { class: "panel", "aria-label": "Query" }, editorBox, h("div", { class: "sql-actions" }, runButton, cancelButton, h("label", { class: "inline", for: "rerun" }, follow, "Run again on change"), share, csv, status)),
        answer.element,
      ),
      side,
    ),
  );

  const setRunning = (controller) => {
    running = controller;
    cancelButton.hidden = controller === null;
    runButton.disabled = controller !== null || editor === null;
  };
  setRunning(null);

  /** Ask and show the answer. `again`: nobody pressed a button, so errors wait for a person. */
  const run = async (again = false) => {
    if (running !== null || editor === null) return;
    const sql = again ? asked : editor.text().trim();
    if (!sql) return;
    asked = sql;
    const controller = new AbortController();
    setRunning(controller);
    if (!again) {
      setText(status, "Running…");
      setParams({ q: sql });
      keep(sql);
    }
    try {
      const found = await postJson("/v1/sql", { sql, max_rows: MAX_ROWS }, { signal: AbortSignal.any([scope.signal, controller.signal]), timeoutMs: TIMEOUT_MS });
      lastCommit = found.commit;
      setText(status, `${counted(found.rows.length, "row")}${found.truncated ? " (cut off)" : ""}, commit ${count(found.commit)}, ${milliseconds(found.milliseconds)}`);
      setAttribute(status, "data-commit", found.commit);
      answer.show(found);
    } catch (error) {
      if (scope.closed) return;
      if (again && isPassing(error)) return void setText(status, `Not refreshed: ${error.message}`);
      setText(status, isAbort(error) ? "Cancelled" : "Failed");
      if (!isPassing(error)) follow.checked = false;
      if (!isAbort(error)) answer.fail(error);
    } finally {
      lastEnd = performance.now();
      setRunning(null);
    }
  };

  const keep = (sql) => {
    remember("queries", [sql, ...recall("queries", []).filter((each) => each !== sql)].slice(0, HISTORY));
    drawHistory();
  };
  const history = historyPanel({ onChoose: (sql) => editor?.set(sql) });
  const drawHistory = () => history.update(recall("queries", []));

  const download = async () => {
    const sql = editor?.text().trim();
    if (!sql) return;
    setText(status, "Making the CSV…");
    await scope.run(
      async (signal) => {
        const response = await request("/v1/sql", { method: "POST", body: { sql, max_rows: MAX_ROWS }, accept: "text/csv", signal, timeoutMs: TIMEOUT_MS });
        save(await response.blob(), "answer.csv");
        setText(status, "The CSV is downloaded");
      },
      (error) => {
        setText(status, "Failed");
        answer.fail(error);
      },
    );
  };

  const copyLink = async () => {
    const link = new URL(hrefOf("sql", null, { q: editor?.text() ?? "" }), location.href).href;
    try {
      await navigator.clipboard.writeText(link);
      setText(status, "The link is copied");
    } catch {
      setParams({ q: editor?.text() ?? "" });
      setText(status, "Copy the address of this page: it holds the query");
    }
  };

  runButton.addEventListener("click", () => run());
  cancelButton.addEventListener("click", () => running?.abort());
  csv.addEventListener("click", download);
  share.addEventListener("click", copyLink);
  scope.listen(live, "status", () => {
    const rested = performance.now() - lastEnd > MIN_RERUN_MS;
    if (follow.checked && asked !== null && rested && live.status.commit !== lastCommit) run(true);
  });

  const open = async () => {
    try {
      const { createEditor } = await import("../sql/editor.js");
      if (scope.closed) return;
      editor = createEditor({ text, definitions: live.definitions, scope, onRun: () => run(), onChange: (next) => remember("draft", next.slice(0, MAX_DRAFT)) });
      replace(editorBox, editor.element);
      setRunning(null);
      replace(side, namesPanel({ definitions: live.definitions, onChoose: (name) => editor.insert(name) }), history.element);
      drawHistory();
      if (matchMedia("(pointer: fine)").matches) editor.focus(); // on a phone the keyboard would cover the page
      if (runAtOnce) run();
      else if (shared) setText(status, "Run the query to see its answer");
    } catch (error) {
      replace(editorBox, failed(error, open));
    }
  };
  if (live.definitions !== null) open();
  else scope.listen(live, "definitions", open, { once: true });
  return "SQL";
};

const save = (blob, name) => {
  const url = URL.createObjectURL(blob);
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
};

