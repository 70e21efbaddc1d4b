/** Calls of the engine's HTTP API. */

import { parseJson } from "./json.js";

const TIMEOUT_MS = 15_000;

/** An answer that is an error; `status` is 0 when the engine cannot be reached. */
export class ApiError extends Error {
  /** @param {number} status @param {string} kind @param {string} message */
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

/** Tells who listens: "unauthorized" when a session is missing or over. */
export const apiEvents = new EventTarget();

/** Whether an error only says that the caller gave up. */
export const isAbort = (error) => error?.name === "AbortError";

/** Whether the same request may succeed a little later: not reached, too many at once, not ready. */
export const isPassing = (error) => [0, 429, 503].includes(error?.status);

/**
 * Send a request and return the response if it is a good one.
 * @param {string} path
 * @param {{method?: string, body?: any, accept?: string, signal?: AbortSignal, timeoutMs?: number}} [options]
 * @returns {Promise<Response>}
 */
export const request = async (path, { method = "GET", body, accept = "application/json", signal, timeoutMs = TIMEOUT_MS } = {}) => {
  const timeout = AbortSignal.timeout(timeoutMs);
  const headers = { Accept: accept };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    const why = timeout.aborted ? `no answer within ${timeoutMs / 1000} s` : "the engine cannot be reached";
    throw new ApiError(0, "Unreachable", why);
  }
  if (!response.ok) throw await readError(response, path);
  return response;
};

const readError = async (response, path) => {
  let answer = {};
  try {
    answer = await response.json();
  } catch {
    // A proxy answered with a page of its own: the status says enough.
  }
  const message = typeof answer.message === "string" ? answer.message : `the engine answered ${response.status}`;
  if (response.status === 401 && path !== "/v1/login") apiEvents.dispatchEvent(new Event("unauthorized"));
  return new ApiError(response.status, String(answer.error ?? "EngineError"), message);
};

/** GET, as JSON. */
export const getJson = async (path, options) => parseJson(await (await request(path, options)).text());

/** POST, as JSON; null if the answer is empty. */
export const postJson = async (path, body, options) => {
  const text = await (await request(path, { ...options, method: "POST", body })).text();
  return text === "" ? null : parseJson(text);
};

/** A path with names that may hold any characters: at`/v1/views/${name}`. */
export const at = (parts, ...names) => String.raw({ raw: parts }, ...names.map(encodeURIComponent));
