// The map of modules: directories as areas, modules within them, drawn on a canvas; places are given, nothing is laid out here.
//
// What does not change with the chosen module is drawn once and kept, so that choosing is quick with 100,000 modules. Edges are
// drawn around the chosen module alone.

import { byId, colour, legend, number, prepared, short } from "./text.js";

/** Edges of one kind that are drawn; more of them are a stain. */
const EDGES = 1000;
const WHOLE = 65535;

export class ModuleMap {
  /** `tell(i)` describes a module in a line; `choose(i)` is called when one is clicked or reached by arrows. */
  constructor(modules, classes, tell, choose) {
    Object.assign(this, { modules, classes, tell, choose, focused: -1, graph: null });
    this.canvas = byId("map");
    this.tip = byId("tip");
    this.kept = document.createElement("canvas");
    this.view = { x: 0, y: 0, scale: 1 };
    this.listen();
    this.paint(classes);
  }

  /** Draws the modules in the colours of these classes. */
  paint(classes) {
    this.classes = classes;
    legend(byId("map-legend"), [
      ...classes.legend,
      ["importers", "imports from the chosen module (line)"],
      ["imports", "the chosen module imports from it (line)"],
    ]);
    this.resize();
  }

  resize() {
    this.drawKept();
    this.draw();
  }

  /** Chooses a module, or none by -1. */
  focus(i) {
    this.focused = i;
    if (i >= 0) this.reveal(i);
    this.draw();
  }

  /** Left, top, width, height on the screen of entry i of the sides. */
  box(sides, i) {
    const { x, y, scale } = this.view;
    const [unitX, unitY] = [(this.width * scale) / WHOLE, (this.height * scale) / WHOLE];
    const left = sides[0][i] * unitX - x;
    const top = sides[1][i] * unitY - y;
    return [left, top, sides[2][i] * unitX - x - left, sides[3][i] * unitY - y - top];
  }

  middle(i) {
    const [left, top, width, height] = this.box(this.modules.sides, i);
    return [left + width / 2, top + height / 2];
  }

  isSeen([left, top, width, height]) {
    return left < this.width && top < this.height && left + width > 0 && top + height > 0;
  }

  drawKept() {
    const { context, width, height } = prepared(this.canvas);
    Object.assign(this, { context, width, height });
    this.kept.width = this.canvas.width;
    this.kept.height = this.canvas.height;
    const kept = this.kept.getContext("2d");
    kept.setTransform(context.getTransform());
    kept.direction = "ltr";
    const colours = Object.fromEntries(["text", "ground", "line"].map((name) => [name, colour(name)]));
    this.drawModules(kept, colours);
    kept.font = "11px system-ui, sans-serif";
    kept.textBaseline = "top";
    kept.fillStyle = colours.text;
    this.nameModules(kept);
    this.drawDirectories(kept, colours);
  }

  /** The areas of all modules, pixel by pixel: a hundred thousand small rectangles take a canvas much longer. */
  drawModules(context, colours) {
    const { count, sides } = this.modules;
    const [lefts, tops, rights, bottoms] = sides;
    const { width: columns, height: rows } = this.kept;
    const ratio = columns / this.width;
    const { x, y, scale } = this.view;
    const [unitX, unitY] = [(columns * scale) / WHOLE, (rows * scale) / WHOLE];
    const image = context.createImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    const inks = this.classes.colours.map((name) => pixel(colour(name)));
    pixels.fill(pixel(colours.ground));
    for (let i = 0; i < count; i++) {
      const left = Math.max(0, Math.round(lefts[i] * unitX - x * ratio));
      const top = Math.max(0, Math.round(tops[i] * unitY - y * ratio));
      let right = Math.min(columns, Math.round(rights[i] * unitX - x * ratio));
      let bottom = Math.min(rows, Math.round(bottoms[i] * unitY - y * ratio));
      if (right - left > 2) right--;
      if (bottom - top > 2) bottom--;
      const ink = inks[this.classes.of[i]];
      for (let row = top; row < bottom; row++) {
        const end = row * columns + right;
        for (let at = row * columns + left; at < end; at++) pixels[at] = ink;
      }
    }
    context.putImageData(image, 0, 0);
  }

  nameModules(context) {
    const { count, sides } = this.modules;
    const wide = (40 / this.width / this.view.scale) * WHOLE;
    for (let i = 0; i < count; i++) {
      if (sides[2][i] - sides[0][i] < wide) continue;
      const box = this.box(sides, i);
      const [left, top, width, height] = box;
      if (width < 40 || height < 30 || !this.isSeen(box)) continue;
      write(context, short(this.modules.names[i]), Math.max(left, 0) + 4, top + height - 16, width - 8);
    }
  }

  drawDirectories(context, colours) {
    const { count, names, depth, sides } = this.modules.directories;
    for (let i = count - 1; i >= 0; i--) {
      const box = this.box(sides, i);
      const [left, top, width, height] = box;
      if (width < 6 || height < 6 || !this.isSeen(box)) continue;
      context.strokeStyle = depth[i] > 1 ? colours.ground : colours.text;
      context.lineWidth = Math.max(1, 2.5 - depth[i]);
      context.strokeRect(left, top, width - 1, height - 1);
      const down = depth[i] * 15;
      if (width < 60 || height < 34 + down) continue;
      const text = depth[i] === 0 ? names[i] : short(names[i]);
      const room = Math.min(width - 4, context.measureText(text).width + 8);
      context.fillStyle = colours.ground;
      context.fillRect(Math.max(left, 0) + 1, Math.max(top, 0) + 1 + down, room, 14);
      context.fillStyle = colours.text;
      write(context, text, Math.max(left, 0) + 4, Math.max(top, 0) + 3 + down, room - 6);
    }
  }

  draw() {
    const { context } = this;
    context.save();
    context.resetTransform();
    context.drawImage(this.kept, 0, 0);
    context.restore();
    const i = this.focused;
    if (i < 0) return;
    if (this.graph) {
      this.drawEdges(this.graph.importers.at(i), "importers");
      this.drawEdges(this.graph.imports.at(i), "imports");
    }
    const [left, top, width, height] = this.box(this.modules.sides, i);
    context.lineWidth = 3;
    context.strokeStyle = colour("ground");
    context.strokeRect(left - 4, top - 4, Math.max(width, 3) + 8, Math.max(height, 3) + 8);
    context.strokeStyle = colour("text");
    context.strokeRect(left - 2, top - 2, Math.max(width, 3) + 4, Math.max(height, 3) + 4);
  }

  drawEdges(others, name) {
    const { context } = this;
    const [x, y] = this.middle(this.focused);
    const shown = others.length > EDGES ? others.subarray(0, EDGES) : others;
    context.strokeStyle = context.fillStyle = colour(name);
    context.globalAlpha = Math.max(0.12, Math.min(0.9, 40 / shown.length));
    context.lineWidth = 1.5;
    // One by one: a path of a thousand lines takes a canvas longer than a thousand paths.
    for (const other of shown) {
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(...this.middle(other));
      context.stroke();
    }
    context.globalAlpha = 1;
    for (const other of shown) {
      const [atX, atY] = this.middle(other);
      context.fillRect(atX - 2, atY - 2, 4, 4);
    }
  }

  /** The module at a place of the screen, or -1. */
  at(x, y) {
    const { sides, count } = this.modules;
    const atX = ((x + this.view.x) / (this.width * this.view.scale)) * WHOLE;
    const atY = ((y + this.view.y) / (this.height * this.view.scale)) * WHOLE;
    for (let i = 0; i < count; i++) {
      if (sides[0][i] <= atX && atX < sides[2][i] && sides[1][i] <= atY && atY < sides[3][i]) return i;
    }
    return -1;
  }

  /** The nearest module in a direction from the chosen one. */
  beside(dx, dy) {
    const { sides, count } = this.modules;
    if (this.focused < 0) return count > 0 ? this.at(this.width / 2, this.height / 2) : -1;
    const middle = (i, low, high) => (sides[low][i] + sides[high][i]) / 2;
    const [x, y] = [middle(this.focused, 0, 2), middle(this.focused, 1, 3)];
    let [best, nearest] = [-1, Infinity];
    for (let i = 0; i < count; i++) {
      const [toX, toY] = [middle(i, 0, 2) - x, middle(i, 1, 3) - y];
      const along = toX * dx + toY * dy;
      const across = Math.abs(toX * dy) + Math.abs(toY * dx);
      if (along <= 0 || across > 4 * along) continue;
      if (along + 2 * across < nearest) [best, nearest] = [i, along + 2 * across];
    }
    return best;
  }

  /** Moves the view so that a module is on the screen. */
  reveal(i) {
    const [x, y] = this.middle(i);
    if (x >= 0 && y >= 0 && x < this.width && y < this.height) return;
    this.move(x - this.width / 2, y - this.height / 2);
  }

  move(dx, dy) {
    const most = this.view.scale - 1;
    this.view.x = Math.max(0, Math.min(this.width * most, this.view.x + dx));
    this.view.y = Math.max(0, Math.min(this.height * most, this.view.y + dy));
    this.drawKept();
    this.draw();
  }

  /** Zooms so that a place of the screen stays where it is. */
  zoom(factor, x, y) {
    const scale = Math.max(1, Math.min(256, this.view.scale * factor));
    const by = scale / this.view.scale;
    this.view.scale = scale;
    this.move((this.view.x + x) * by - x - this.view.x, (this.view.y + y) * by - y - this.view.y);
  }

  listen() {
    const { canvas } = this;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = [event.offsetX, event.offsetY];
      if (!drag) return this.hover(x, y);
      if (!drag.moved && Math.hypot(x - drag.x, y - drag.y) < 5) return;
      this.move(drag.x - x, drag.y - y);
      drag = { x, y, moved: true };
    });
    canvas.addEventListener("pointerup", (event) => {
      const found = drag && !drag.moved ? this.at(event.offsetX, event.offsetY) : -1;
      drag = null;
      if (found >= 0) this.choose(found);
    });
    canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    canvas.addEventListener(
      "wheel",
      (event) => {
        // Without a modifier the page scrolls.
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        this.zoom((event.deltaY || event.deltaX) < 0 ? 1.3 : 1 / 1.3, event.offsetX, event.offsetY);
      },
      { passive: false },
    );
    canvas.addEventListener("dblclick", (event) => this.zoom(2, event.offsetX, event.offsetY));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    const at = this.focused >= 0 ? this.middle(this.focused) : [this.width / 2, this.height / 2];
    if (way) {
      const found = this.beside(...way);
      if (found >= 0) this.choose(found);
    } else if (event.key === "+" || event.key === "=") this.zoom(1.5, ...at);
    else if (event.key === "-") this.zoom(1 / 1.5, ...at);
    else if (event.key === "0") this.zoom(0, 0, 0);
    else return;
    event.preventDefault();
  }

  hover(x, y) {
    const found = this.at(x, y);
    this.tip.hidden = found < 0;
    if (found < 0) return;
    this.tip.textContent = this.tell(found);
    this.tip.style.left = `${Math.min(x + 12, Math.max(0, this.width - 260))}px`;
    this.tip.style.top = `${y + 16}px`;
  }
}

/** A colour of the style as a pixel of a canvas: red is the lowest byte. */
function pixel(text) {
  const [red, green, blue] = text.match(/[\d.]+/g).map(Number);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** Text that ends where there is no more room. */
function write(context, text, x, y, room) {
  let shown = text;
  if (context.measureText(shown).width > room) {
    let [low, high] = [0, shown.length];
    while (low < high) {
      const half = (low + high + 1) >> 1;
      if (context.measureText(`${text.slice(0, half)}\u2026`).width <= room) low = half;
      else high = half - 1;
    }
    if (low < 3) return;
    shown = `${text.slice(0, low)}\u2026`;
  }
  context.fillText(shown, x, y);
}

/** What the map shows, in a sentence. */
export function about(modules, facts) {
  const by = facts.by_time ? "the processor time of its last compilation" : "its instructions";
  return `${number(modules.count)} modules in their directories; an area is ${by}. Click or use the arrow keys; + and -, Ctrl or Shift with the wheel, and a double click zoom, dragging moves.`;
}
