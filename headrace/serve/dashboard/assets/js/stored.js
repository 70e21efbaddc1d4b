/** Small choices that a browser remembers: theme, queries. Storage may be refused or full. */

export const remember = (name, value) => {
  try {
    localStorage.setItem(`headrace.${name}`, JSON.stringify(value));
  } catch {
    // It is a convenience: the page works without.
  }
};

export const recall = (name, otherwise) => {
  try {
    return JSON.parse(localStorage.getItem(`headrace.${name}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
};
