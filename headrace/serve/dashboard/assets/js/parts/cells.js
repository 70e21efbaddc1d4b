/**
 * The cells of a table. A long value is cut off; a click on it, or Enter, shows the whole of it.
 * All long cells of a table are one stop of the Tab key, and the arrow keys go from one to the next.
 */

import { h, setAttribute, setText } from "../dom.js";
import { showText } from "./dialog.js";

const MAX_CELL = 400; // characters in the page
const LONG = 28; // characters that fit into the narrowest column
const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

export const newCell = (column, row) => {
  const cell = h("td", { data: { column: column.name } });
  if (column.href?.(row)) cell.append(h("a"));
  else if (column.tag) cell.append(h("span", { class: "tag" }));
  return cell;
};

export const fillCell = (cell, column, row, text, tone) => {
  const long = text !== null && text.length > LONG && !column.href;
  const classes = [column.kind === "number" && "num", column.mono && "mono", text === null && "null", tone && `tone-${tone}`, long && "long"];
  setAttribute(cell, "class", classes.filter(Boolean).join(" ") || null);
  const shown = text === null ? "NULL" : text.length > MAX_CELL ? `${text.slice(0, MAX_CELL)}…` : text;
  const target = cell.firstElementChild ?? cell;
  setText(target, shown);
  if (target.tagName === "A") setAttribute(target, "href", column.href(row));
  if (column.tag) fillTag(target, column.tag(row));
  setAttribute(cell, "title", text !== null && text.length > LONG ? text.slice(0, 4000) : null);
  if (!long) cell.removeAttribute("tabindex");
  else if (!cell.hasAttribute("tabindex")) cell.tabIndex = -1;
};

const fillTag = (target, tag) => {
  setAttribute(target, "class", `tag ${tag?.tone ?? ""}`.trim());
  setAttribute(target, "data-glyph", tag?.glyph ?? "");
};

export const flash = (cell) => {
  cell.classList.remove("changed");
  void cell.offsetWidth; // so that the animation begins again
  cell.classList.add("changed");
};

const longCells = (body) => [...body.querySelectorAll("td.long")];

/** See to it that the Tab key stops at one long cell. */
export const oneStop = (body) => {
  if (body.querySelector('td.long[tabindex="0"]') === null) longCells(body)[0]?.setAttribute("tabindex", "0");
};

/** @param {(cell: HTMLElement) => {title: string, text: string} | null} wholeText */
export const listenToCells = (body, wholeText) => {
  const open = (cell) => {
    const found = wholeText(cell);
    if (found !== null) showText(found);
  };
  body.addEventListener("click", (event) => {
    const cell = event.target.closest("td.long");
    if (cell !== null && getSelection().isCollapsed) open(cell); // who selects a part of the text does not ask for the whole
  });
  body.addEventListener("keydown", (event) => {
    if (!event.target.matches("td.long")) return;
    const cells = longCells(body);
    const next = cells[cells.indexOf(event.target) + STEPS[event.key]];
    if (event.key === "Enter") open(event.target);
    else if (next !== undefined) moveTo(event.target, next);
    else return;
    event.preventDefault();
  });
};

const moveTo = (from, to) => {
  from.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
};
