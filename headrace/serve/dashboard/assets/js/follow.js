/**
 * Follow a view by WebSocket: a snapshot and then its changes. A broken connection is made again
 * and goes on behind the last token; where that is refused, it begins with all rows.
 */

import { apiEvents, at } from "./api.js";
import { Fold } from "./fold.js";
import { parseJson } from "./json.js";

const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;
const SILENCE_MS = 20_000; // progress comes every 5 s: a connection that is silent for longer is broken
const MAX_REFUSALS = 3;
const UNAUTHORIZED = 4401;
const UNKNOWN = 4404;

/**
 * @param {{name: string, scope: import("./scope.js").Scope, maxRows: number,
 *   onRows: (fold: Fold, progress: {commit: number, position: string, watermark_us: number | null}) => void,
 *   onState: (state: "connecting" | "live" | "reconnecting" | "unknown", text: string) => void,
 *   onGiveUp: (reason: string) => void}} options
 * `onGiveUp` is called once, when the view is too large to be held here or cannot be followed.
 */
export const followView = ({ name, scope, maxRows, onRows, onState, onGiveUp }) => {
  const fold = new Fold();
  let token = null;
  let socket = null;
  let failures = 0;
  let everOpen = false;
  let timer = 0;
  let silence = 0;
  let over = false;

  const end = () => {
    over = true;
    clearTimeout(timer);
    clearTimeout(silence);
    socket?.close();
  };
  scope.defer(end);

  const giveUp = (reason) => {
    if (over) return;
    end();
    onGiveUp(reason);
  };

  const listen = () => {
    clearTimeout(silence);
    silence = setTimeout(() => socket?.close(), SILENCE_MS);
  };

  const connect = () => {
    const url = new URL(at`/v1/views/${name}/changes`, location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    if (token !== null) url.searchParams.set("after", token);
    onState(everOpen ? "reconnecting" : "connecting", everOpen ? "reconnecting…" : "connecting…");
    socket = new WebSocket(url);
    socket.onopen = listen;
    socket.onmessage = (event) => {
      listen();
      take(parseJson(event.data));
    };
    socket.onclose = (event) => closed(event.code);
  };

  const take = (message) => {
    if (message.type === "reset") {
      token = null;
      fold.reset(message);
    } else if (message.type === "changes") {
      fold.apply(message.changes);
      if (message.token !== null && message.token !== undefined) token = message.token;
      if (fold.size > maxRows) giveUp(`more than ${maxRows.toLocaleString("en-GB")} rows`);
    } else if (message.type === "progress") {
      token = message.token ?? token;
      failures = 0;
      everOpen = true;
      fold.settle();
      onState("live", "live");
      onRows(fold, message);
    } else if (message.type === "error" && ["TokenTooOld", "TokenRefused"].includes(message.error)) {
      token = null;
    }
  };

  const closed = (code) => {
    clearTimeout(silence);
    if (over) return;
    failures += 1;
    if (code === UNAUTHORIZED) apiEvents.dispatchEvent(new Event("unauthorized"));
    if (over) return; // the login has taken the place of this page
    if (code === UNKNOWN) onState("unknown", "the engine does not know this view");
    else if (!everOpen && failures >= MAX_REFUSALS) return giveUp("the connection for changes was refused");
    else if (everOpen) onState("reconnecting", "reconnecting…");
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), MAX_PAUSE_MS);
    timer = setTimeout(connect, pause * (0.75 + Math.random() / 2)); // not all readers at the same moment
  };

  connect();
};
