/** Start: log in if needed, then show the page that the address names, and follow the address. */

import { apiEvents, isPassing } from "./api.js";
import { h, replace } from "./dom.js";
import { listenToKeys } from "./keys.js";
import { live } from "./live.js";
import { graphPage } from "./pages/graph.js";
import { streamsPage, viewsPage } from "./pages/lists.js";
import { loginPage } from "./pages/login.js";
import { overviewPage } from "./pages/overview.js";
import { sinkPage } from "./pages/sink.js";
import { sqlPage } from "./pages/sql.js";
import { streamPage } from "./pages/stream.js";
import { topicPage } from "./pages/topic.js";
import { viewPage } from "./pages/view.js";
import { confirm } from "./parts/dialog.js";
import { failed } from "./parts/panel.js";
import { hrefOf, readPlace } from "./router.js";
import { Scope } from "./scope.js";
import { logIn, logOut, readSession, session, takeToken } from "./session.js";
import { createShell } from "./shell.js";

/** A page fills `main` and lives as long as `scope`; it returns its title. */
const PAGES = {
  overview: overviewPage,
  graph: graphPage,
  views: viewsPage,
  view: viewPage,
  streams: streamsPage,
  stream: streamPage,
  topic: topicPage,
  sink: sinkPage,
  sql: sqlPage,
};

const RETRY_MS = 2_000;

const app = document.getElementById("app");
let shell = null;
let scope = null;
let shown = "";

const show = () => {
  const place = readPlace();
  const here = `${place.page}\n${place.name ?? ""}`;
  // A page that only changed its parameters did so itself, except when a link was followed.
  scope?.close();
  scope = new Scope();
  const page = PAGES[place.page] ?? unknownPage;
  replace(shell.main);
  // Before the page is made: it may scroll to the part that its address names.
  if (shown !== "" && shown !== here) {
    shell.main.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  const title = page({ main: shell.main, scope, ...place });
  document.title = `${title} · Headrace`;
  shell.mark(place.page);
  shown = here;
};

const unknownPage = ({ main }) => {
  main.append(h("div", { class: "state-note" }, h("p", null, "There is no such page."), h("a", { href: hrefOf("overview") }, "Overview")));
  return "Unknown page";
};

const enter = () => {
  if (session() === null) return; // an answer to a question from before the logout
  shell ??= createShell({ onLogOut: leave });
  replace(app, shell.element);
  live.start();
  show();
};

const askToLogIn = (message = "") => {
  if (document.querySelector(".login")) return;
  live.stop();
  scope?.close();
  const page = loginPage({ onDone: enter, message });
  replace(app, page.element);
  document.title = "Log in · Headrace";
  page.focus();
};

const leave = async () => {
  try {
    await logOut();
    askToLogIn();
  } catch (error) {
    const again = await confirm({ title: "You are still logged in", text: `Logging out failed: ${error.message}. This browser still has the session.`, yes: "Try again" });
    if (again) await leave();
  }
};

let retry = 0;

/** Log in with a token, which is kept until the engine has answered, or go on with the session. */
const start = async (token = null) => {
  clearTimeout(retry);
  try {
    if (token !== null) await logIn(token);
    else await readSession();
  } catch (error) {
    if (token !== null && error.status === 401) return askToLogIn("The token in the link is not valid, or it has expired.");
    replace(app, failed(error, () => start(token)));
    if (isPassing(error)) retry = setTimeout(() => start(token), RETRY_MS);
    return;
  }
  if (session() === null) askToLogIn();
  else enter();
};

apiEvents.addEventListener("unauthorized", () => {
  if (shell !== null) askToLogIn("The session is over. Log in again.");
});
addEventListener("hashchange", () => {
  const token = takeToken();
  if (token !== null) start(token);
  else if (shell !== null && !document.querySelector(".login")) show();
});
document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.getElementById("main")?.focus();
});
listenToKeys({ onSearch: () => shell?.focusSearch() });
start(takeToken());
