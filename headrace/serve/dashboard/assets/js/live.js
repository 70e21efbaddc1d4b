/**
 * What the engine says of itself, asked once a second for the whole page: status, definitions, and
 * what followed from them over the last minutes. Everything kept is bounded.
 */

import { ApiError, getJson } from "./api.js";
import { Scope } from "./scope.js";

const POLL_MS = 1_000;
const SAMPLES = 600;
const COUNTED_SAMPLES = 70; // counters are kept for a minute and a bit: what alarms look back on
const MAX_BACKOFF_MS = 5_000;

/**
 * One look at the engine. `counters` are by owner, and null once the sample is old.
 * @typedef {{atUs: number, lag: number, behindUs: Map<string, number | null>, counters: Map<string, any> | null}} Sample
 */

/** "stream:orders@1f2e": a version of a stream or a view. */
export const ownerOf = (kind, each) => `${kind}:${each.name}@${each.version}`;

class Live extends EventTarget {
  status = null;
  definitions = null;
  /** @type {"starting" | "up" | "down"} */
  connection = "starting";
  /** @type {ApiError | null} */
  error = null;
  /** @type {Sample[]} */
  samples = [];
  #scope = null;
  #signature = "";
  #failures = 0;

  /** Begin to ask; again after a login. */
  start() {
    this.stop();
    this.#scope = new Scope();
    this.#loop(this.#scope);
  }

  stop() {
    this.#scope?.close();
    this.#scope = null;
  }

  /** Ask now, for who changed something and wants to see it. */
  async refresh() {
    if (this.#scope !== null) await this.#ask(this.#scope.signal).catch(() => {});
  }

  async #loop(scope) {
    while (!scope.closed) {
      await this.#once(scope);
      const pause = Math.min(POLL_MS * 2 ** this.#failures, MAX_BACKOFF_MS);
      await scope.pause(document.hidden ? MAX_BACKOFF_MS : pause);
    }
  }

  async #once(scope) {
    try {
      await this.#ask(scope.signal);
      this.#failures = 0;
      this.error = null;
      this.#setConnection("up");
    } catch (error) {
      if (scope.closed) return;
      this.#failures += 1;
      this.error = error instanceof ApiError ? error : new ApiError(0, "Unreachable", String(error));
      if (this.error.status !== 401) this.#setConnection("down");
    }
  }

  async #ask(signal) {
    const status = await getJson("/v1/status", { signal });
    this.status = status;
    this.#sample(status);
    const signature = signatureOf(status);
    if (signature !== this.#signature || this.definitions === null) {
      this.definitions = await getJson("/v1/definitions", { signal });
      this.#signature = signature;
      this.#tell("definitions");
    }
    this.#tell("status");
  }

  #sample(status) {
    const atUs = status.taken_us;
    if (this.samples.length > 0 && atUs <= this.samples.at(-1).atUs) return;
    const streams = status.streams.filter((each) => each.state !== "building");
    this.samples.push({
      atUs,
      lag: streams.reduce((sum, each) => sum + each.lag_records, 0),
      behindUs: new Map(streams.map((each) => [each.name, behindUs(status, each)])),
      counters: new Map([
        ...status.streams.map((each) => [ownerOf("stream", each), each.counters]),
        ...status.views.map((each) => [ownerOf("view", each), each.counters]),
      ]),
    });
    const old = this.samples.at(-1 - COUNTED_SAMPLES);
    if (old) old.counters = null;
    if (this.samples.length > SAMPLES) this.samples.shift();
  }

  #setConnection(connection) {
    if (this.connection === connection) return;
    this.connection = connection;
    this.#tell("connection");
  }

  #tell(type) {
    this.dispatchEvent(new Event(type));
  }

  /** By how much a counter grew over about the last `seconds`; null: not known yet. */
  growth(owner, counter, seconds = 60) {
    const found = this.#between(owner, seconds);
    return found === null ? null : Math.max(0, (found.last[counter] ?? 0) - (found.first[counter] ?? 0));
  }

  /** How fast a counter grows, in one second; null: not known yet. */
  rate(owner, counter, seconds = 5) {
    const found = this.#between(owner, seconds);
    return found === null ? null : Math.max(0, ((found.last[counter] ?? 0) - (found.first[counter] ?? 0)) / found.seconds);
  }

  #between(owner, seconds) {
    const last = this.samples.at(-1);
    if (!last?.counters?.has(owner)) return null;
    const sinceUs = last.atUs - seconds * 1e6;
    const first = this.samples.find((each) => each.atUs >= sinceUs && each.counters?.has(owner));
    if (!first || first === last) return null;
    return { first: first.counters.get(owner), last: last.counters.get(owner), seconds: (last.atUs - first.atUs) / 1e6 };
  }
}

/** What definitions depend on: they are asked for again when it changes. */
const signatureOf = (status) =>
  [
    status.engine?.started,
    ...status.streams.map((each) => ownerOf("stream", each)),
    ...status.views.map((each) => `${ownerOf("view", each)} ${each.state}`),
    ...status.sinks.map((each) => `sink:${each.name}`),
  ].join("\n");

/** How far a stream's or a view's watermark is behind the wall clock; null before the first record. */
export const behindUs = (status, each) =>
  each.watermark_us === null || each.watermark_us === undefined ? null : status.taken_us - each.watermark_us;

/** The version of a view that readers see, and besides it those that are being built. */
export const versionsOf = (views, name) => {
  const found = views.filter((each) => each.name === name);
  return { current: found.find((each) => each.state !== "building") ?? found[0] ?? null, all: found };
};

export const live = new Live();
