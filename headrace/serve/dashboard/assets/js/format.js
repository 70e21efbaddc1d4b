/** Numbers, times and values as people read them. Every figure says its unit. */

import { kindOf } from "./types.js";

const LOCALE = "en-GB"; // one form everywhere, as in the command line: 12,345.6
const WHOLE = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 0 });
const ONE = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 1, minimumFractionDigits: 0 });
const UNKNOWN = "–";

/** A count in full: 1,234,567. */
export const count = (value) => (value === null || value === undefined ? UNKNOWN : WHOLE.format(value));

/** A count and its noun: 1 record, 2 records. */
export const counted = (value, noun, plural = `${noun}s`) => `${count(value)} ${value === 1 ? noun : plural}`;

/** A number in few characters: 0.004, 940, 12.3k, 4.1M. */
export const short = (value) => {
  if (value === null || value === undefined || !Number.isFinite(value)) return UNKNOWN;
  const size = Math.abs(value);
  if (size < 10 && !Number.isInteger(value)) return String(Number(value.toPrecision(3)));
  if (size < 100 && !Number.isInteger(value)) return ONE.format(value);
  if (size < 10_000) return WHOLE.format(value);
  for (const [limit, suffix] of [[1e6, "k"], [1e9, "M"], [1e12, "G"], [1e15, "T"]]) {
    if (size < limit * 0.9995) return `${three(value / (limit / 1000))}${suffix}`;
  }
  return value.toExponential(1);
};

const three = (value) => {
  const size = Math.abs(value);
  return size >= 100 ? value.toFixed(0) : size >= 10 ? trim(value.toFixed(1)) : trim(value.toFixed(2));
};

const trim = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

/** A part of a whole: 0.13 %, 42 %, 100 %. */
export const percent = (part, whole) => {
  const value = whole ? (part / whole) * 100 : 0;
  if (value > 0 && value < 0.001) return "< 0.001 %";
  if (value > 99.5 && value < 100) return "> 99.5 %";
  return `${value >= 10 ? WHOLE.format(value) : Number(value.toPrecision(2))} %`;
};

/** A rate, as number and unit: ["1,240", "records/s"]. */
export const rate = (perSecond, noun = "records") => {
  if (perSecond === null || perSecond === undefined) return [UNKNOWN, `${noun}/s`];
  const rounded = perSecond >= 100 ? Math.round(perSecond) : Math.round(perSecond * 10) / 10;
  return [rounded >= 100_000 ? short(rounded) : ONE.format(rounded), `${noun}/s`];
};

/** A duration in microseconds, as number and unit: ["12.4", "s"]. */
export const durationParts = (us) => {
  if (us === null || us === undefined) return [UNKNOWN, ""];
  const size = Math.abs(us);
  if (size === 0) return ["0", "s"];
  if (size < 1_000) return [three(us), "µs"];
  if (size < 1_000_000) return [three(us / 1e3), "ms"];
  if (size < 120_000_000) return [three(us / 1e6), "s"];
  if (size < 7_200_000_000) return [three(us / 6e7), "min"];
  if (size < 172_800_000_000) return [three(us / 3.6e9), "h"];
  return [ONE.format(us / 8.64e10), "d"];
};

/** A duration in microseconds: 12.4 s. */
export const duration = (us) => durationParts(us).join(" ").trim();

/** Milliseconds: 84 ms, 1.2 s. */
export const milliseconds = (ms) => (ms === null || ms === undefined ? UNKNOWN : duration(ms * 1000));

/** Bytes: 12.4 MiB. */
export const bytes = (value) => {
  if (value === null || value === undefined) return UNKNOWN;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? WHOLE.format(size) : three(size)} ${units[unit]}`;
};

/** A moment in UTC, to the second: 2026-01-01 12:00:05Z. */
export const moment = (us) =>
  us === null || us === undefined ? UNKNOWN : shortenMoment(safeIso(us / 1000), 19);

/** The time of day in UTC: 12:00:05.123. */
export const clock = (us) =>
  us === null || us === undefined ? UNKNOWN : (safeIso(us / 1000) ?? String(us)).slice(11, 23);

const safeIso = (ms) => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : null);

const shortenMoment = (iso, length) => (iso === null ? "out of range" : `${iso.slice(0, length).replace("T", " ")}Z`);

/** How long ago, from one moment to another: 3 min ago. */
export const ago = (us, nowUs) => (us === null || us === undefined ? UNKNOWN : `${duration(Math.max(0, nowUs - us))} ago`);

/**
 * A value of a column as the text of a cell. NULL is `null` here: the cell says so in its own way.
 * @returns {string | null}
 */
export const valueText = (value, type) => {
  if (value === null || value === undefined) return null;
  if (typeof value === "object") return JSON.stringify(value);
  const kind = kindOf(type);
  if (kind === "number") return numberText(value, type);
  if (kind === "time") return String(value).replace("T", " ").replace(/(\.\d*?)0+Z$/, "$1Z").replace(/\.Z$/, "Z");
  return String(value);
};

/** A number keeps every digit, as a number or as text: decimals and integers beyond 2^53 come as text. */
const numberText = (value, type) => {
  const text = typeof value === "number" && /^float/i.test(type) ? singleText(value) : String(value);
  const match = /^(-?)(\d+)(\.\d+)?$/.exec(text);
  if (!match) return text; // with an exponent, NaN or infinite
  return `${match[1]}${match[2].replace(/\B(?=(\d{3})+$)/g, ",")}${match[3] ?? ""}`;
};

/** The shortest text of a FLOAT, which has seven digits or so: 0.1, where as a DOUBLE it is 0.10000000149. */
const singleText = (value) => {
  for (let digits = 6; digits < 9; digits += 1) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === value) return String(shorter);
  }
  return String(value);
};

/** Bytes as a hex dump: offset, sixteen bytes, their characters. */
export const hexDump = (content, limit = 4096) => {
  const lines = [];
  for (let at = 0; at < Math.min(content.length, limit); at += 16) {
    const line = [...content.subarray(at, at + 16)];
    const hex = line.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = line.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.padEnd(47)}  ${text}`);
  }
  if (content.length > limit) lines.push(`… ${counted(content.length - limit, "more byte")}`);
  return lines.join("\n");
};
