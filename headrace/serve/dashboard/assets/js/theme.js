/** Light or dark: as the system says, until somebody chooses. theme-first.js applies it at the start. */

export const themeEvents = new EventTarget();

const system = matchMedia("(prefers-color-scheme: dark)");
const tell = () => themeEvents.dispatchEvent(new Event("change"));
system.addEventListener("change", tell);

/** @returns {"light" | "dark"} */
export const currentTheme = () => document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");

export const toggleTheme = () => {
  const theme = currentTheme() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("headrace.theme", theme);
  } catch {
    // Then it holds for this page only.
  }
  tell();
};
