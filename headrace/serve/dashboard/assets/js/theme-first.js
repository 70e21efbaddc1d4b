// A classic script, not a module: it runs before the first paint. theme.js does the rest.
try {
  const chosen = localStorage.getItem("headrace.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage is refused in some private windows; the system's scheme holds then.
}
