/**
 * How long something lives: a page, a panel. When it closes, its requests are given up, its timers
 * and listeners end, so that a page that was left costs nothing.
 */

import { isAbort } from "./api.js";

export class Scope {
  #closing = new Set();
  #abort = new AbortController();

  /** @param {Scope} [parent] closes this one, too */
  constructor(parent) {
    if (parent) this.defer(parent.defer(() => this.close()));
  }

  get signal() {
    return this.#abort.signal;
  }

  get closed() {
    return this.#abort.signal.aborted;
  }

  /** Call a function when the scope closes; what is returned calls that off. */
  defer(action) {
    if (this.closed) action();
    else this.#closing.add(action);
    return () => this.#closing.delete(action);
  }

  /** Wait. Once the scope is closed, the wait has no end. */
  pause(ms) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        callOff();
        resolve();
      }, ms);
      const callOff = this.defer(() => clearTimeout(timer));
    });
  }

  /** Listen to an EventTarget for as long as the scope lives. */
  listen(target, type, listener, options = {}) {
    target.addEventListener(type, listener, { ...options, signal: this.signal });
  }

  /**
   * Run an action now and again `ms` after each end of it, slower in a hidden tab. What it throws
   * goes to `onError`; the next run follows all the same.
   */
  every(ms, action, onError = () => {}) {
    let timer = 0;
    const run = async () => {
      timer = 0; // no timer runs while the action does: a tab that becomes visible must not start a second loop
      try {
        await action(this.signal);
      } catch (error) {
        if (!isAbort(error) && !this.closed) onError(error);
      }
      if (!this.closed) timer = setTimeout(run, document.hidden ? Math.max(ms, 5_000) : ms);
    };
    this.listen(document, "visibilitychange", () => {
      if (document.hidden || timer === 0) return;
      clearTimeout(timer);
      timer = setTimeout(run, 0);
    });
    this.defer(() => clearTimeout(timer));
    run();
  }

  /** Run an async action; give what it throws to `onError`, unless the scope was closed meanwhile. */
  async run(action, onError) {
    try {
      await action(this.signal);
    } catch (error) {
      if (!this.closed && !isAbort(error)) onError(error);
    }
  }

  close() {
    if (this.closed) return;
    this.#abort.abort();
    const actions = [...this.#closing];
    this.#closing.clear();
    for (const action of actions) action();
  }
}
