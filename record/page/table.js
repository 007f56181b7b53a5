// The table of modules: sorted by any of its columns, some rows at first.

import { keep, toModule } from "./address.js";
import { byId, element, number, short, time } from "./text.js";

/** How many rows are shown at first, and how many more each time. */
const ROWS = 25;

const isUnknown = (value) => value === "" || Number.isNaN(value);

export class ModuleTable {
  constructor({ facts, modules, graph, last }) {
    const size = Float64Array.from({ length: modules.count }, (_, i) => modules.own[i] + modules.imported[i]);
    const links = (name) => Float64Array.from({ length: modules.count }, (_, i) => (facts.knows_imports ? graph[name].count(i) : NaN));
    const numbers = (title, values, text) => ({ title, values, text: (i) => (Number.isNaN(values[i]) ? "" : text(values[i])) });
    const words = (title, values) => ({ title, values, text: (i) => values[i], isText: true });
    this.columns = {
      module: words("module", modules.names),
      time: numbers("processor time", modules.time, time),
      size: numbers("instructions", size, number),
      imports: numbers("imports", links("imports"), number),
      importers: numbers("importers", links("importers"), number),
      found: words("object", last?.found ?? modules.names.map(() => "")),
      reason: words("reason", last?.why ?? modules.names.map(() => "")),
    };
    this.order = Uint32Array.from({ length: modules.count }, (_, i) => i);
    this.body = byId("table").createTBody();
    this.more = byId("table-more");
    this.more.addEventListener("click", () => this.rows());
    this.head();
    this.sort(modules.time.some((us) => us >= 0) ? "-time" : "-size");
  }

  head() {
    const row = byId("table").createTHead().insertRow();
    for (const [name, column] of Object.entries(this.columns)) {
      const button = element("button", { type: "button" }, column.title);
      column.cell = element("th", { scope: "col", className: column.isText ? "text" : "" }, button);
      button.addEventListener("click", () => {
        // Numbers are asked for from the largest on, texts from the beginning of the alphabet on.
        const both = column.isText ? [name, `-${name}`] : [`-${name}`, name];
        this.sort(both[this.sorted === both[0] ? 1 : 0]);
        keep("sort", this.sorted);
      });
      row.append(column.cell);
    }
  }

  /** Sorts by a column; by `-name` from its end on. What is not known comes last. */
  sort(by) {
    const name = by.replace(/^-/, "");
    if (!Object.hasOwn(this.columns, name)) return;
    this.sorted = by;
    const { values } = this.columns[name];
    const way = by.startsWith("-") ? -1 : 1;
    this.order.sort((a, b) => {
      const [x, y] = [values[a], values[b]];
      if (isUnknown(x) || isUnknown(y)) return isUnknown(x) - isUnknown(y) || a - b;
      return x < y ? -way : x > y ? way : a - b;
    });
    for (const [other, { cell }] of Object.entries(this.columns)) {
      if (other === name) cell.setAttribute("aria-sort", by.startsWith("-") ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.body.replaceChildren();
    this.rows();
  }

  /** Adds some rows. */
  rows() {
    const shown = this.body.rows.length;
    for (const i of this.order.subarray(shown, shown + ROWS)) {
      const row = this.body.insertRow();
      for (const [name, { isText, text }] of Object.entries(this.columns)) {
        const value = text(i);
        const inside = name === "module" ? element("a", { href: toModule(value), title: value, className: "name" }, short(value)) : value;
        row.append(element("td", { className: isText ? "text name" : "" }, inside));
      }
    }
    const left = this.order.length - this.body.rows.length;
    this.more.hidden = left === 0;
    this.more.textContent = `${number(Math.min(left, ROWS))} more of ${number(left)}`;
  }
}
