// The chosen module: found by its name, by a click or by an import; what is known of it; who imports from whom.

import { byId, counted, element, facts, number, size, time } from "./text.js";

/** How many names a list shows at first, and how many more each time. */
const SHOWN = 100;
const FOUND = 50;

/** Finds modules by a part of their names, whatever its case. */
export class Search {
  constructor(names) {
    this.starts = new Float64Array(names.length + 1);
    const lower = names.map((name) => name.toLowerCase());
    lower.forEach((name, i) => (this.starts[i + 1] = this.starts[i] + name.length + 1));
    this.text = `${lower.join("\n")}\n`;
  }

  /** The first modules, and how many there are. */
  find(part) {
    const found = [];
    let count = 0;
    for (let at = this.text.indexOf(part); at >= 0; count++) {
      const i = this.moduleAt(at);
      if (found.length < FOUND) found.push(i);
      at = this.text.indexOf(part, this.starts[i + 1]);
    }
    return { found, count };
  }

  moduleAt(at) {
    let [low, high] = [0, this.starts.length - 1];
    while (high - low > 1) {
      const half = (low + high) >> 1;
      if (this.starts[half] <= at) low = half;
      else high = half;
    }
    return low;
  }
}

/** The field with the list of what was found. */
export function searchField(names, choose) {
  const [input, list, said] = [byId("search"), byId("found"), byId("found-count")];
  const search = new Search(names);
  let active = -1;
  const close = () => {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const activate = (next) => {
    const options = list.children;
    if (options.length === 0) return;
    options[active]?.setAttribute("aria-selected", "false");
    active = (next + options.length) % options.length;
    options[active].setAttribute("aria-selected", "true");
    options[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[active].id);
  };
  const take = (option) => {
    close();
    choose(Number(option.dataset.module));
  };
  input.addEventListener("input", () => {
    const part = input.value.trim().toLowerCase();
    close();
    list.replaceChildren();
    said.textContent = "";
    if (part === "") return;
    const { found, count } = search.find(part);
    for (const [at, i] of found.entries()) {
      const option = element("li", { id: `found-${at}`, role: "option", className: "name" }, names[i]);
      option.dataset.module = i;
      option.setAttribute("aria-selected", "false");
      list.append(option);
    }
    said.textContent = count > FOUND ? `${number(count)} found, the first ${FOUND} listed` : `${number(count)} found`;
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(found.length > 0));
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") activate(active + 1);
    else if (event.key === "ArrowUp") activate(active < 0 ? -1 : active - 1);
    else if (event.key === "Escape" && !list.hidden) close();
    else if (event.key === "Enter" && !list.hidden) take(list.children[Math.max(active, 0)]);
    else return;
    event.preventDefault();
  });
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => event.target.closest("li") && take(event.target.closest("li")));
  input.addEventListener("blur", close);
}

/** One line on a module. */
export function line(data, i) {
  const { modules, graph } = data;
  const parts = [modules.names[i]];
  if (!Number.isNaN(modules.time[i])) parts.push(time(modules.time[i]));
  if (graph && data.facts.knows_imports) {
    parts.push(counted(graph.importers.count(i), "importer"), counted(graph.imports.count(i), "import"));
  }
  return parts.join(", ");
}

/** Shows a module beside the map, and says so to who cannot see it. */
export function show(data, i, choose) {
  const { modules, graph, last } = data;
  byId("module").hidden = false;
  byId("module-title").textContent = modules.names[i];
  const known = (value, text) => (Number.isNaN(value) ? "not known" : text(value));
  const shows = graph && data.facts.knows_imports;
  facts(byId("module-facts"), [
    ["processor time", known(modules.time[i], time)],
    ["memory", known(modules.memory[i], size)],
    ["instructions", `${number(modules.own[i])}, and ${number(modules.imported[i])} imported`],
    ["importers", shows ? number(graph.importers.count(i)) : "not known"],
    ["imports", shows ? number(graph.imports.count(i)) : "not known"],
    ["in the last run", last?.of(i)],
    ["an edit runs", shows ? editRuns(data, i) : ""],
  ]);
  links(byId("importers"), modules.names, shows ? graph.importers.at(i) : [], choose);
  links(byId("imports-list"), modules.names, shows ? graph.imports.at(i) : [], choose);
  byId("live").textContent = line(data, i);
}

function editRuns({ modules, graph }, i) {
  let us = modules.time[i] || 0;
  for (const importer of graph.importers.at(i)) us += modules.time[importer] || 0;
  const count = counted(graph.importers.count(i) + 1, "backend");
  return us > 0 ? `${count}, ${time(us)} of processor time` : count;
}

/** Modules as buttons, some at first. */
export function links(list, names, modules, choose) {
  list.replaceChildren();
  let shown = 0;
  const more = element("button", { className: "more", type: "button" });
  const add = () => {
    const next = modules.slice(shown, shown + SHOWN);
    shown += next.length;
    for (const i of next) {
      const button = element("button", { type: "button" }, names[i]);
      button.addEventListener("click", () => choose(i));
      list.append(element("li", {}, button));
    }
    if (shown < modules.length) {
      more.textContent = `${number(modules.length - shown)} more`;
      list.append(element("li", {}, more));
    }
  };
  more.addEventListener("click", () => {
    more.parentElement.remove();
    const before = list.children.length;
    add();
    list.children[before]?.querySelector("button").focus();
  });
  add();
  if (modules.length === 0) list.append(element("li", {}, "none"));
}
