/**
 * A table of rows with keys. A row keeps its element for as long as it is there, and a cell is
 * touched only when its text changes, so nothing jumps and a selection stays. At most `pageRows`
 * rows are in the page; the rest is a page further.
 */

import { h, replace, setAttribute, setText } from "../dom.js";
import { count, counted } from "../format.js";
import { compareSorted, rankOf } from "../types.js";
import { fillCell, flash, listenToCells, newCell, oneStop } from "./cells.js";

/**
 * `text` is null for NULL; `value` is what the column is sorted by.
 * @typedef {{name: string, label?: string, type?: string, kind?: string, text: (row: any) => string | null,
 *   value?: (row: any) => any, href?: (row: any) => string | null, tag?: (row: any) => {tone: string, glyph: string} | null,
 *   tone?: (row: any) => string, mono?: boolean, sortable?: boolean}} Column
 */

const PAGE_ROWS = 100;
export class Table {
  #columns;
  #rows = [];
  #page = 0;
  #sort;
  #held = null;
  #elements = new Map();
  #options;

  /**
   * @param {{columns: Column[], keyOf: (row: any, index: number) => string, sort?: {name: string, descending: boolean} | null,
   *   onSort?: (sort: any) => void, caption: string, testid?: string, rowClass?: (row: any) => string, tall?: boolean,
   *   flash?: boolean, noun?: string, sorted?: boolean, ties?: boolean, emptyText?: string, pageRows?: number}} options
   */
  constructor(options) {
    this.#options = { pageRows: PAGE_ROWS, noun: "row", ...options };
    this.#sort = options.sort ?? null;
    this.head = h("tr");
    this.body = h("tbody");
    this.table = h("table", { class: "data", data: options.testid ? { testid: options.testid } : {} }, h("caption", { class: "hidden-text" }, options.caption), h("thead", null, this.head), this.body);
    this.box = h("div", { class: `table-box${options.tall ? " tall-box" : ""}`, role: "region", tabindex: "0", "aria-label": options.caption }, this.table);
    this.summary = h("span", { data: { testid: "table-summary" } });
    this.pages = h("span");
    this.foot = h("div", { class: "table-foot" }, this.summary, this.#pager());
    this.none = h("div", { class: "state-note", hidden: true }, options.emptyText ?? "");
    this.element = h("div", null, this.box, this.none, this.foot);
    this.setColumns(options.columns);
    // Who points at a row wants to read it: the order is held until the pointer is elsewhere.
    this.body.addEventListener("pointerenter", () => this.#hold());
    this.body.addEventListener("pointerleave", () => this.#release());
    listenToCells(this.body, (cell) => this.#wholeText(cell));
  }

  #pager() {
    const turn = (step) => () => {
      this.#page += step;
      this.#held = null;
      this.#draw();
    };
    this.back = h("button", { type: "button", "aria-label": "Previous page", on: { click: turn(-1) } }, "‹");
    this.forward = h("button", { type: "button", "aria-label": "Next page", on: { click: turn(1) } }, "›");
    this.pager = h("div", { class: "pager" }, this.back, this.pages, this.forward);
    return this.pager;
  }

  /** Use other columns; rows are drawn anew. */
  setColumns(columns) {
    this.#columns = columns;
    this.#elements.clear();
    this.body.replaceChildren();
    replace(this.head, columns.map((column) => this.#header(column)));
    this.#markSort();
  }

  #header(column) {
    const number = column.kind === "number";
    const title = [column.label ?? column.name, column.type && h("span", { class: "type" }, ` ${column.type}`)];
    const sortable = column.sortable !== false;
    const content = sortable ? h("button", { type: "button", on: { click: () => this.#sortBy(column) } }, h("span", null, title), h("span", { "aria-hidden": "true", class: "arrow" })) : title;
    return h("th", { scope: "col", class: number ? "num" : null, data: { column: column.name } }, content);
  }

  #sortBy(column) {
    const same = this.#sort?.name === column.name;
    const first = column.kind === "number" || column.kind === "time"; // largest and newest first
    this.#sort = { name: column.name, descending: same ? !this.#sort.descending : first };
    this.#page = 0;
    this.#held = null;
    this.#markSort();
    this.#options.onSort?.(this.#sort);
    this.#draw();
  }

  #markSort() {
    for (const cell of this.head.children) {
      const chosen = cell.dataset.column === this.#sort?.name;
      const way = this.#sort?.descending ? "descending" : "ascending";
      setAttribute(cell, "aria-sort", chosen ? way : null);
      const arrow = cell.querySelector(".arrow");
      if (arrow) setText(arrow, chosen ? (this.#sort.descending ? "▼" : "▲") : "");
    }
  }

  /** Show these rows. `total` is their number where only some of them were sent. */
  update(rows, { total = rows.length, note = "" } = {}) {
    this.#rows = rows;
    this.total = total;
    this.note = note;
    this.#draw();
  }

  #hold() {
    this.#held = new Map(this.#ordered().map((row, index) => [this.#options.keyOf(row, index), index]));
  }

  #release() {
    this.#held = null;
    this.#draw();
  }

  #ordered() {
    const column = this.#columns.find((each) => each.name === this.#sort?.name);
    if (!column || this.#options.sorted) return this.#rows;
    const value = column.value ?? column.text;
    const { keyOf, ties } = this.#options;
    const ranked = this.#rows.map((row) => ({ row, rank: rankOf(column.kind ?? "text", value(row)) }));
    // Equal values stand in the order of their keys: otherwise rows would change places by chance.
    const tie = (left, right) => (!ties ? 0 : keyOf(left.row) < keyOf(right.row) ? -1 : 1);
    ranked.sort((left, right) => compareSorted(left.rank, right.rank, this.#sort.descending) || tie(left, right));
    return ranked.map((each) => each.row);
  }

  #heldOrder(rows) {
    if (this.#held === null) return rows;
    const place = (row) => this.#held.get(this.#options.keyOf(row)) ?? Infinity;
    return [...rows].sort((left, right) => place(left) - place(right) || 0);
  }

  #draw() {
    const { pageRows, keyOf } = this.#options;
    const rows = this.#heldOrder(this.#ordered());
    const last = Math.max(0, Math.ceil(rows.length / pageRows) - 1);
    this.#page = Math.min(Math.max(0, this.#page), last);
    const shown = rows.slice(this.#page * pageRows, (this.#page + 1) * pageRows);
    const keys = shown.map((row, index) => keyOf(row, index));
    this.#forget(new Set(keys));
    let before = null;
    shown.forEach((row, index) => {
      const element = this.#rowElement(keys[index], row);
      const next = before === null ? this.body.firstChild : before.nextSibling;
      if (next !== element) this.body.insertBefore(element, next);
      before = element;
    });
    oneStop(this.body);
    this.#drawFoot(rows.length, last);
  }

  #forget(kept) {
    for (const [key, { element }] of this.#elements) {
      if (kept.has(key)) continue;
      element.remove();
      this.#elements.delete(key);
    }
  }

  #rowElement(key, row) {
    let found = this.#elements.get(key);
    const fresh = found === undefined;
    if (fresh) {
      found = { element: h("tr", { data: { testid: "row", key } }), texts: [] };
      found.element.append(...this.#columns.map((column) => newCell(column, row)));
      this.#elements.set(key, found);
    }
    setAttribute(found.element, "class", this.#options.rowClass?.(row) || null);
    this.#columns.forEach((column, index) => this.#fillCell(found, column, row, index, fresh));
    return found.element;
  }

  #fillCell(found, column, row, index, fresh) {
    const text = column.text(row);
    const tone = column.tone?.(row) ?? "";
    const href = column.href?.(row) ?? "";
    const mark = `${text === null ? "\0" : text}\n${tone}\n${href}`;
    if (found.texts[index] === mark) return;
    found.texts[index] = mark;
    const cell = found.element.children[index];
    fillCell(cell, column, row, text, tone);
    if (!fresh && this.#options.flash) flash(cell);
  }

  /** The name of a cell's column and its whole text. */
  #wholeText(cell) {
    const key = cell.parentElement.dataset.key;
    const column = this.#columns.find((each) => each.name === cell.dataset.column);
    const row = this.#rows.find((each, index) => this.#options.keyOf(each, index) === key);
    return column && row ? { title: column.label ?? column.name, text: column.text(row) ?? "NULL" } : null;
  }

  #drawFoot(length, last) {
    const { noun, pageRows } = this.#options;
    const from = this.#page * pageRows;
    const range = length > pageRows ? `${count(from + 1)}–${count(Math.min(length, from + pageRows))} of ` : "";
    const some = this.total > length ? ` (of ${count(this.total)})` : "";
    setText(this.summary, `${range}${counted(length, noun)}${some}${this.note ? ` · ${this.note}` : ""}`);
    this.pager.hidden = last === 0;
    this.none.hidden = length > 0 || !this.#options.emptyText;
    setText(this.pages, `page ${count(this.#page + 1)} of ${count(last + 1)}`);
    this.back.disabled = this.#page === 0;
    this.forward.disabled = this.#page === last;
  }
}
