/**
 * Records of a topic, newest first; one opens to its bytes. They are asked for once a second instead
 * of followed: a topic may take 10,000 records a second, of which a page can show the newest fifty.
 */

import { ApiError, at, getJson } from "../api.js";
import { h, replace } from "../dom.js";
import { clock, counted, hexDump, moment } from "../format.js";
import { indentJson } from "../json.js";
import { empty, facts, failed, loading } from "./panel.js";

const SHOWN = 50;
const POLL_MS = 1_000;
const PREVIEW = 300;

/**
 * Show the newest records of a topic for as long as the scope lives.
 * @param {{path: string, scope: import("../scope.js").Scope, none: string, tone?: string, testid?: string, pollMs?: number}} options
 * `path` is that of the records; `tone` colours the reason why a record was put aside.
 */
export const recordsPart = ({ path, scope, none, tone = "", testid = "record", pollMs = POLL_MS }) => {
  const list = h("ul", { class: "records", tabindex: "0", "aria-label": "Records" });
  const hold = h("button", { type: "button", "aria-pressed": "false", data: { testid: "hold" } }, "Hold");
  const note = h("span", { role: "status" });
  const bar = h("div", { class: "table-bar" }, h("span", { class: "soft small" }, `newest ${SHOWN}, newest first`), h("div", { class: "end" }, note, hold));
  const body = h("div", null, loading());
  const element = h("div", null, bar, body);
  const shown = new Map();
  let held = false;

  hold.addEventListener("click", () => {
    held = !held;
    hold.setAttribute("aria-pressed", String(held));
    note.textContent = held ? "held: new records are not shown" : "";
  });

  const draw = (records) => {
    if (records.length === 0) {
      replace(body, empty(none));
      shown.clear();
      return;
    }
    if (body.firstChild !== list) replace(body, list);
    const newest = [...records].sort((left, right) => right.arrival_us - left.arrival_us || right.offset - left.offset).slice(0, SHOWN);
    const keys = new Set(newest.map(placeOf));
    for (const [key, item] of shown) {
      if (keys.has(key)) continue;
      item.remove();
      shown.delete(key);
    }
    let before = null;
    for (const record of newest) {
      const key = placeOf(record);
      if (!shown.has(key)) shown.set(key, h("li", null, recordItem(record, tone, testid)));
      const item = shown.get(key);
      const next = before === null ? list.firstChild : before.nextSibling;
      if (next !== item) list.insertBefore(item, next);
      before = item;
    }
  };

  // An open record holds the list as well: it would slide away under who reads it.
  const reading = () => held || list.querySelector("details[open]") !== null;
  scope.every(
    pollMs,
    async (signal) => {
      if (reading()) return;
      draw((await getJson(`${path}?last=${SHOWN}`, { signal })).records);
      if (!held) note.textContent = "";
    },
    (error) => {
      if (error instanceof ApiError && error.status === 404) draw([]);
      else if (shown.size === 0) replace(body, failed(error));
      else note.textContent = error.message;
    },
  );
  return { element };
};

/** The path of a topic's records. */
export const topicRecords = (topic) => at`/v1/topics/${topic}/records`;

const placeOf = (record) => `${record.partition}@${record.offset}`;

const recordItem = (record, tone, testid) => {
  const reason = record.headers?.["headrace.reason"];
  const text = record.value ?? (record.value_base64 ? "bytes that are not UTF-8" : "no value (a tombstone)");
  const details = h(
    "details",
    { class: "record", data: { testid, place: placeOf(record) } },
    h(
      "summary",
      null,
      h("span", { class: "nowrap", title: moment(record.arrival_us) }, clock(record.arrival_us)),
      h("span", { class: "place", title: "partition@offset" }, placeOf(record)),
      h("span", { class: "content preview" }, reason && h("span", { class: `reason ${tone}`, data: { testid: "reason" } }, reason), text.slice(0, PREVIEW)),
    ),
  );
  // The body is made when it is first opened: most records never are.
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(recordBody(record, reason));
  });
  return details;
};

const recordBody = (record, reason) => {
  const headers = record.headers ?? {};
  const source = headers["headrace.topic"] ? `${headers["headrace.topic"]}/${headers["headrace.partition"]}@${headers["headrace.offset"]}` : null;
  const others = Object.entries(headers).filter(([name]) => !name.startsWith("headrace."));
  return h(
    "div",
    { class: "record-body" },
    facts([
      ["Reason", reason],
      ["Came from", source && h("code", null, source)],
      ["Arrival", moment(record.arrival_us)],
      ["Key", keyText(record)],
      ["Headers", others.length > 0 && h("code", null, others.map(([name, value]) => `${name}: ${value}`).join("\n"))],
    ]),
    valuePart(record),
  );
};

const keyText = (record) => {
  if (record.key !== null && record.key !== undefined) return h("code", null, record.key);
  return record.key_base64 ? h("code", null, `base64 ${record.key_base64}`) : "none";
};

/** The value as text or as a hex dump, with a switch. */
const valuePart = (record) => {
  const content = bytesOf(record);
  if (content === null) return h("p", { class: "soft" }, "No value.");
  const block = h("pre", { class: "code wrap", tabindex: "0", data: { testid: "raw" } });
  const buttons = ["Text", "Hex"].map((name) => h("button", { type: "button", data: { testid: `raw-${name.toLowerCase()}` } }, name));
  const show = (name) => {
    block.textContent = name === "Hex" ? hexDump(content) : indentJson(record.value ?? new TextDecoder().decode(content));
    block.classList.toggle("wrap", name !== "Hex");
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === name));
  };
  for (const button of buttons) button.addEventListener("click", () => show(button.textContent));
  show(record.value === null || record.value === undefined ? "Hex" : "Text");
  return h("div", null, h("div", { class: "controls" }, h("div", { class: "segmented", role: "group", "aria-label": "How the value is shown" }, buttons), h("span", { class: "soft small" }, counted(content.length, "byte"))), block);
};

const bytesOf = (record) => {
  if (record.value !== null && record.value !== undefined) return new TextEncoder().encode(record.value);
  if (record.value_base64 === null || record.value_base64 === undefined) return null;
  return Uint8Array.from(atob(record.value_base64), (character) => character.charCodeAt(0));
};
