/**
 * Make elements. Text is always text: nothing here, or anywhere else in the dashboard, turns data
 * into markup.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an HTML element. `props` are attributes; `on` has listeners, `data` the data-* attributes.
 * Children that are null, undefined or false are left out.
 * @param {string} tag
 * @param {Record<string, any> | null} [props]
 * @param {...any} children
 * @returns {HTMLElement}
 */
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);

/** Make an SVG element; the same rules as `h`. @returns {SVGElement} */
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

const fill = (element, props, children) => {
  for (const [name, value] of Object.entries(props ?? {})) setProp(element, name, value);
  append(element, children);
  return element;
};

const setProp = (element, name, value) => {
  if (value === null || value === undefined || value === false) return;
  if (name === "on") {
    for (const [type, listener] of Object.entries(value)) element.addEventListener(type, listener);
  } else if (name === "data") {
    Object.assign(element.dataset, value);
  } else if (name === "value" && "value" in element) {
    element.value = value;
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
};

/** Append children, lists of children included. */
export const append = (parent, children) => {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    parent.append(child instanceof Node ? child : String(child));
  }
};

/** Replace what is in an element. */
export const replace = (parent, ...children) => {
  parent.replaceChildren();
  append(parent, children);
  return parent;
};

/** Set an element's text, unless it has that text already: an equal text must not be announced. */
export const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

/** Set or remove an attribute. */
export const setAttribute = (element, name, value) => {
  if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
};

/** The value of a CSS variable of the page, such as "--series-1". */
export const cssVariable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
