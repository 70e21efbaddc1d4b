/** The frame around the pages: navigation, search, the engine's state, the banner. */

import { h, s, setAttribute, setText } from "./dom.js";
import { showHelp } from "./keys.js";
import { live } from "./live.js";
import { stateTag, updateTag } from "./parts/state.js";
import { hrefOf } from "./router.js";
import { searchPart } from "./search.js";
import { currentTheme, themeEvents, toggleTheme } from "./theme.js";

const PAGES = [
  ["overview", "Overview"],
  ["graph", "Graph"],
  ["views", "Views"],
  ["streams", "Streams"],
  ["sql", "SQL"],
];
/** Which entry of the navigation a page belongs to. */
const SECTIONS = { view: "views", stream: "streams", topic: "streams", sink: "graph" };
const RECOVERED_MS = 2_500;

const icon = (...paths) => s("svg", { viewBox: "0 0 20 20", fill: "none", stroke: "currentColor", "stroke-width": "1.6", "stroke-linecap": "round", "aria-hidden": "true" }, paths.map((d) => s("path", { d })));

export const createShell = ({ onLogOut }) => {
  const project = h("span", { class: "project", data: { testid: "project" } });
  const links = PAGES.map(([page, title]) => h("a", { href: hrefOf(page), data: { testid: `nav-${page}`, page } }, title));
  const search = searchPart();
  const engine = stateTag("starting", "connecting", "engine-state");
  const theme = h("button", { type: "button", class: "icon-button", data: { testid: "theme-toggle" }, on: { click: toggleTheme } }, icon("M10 3a7 7 0 1 0 0 14z", "M10 3a7 7 0 0 1 0 14"));
  const help = h("button", { type: "button", class: "icon-button keys-button", "aria-label": "Keys", title: "Keys (?)", on: { click: showHelp } }, icon("M7.6 7.4a2.5 2.5 0 1 1 3.4 2.3c-.7.3-1 .8-1 1.5v.4", "M10 14.6v.1"));
  const out = h("button", { type: "button", class: "icon-button", "aria-label": "Log out", title: "Log out", data: { testid: "logout" }, on: { click: onLogOut } }, icon("M8 4H4v12h4", "M9 10h8", "M14 7l3 3-3 3"));
  const banner = h("div", { class: "banner", role: "status", "aria-live": "polite", hidden: true, data: { testid: "banner" } });
  const main = h("main", { id: "main", tabindex: "-1" });
  const element = h(
    "div",
    null,
    h(
      "header",
      { class: "topbar" },
      h(
        "div",
        { class: "topbar-inner" },
        h("a", { class: "brand", href: hrefOf("overview") }, h("img", { src: "/assets/icon.svg", alt: "" }), h("span", { class: "word" }, "Headrace"), project),
        h("nav", { class: "nav", "aria-label": "Pages" }, links),
        h("div", { class: "topbar-end" }, search.element, engine, theme, help, out),
      ),
    ),
    banner,
    main,
  );

  const drawTheme = () => {
    const other = currentTheme() === "dark" ? "light" : "dark";
    setAttribute(theme, "aria-label", `Use the ${other} theme`);
    setAttribute(theme, "title", `Use the ${other} theme (t)`);
  };
  themeEvents.addEventListener("change", drawTheme);
  drawTheme();

  let wasDown = false;
  const drawConnection = () => {
    const down = live.connection === "down";
    updateTag(engine, down ? "down" : live.connection === "up" ? "up" : "starting", down ? "reconnecting" : live.connection === "up" ? "live" : "connecting");
    const refused = live.error?.status >= 400 && live.error.status < 500;
    if (down) setText(banner, `${refused ? "The engine refuses" : "Reconnecting"}: ${live.error?.message ?? "no answer"}. This page shows the last state that it knows.`);
    else if (wasDown) {
      setText(banner, "Connected again.");
      setTimeout(() => {
        banner.hidden = live.connection !== "down";
      }, RECOVERED_MS);
    }
    if (down) banner.hidden = false;
    wasDown = down;
  };
  const drawStatus = () => setText(project, live.status?.project ?? "");
  live.addEventListener("connection", drawConnection);
  live.addEventListener("status", drawStatus);
  drawConnection();
  drawStatus();

  return {
    element,
    main,
    focusSearch: search.focus,
    /** Mark where we are. */
    mark: (page) => {
      const section = SECTIONS[page] ?? page;
      for (const link of links) setAttribute(link, "aria-current", link.dataset.page === section ? "page" : null);
    },
  };
};
