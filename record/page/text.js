// Texts and elements. What comes from the data is put into the page as text, never as markup.

/** An element with text or other elements in it. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) made[name] = value;
  made.append(...children.map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return made;
}

export const byId = (id) => document.getElementById(id);

/** Microseconds as `34 ms`, `1.2 s`: as the command line says them. */
export function time(us) {
  return us < 1e6 ? `${Math.floor(us / 1000)} ms` : `${(us / 1e6).toFixed(1)} s`;
}

/** Bytes as `340 MiB`, `1.2 GiB`. */
export function size(bytes) {
  const mib = bytes / 1048576;
  return mib < 1000 ? `${mib.toFixed(0)} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}

/** A time of a clock, by UTC. */
export const moment = (ms) => `${new Date(ms).toISOString().replace("T", " ").slice(0, 19)} UTC`;

export const number = (value) => value.toLocaleString("en");

export const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

/** The last part of a path, for where there is little room. */
export function short(name) {
  return name.slice(name.lastIndexOf("/") + 1) || name;
}

/** A list of descriptions; what is not known is left out. */
export function facts(list, pairs) {
  list.replaceChildren();
  for (const [what, value] of pairs) {
    if (value === undefined || value === null || value === "") continue;
    list.append(element("dt", {}, what), element("dd", {}, element("bdi", {}, value)));
  }
}

/** A colour by what it means, as the style has it for light or dark. */
export function colour(name) {
  const probe = byId("live");
  probe.style.color = `var(--${name})`;
  const found = getComputedStyle(probe).color;
  probe.style.color = "";
  return found;
}

/** Names and colours below a picture. */
export function legend(list, entries) {
  list.replaceChildren();
  for (const [name, text] of entries) {
    const box = element("canvas", { width: 1, height: 1 });
    box.setAttribute("aria-hidden", "true");
    box.style.background = `var(--${name})`;
    list.append(element("li", {}, box, text));
  }
}

/** Makes a canvas as sharp as the screen; gives its context and its size in CSS pixels. */
export function prepared(canvas, height) {
  const width = canvas.clientWidth;
  const ratio = window.devicePixelRatio || 1;
  if (height === undefined) height = canvas.clientHeight;
  else canvas.style.height = `${height}px`;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.direction = "ltr";
  return { context, width, height };
}
