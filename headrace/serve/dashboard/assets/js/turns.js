/**
 * Turns of the engine, gathered into seconds, for the plots: a ring of ten minutes.
 */

import { getJson } from "./api.js";

const SECONDS = 600;
const ASKED = 60; // more than an engine makes in the seconds between two questions
const HISTORY = 600; // what the engine remembers at most

/** The steps of a turn, in their order. */
export const STEPS = ["plan", "read", "stamp", "step", "fold", "stage", "commit", "publish"];

/**
 * `lag` and `behind` (seconds, by stream) are those of the last turn of the second.
 * @typedef {{second: number, turns: number, records: number, fresh: number[], steps: number[], lag: number | null, behind: Record<string, number>}} Bin
 */

export class Turns {
  /** @type {Map<number, Bin>} */
  #bins = new Map();
  #lastTurn = -1;
  #lastEndedUs = 0;
  /** Seconds, first and last, of which not all turns are known. @type {[number, number][]} */
  #missed = [];

  /** Ask for the turns since the last question; all that are remembered if some may be missing. */
  async refresh(signal) {
    let turns = await this.#ask(this.#lastTurn < 0 ? HISTORY : ASKED, signal);
    if (this.#lastTurn >= 0 && turns.length === ASKED && turns.at(-1).turn > this.#lastTurn + 1) {
      turns = await this.#ask(HISTORY, signal);
    }
    // After a restart into another store turns count anew; their time goes on.
    const fresh = turns.filter((each) => each.ended_us > this.#lastEndedUs);
    this.take(fresh.reverse());
  }

  /** Add turns, the oldest first. If some before them were missed, that time is unknown. */
  take(found) {
    if (found.length === 0) return;
    if (this.#lastTurn >= 0 && found[0].turn !== this.#lastTurn + 1) {
      this.#missed.push([Math.floor(this.#lastEndedUs / 1e6), Math.floor(found[0].ended_us / 1e6)]);
    }
    for (const turn of found) this.#add(turn);
    const first = this.#bins.keys().next().value;
    this.#missed = this.#missed.filter(([, last]) => last >= first);
  }

  async #ask(last, signal) {
    return (await getJson(`/v1/turns?unit=main&last=${last}`, { signal })).turns;
  }

  #add(turn) {
    this.#lastTurn = turn.turn;
    this.#lastEndedUs = turn.ended_us;
    const second = Math.floor(turn.ended_us / 1e6);
    const bin = this.#bins.get(second) ?? { second, turns: 0, records: 0, fresh: [], steps: STEPS.map(() => 0), lag: null, behind: {} };
    bin.turns += 1;
    bin.records += turn.records;
    if (turn.fresh_ms !== null && turn.fresh_ms !== undefined) bin.fresh.push(turn.fresh_ms);
    STEPS.forEach((step, index) => {
      bin.steps[index] += turn.milliseconds[step] ?? 0;
    });
    bin.lag = turn.lag_records ?? bin.lag;
    for (const [stream, us] of Object.entries(turn.watermarks_us ?? {})) if (us !== null) bin.behind[stream] = (turn.ended_us - us) / 1e6;
    this.#bins.set(second, bin);
    if (this.#bins.size > SECONDS) this.#bins.delete(this.#bins.keys().next().value);
  }

  /** Lag and watermarks of the seconds before `untilSecond`, from the time before this page was open. */
  past(untilSecond) {
    return [...this.#bins.values()].filter((bin) => bin.second < untilSecond && bin.lag !== null);
  }

  /**
   * The last `seconds` before `nowUs` as columns. A second without a turn has no latency; it read
   * nothing, because an engine without records makes no turn. Where turns were missed, it is not
   * known what was read.
   */
  columns(nowUs, seconds) {
    const end = Math.floor(nowUs / 1e6) - 1; // the current second is not over
    const first = this.#bins.keys().next().value ?? end;
    const start = Math.max(end - seconds + 1, first);
    const columns = { xs: [], records: [], fresh: [], freshWorst: [], steps: STEPS.map(() => []), turns: [] };
    for (let second = start; second <= end; second += 1) {
      const bin = this.#bins.get(second);
      columns.xs.push(second);
      const known = !this.#missed.some(([from, last]) => second >= from && second <= last);
      columns.turns.push(known ? (bin?.turns ?? 0) : null);
      columns.records.push(known ? (bin?.records ?? 0) : null);
      columns.fresh.push(bin ? median(bin.fresh) : null);
      columns.freshWorst.push(bin?.fresh.length ? Math.max(...bin.fresh) : null);
      STEPS.forEach((_, index) => columns.steps[index].push(bin ? bin.steps[index] / bin.turns : null));
    }
    return columns;
  }
}

const median = (values) => {
  if (values.length === 0) return null;
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[sorted.length >> 1];
};

/** Kept while pages change, so that the overview has its past when it is opened again. */
export const turns = new Turns();
