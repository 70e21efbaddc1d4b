/**
 * What kind of values a column holds, from the name of its type. Definitions name types as Spark
 * does, answers of SQL as Arrow does.
 * @typedef {"number" | "time" | "date" | "boolean" | "bytes" | "nested" | "text"} Kind
 */

const PATTERNS = [
  ["nested", /^(array|map|struct|list|large_list|fixed_size_list|row|json)\b|\[\]$/i],
  ["time", /^timestamp/i],
  ["date", /^date/i],
  ["boolean", /^bool/i],
  ["bytes", /^(binary|blob|large_binary|fixed_size_binary)/i],
  ["number", /^(u?(tiny|small|big|huge)?int(eger)?\d*|byte|short|long|decimal|numeric|float|double|real|half)/i],
];

/** @param {string} type @returns {Kind} */
export const kindOf = (type) => {
  const name = String(type ?? "");
  if (/^interval/i.test(name)) return "text";
  return PATTERNS.find(([, pattern]) => pattern.test(name))?.[0] ?? "text";
};

/** A value of a column of numbers as a number: decimals and very large integers come as text. */
export const toNumber = (value) => {
  if (typeof value === "number") return value;
  if (typeof value !== "string" || value === "") return null;
  const number = Number(value === "inf" ? "Infinity" : value === "-inf" ? "-Infinity" : value);
  return Number.isFinite(number) ? number : null;
};

const TIME = /^(\d{4,6})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?(Z|[+-]\d\d(?::?\d\d)?)?$/i;

/**
 * A TIMESTAMP or DATE as microseconds since 1970, in full; null: it is none. Without a zone it is in
 * UTC, as for the engine.
 * @returns {bigint | null}
 */
export const toMicros = (value) => {
  const match = TIME.exec(value);
  if (match === null) return null;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map((part) => Number(part ?? 0));
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  // The 31st of February is no day, and neither is hour 25: JavaScript would count on.
  const exists = date.getUTCMonth() === month - 1 && date.getUTCDate() === day && date.getUTCHours() === hour && minute < 60 && second < 60;
  if (!exists) return null;
  const [, sign, hours, minutes] = /([+-])(\d\d):?(\d\d)?/.exec(match[8] ?? "") ?? [null, "+", 0];
  const zone = (Number(hours) * 60 + Number(minutes ?? 0)) * (sign === "-" ? -1 : 1);
  return BigInt(date.getTime() - zone * 60_000) * 1000n + BigInt((match[7] ?? "").padEnd(6, "0").slice(0, 6));
};

/** A TIMESTAMP or DATE as seconds since 1970, for the axis of a plot. */
export const toSeconds = (value) => {
  const micros = toMicros(value);
  return micros === null ? null : Number(micros) / 1e6;
};

/**
 * A value as `compareRanks` takes it, null for NULL and for what is no value of the kind. It costs
 * more than to compare, so a column that is sorted ranks each value once.
 */
export const rankOf = (kind, value) => {
  if (value === null || value === undefined) return null;
  if (kind === "number") return numberRank(value);
  if (kind === "time" || kind === "date") return typeof value === "number" ? value : toMicros(String(value));
  if (kind === "boolean") return { true: 1, false: 0 }[String(value).toLowerCase()] ?? null;
  if (kind === "bytes") return bytesRank(String(value));
  return typeof value === "object" ? JSON.stringify(value) : String(value);
};

const numberRank = (value) => {
  if (typeof value === "number") return value;
  const text = String(value).trim().toLowerCase();
  const named = { nan: NaN, inf: Infinity, "+inf": Infinity, "-inf": -Infinity }[text];
  if (named !== undefined) return named;
  if (text === "" || Number.isNaN(Number(text))) return null;
  if (/^[+-]?\d+$/.test(text)) return Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text.replace("+", ""));
  return text.replace(/\D/g, "").length <= 15 || /e/.test(text) ? Number(text) : new Decimal(text);
};

/** A decimal of more digits than a number holds. */
class Decimal {
  constructor(text) {
    this.text = text;
    this.number = Number(text);
  }

  /** As an integer, with so many digits behind the point. */
  scaled(places) {
    const [whole, fraction = ""] = this.text.replace("+", "").split(".");
    return BigInt(whole + fraction.padEnd(places, "0"));
  }

  get places() {
    return this.text.split(".")[1]?.length ?? 0;
  }
}

const bytesRank = (text) => {
  try {
    return atob(text); // a character for each byte: in the order of the bytes
  } catch {
    return null;
  }
};

/** Compare two ranks of one kind, none of them null: NaN is equal to itself and greater than all. */
export const compareRanks = (left, right) => {
  if (left instanceof Decimal || right instanceof Decimal) return compareDecimals(left, right);
  if (left < right) return -1;
  if (left > right) return 1;
  return Number(Number.isNaN(left)) - Number(Number.isNaN(right));
};

const compareDecimals = (left, right) => {
  const [one, other] = [left, right].map((each) => (each instanceof Decimal ? each.number : each));
  // To round never turns an order around: only what is equal as numbers is looked at in full.
  const order = compareRanks(one, other);
  const exact = [left, right].map((each) => (each instanceof Decimal ? each : new Decimal(String(each))));
  if (order !== 0 || !Number.isFinite(Number(one)) || exact.some((each) => /e/.test(each.text))) return order;
  const places = Math.max(...exact.map((each) => each.places));
  return compareRanks(exact[0].scaled(places), exact[1].scaled(places));
};

/** Compare two ranks of a column; NULL comes last whichever way the column is sorted. */
export const compareSorted = (left, right, descending) => {
  if (left === null || right === null) return Number(left === null) - Number(right === null);
  return descending ? -compareRanks(left, right) : compareRanks(left, right);
};
