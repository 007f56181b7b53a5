// The page of a report: shows the answers at once, and the rest when the data is there. record/src/page.rs writes the data.

import { follow, keep, toModule } from "./address.js";
import { distributions } from "./charts.js";
import * as data from "./data.js";
import { links, line, searchField, show } from "./focus.js";
import { classes, found } from "./kinds.js";
import { ModuleMap, about } from "./map.js";
import { past } from "./past.js";
import { ModuleTable } from "./table.js";
import { byId, counted, element, facts, time } from "./text.js";
import { Timeline } from "./timeline.js";
import { whatIf } from "./whatif.js";

const json = (id) => JSON.parse(byId(`data-${id}`).textContent);
const sentences = (list, lines) => list.replaceChildren(...lines.map((text) => element("li", {}, text)));

/** A tile: a name, a value, a detail, and the module that it leads to. */
function tile({ name, value, detail, module }) {
  const said = module === undefined ? element("span", { className: "name" }, detail) : element("a", { className: "name", href: toModule(module) }, detail);
  return element("div", { className: "tile" }, element("dt", {}, name), element("dd", {}, element("strong", { className: "name" }, value), said));
}

function answers() {
  const first = json("first");
  byId("title").textContent = first.output;
  document.title = `${first.output}: distlto report`;
  facts(byId("about"), first.about);
  byId("tiles").replaceChildren(...first.tiles.map(tile));
  // The title has the name; the numbers of modules answer nothing.
  const [count, ...lines] = first.lines;
  sentences(byId("answers"), [...lines, count]);
  performance.mark("answers");
}

/** What became of each module in a run. */
function outcomes(run, count) {
  const ran = new Uint8Array(count);
  const action = new Int32Array(count).fill(-1);
  const kept = [];
  for (let i = 0; i < run.count; i++) {
    const module = run.module[i];
    if (Number.isNaN(module)) continue;
    action[module] = i;
    if (Number.isNaN(run.lane[i])) kept.push(module);
    else if (run.text("result", i) === "done" && run.cache[i] !== 2) ran[module] = 1;
  }
  const text = (column) => Array.from(action, (i) => (i < 0 ? "" : run.text(column, i)));
  const known = { ran, kept, action, found: found(run, action), why: text("why"), reason: text("reason") };
  known.of = (module) => {
    const i = action[module];
    if (i < 0) return "no action";
    const parts = [run.text("result", i)];
    if (run.cache[i] === 2) parts.push("from the cache");
    if (run.why[i] > 0) parts.push(`since ${run.text("why", i)}`);
    if (run.object[i] > 0) parts.push(run.object[i] === 2 ? "the object is another one" : "the object is the same");
    return parts.join(", ");
  };
  return known;
}

/** The modules whose times differ most between two runs. */
function differences(table, run, earlier, modules, last, before) {
  const rows = [];
  for (let i = 0; i < modules.count; i++) {
    const [now, then] = [run.time[last.action[i]], earlier.time[before.action[i]]];
    if (now >= 0 && then >= 0 && now !== then) rows.push([i, then, now]);
  }
  rows.sort((a, b) => Math.abs(b[2] - b[1]) - Math.abs(a[2] - a[1]));
  if (rows.length === 0) return;
  const head = ["module", "processor time before", "after", "difference"].map((text) => element("th", { scope: "col" }, text));
  const row = ([i, then, now]) => {
    const cells = [time(then), time(now), `${now < then ? "-" : "+"}${time(Math.abs(now - then))}`];
    return element("tr", {}, element("td", { className: "name" }, modules.names[i]), ...cells.map((cell) => element("td", {}, cell)));
  };
  const caption = element("caption", {}, "Backends that ran in both runs, the largest differences first");
  table.append(caption, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows.slice(0, 50).map(row)));
}

function comparison(facts, run, earlier, modules, last) {
  if (!facts.difference) return;
  byId("comparison").hidden = byId("to-comparison").hidden = false;
  sentences(byId("difference"), facts.difference);
  if (run && earlier) differences(byId("slower"), run, earlier, modules, last, outcomes(earlier, modules.count));
}

/** Shows the run, or says that there is none. */
function timeline(run, earlier, modules, last, choose) {
  byId("timeline-none").hidden = run !== undefined;
  byId("timeline-all").hidden = run === undefined;
  if (run === undefined) return null;
  byId("kept-all").hidden = last.kept.length === 0;
  byId("kept-title").textContent = `${counted(last.kept.length, "backend")} did not have to run or did not start`;
  const open = byId("kept-all");
  open.addEventListener("toggle", () => links(byId("kept"), modules.names, last.kept, choose), { once: true });
  return new Timeline(run, earlier, choose);
}

/** The choices that the address may hold. */
function linked(modules, table, lanes, paint, choose) {
  follow({
    colour: paint,
    sort: (by) => table.sort(by),
    module: (name) => {
      const i = modules.names.indexOf(name);
      if (i < 0) return;
      choose(i);
      byId("modules").scrollIntoView();
    },
    action: (number) => lanes?.pickAction(Number(number)),
  });
}

async function start() {
  const facts = json("facts");
  const modules = await data.modules(facts);
  const runs = [];
  for (const [at, about] of facts.runs.entries()) {
    const run = await data.run(about, `run${at}`);
    run.name = (i) => (Number.isNaN(run.module[i]) ? run.text("label", i) : modules.names[run.module[i]]);
    runs.push(run);
  }
  const [run, earlier] = runs;
  const last = run && outcomes(run, modules.count);
  const known = { facts, modules, graph: null, last };
  byId("map-about").textContent = about(modules, facts);
  const map = new ModuleMap(modules, classes("found", known), (i) => line(known, i), choose);
  function choose(i) {
    const inList = document.activeElement?.closest(".links, #critical");
    // The map makes room for what is shown beside it.
    const isFirst = byId("module").hidden;
    show(known, i, choose);
    if (isFirst) map.resize();
    map.focus(i);
    keep("module", modules.names[i]);
    // The list that had the button is another one; the heading is before what follows.
    if (inList || document.activeElement?.id === "lanes") byId("module-title").focus();
  }
  const paint = (kind) => {
    byId("colour").value = kind;
    map.paint(classes(byId("colour").value, known));
  };
  byId("colour").addEventListener("input", ({ target }) => {
    paint(target.value);
    keep("colour", target.value);
  });
  searchField(modules.names, choose);
  const lanes = timeline(run, earlier, modules, last, choose);
  comparison(facts, run, earlier, modules, last);
  past(facts.history);
  performance.mark("map");
  // What is shown is drawn before more is unpacked.
  await new Promise((done) => setTimeout(done));
  known.graph = map.graph = await data.imports(modules.count);
  const table = new ModuleTable(known);
  const redraw = [() => map.resize(), () => lanes?.resize(), distributions(known), whatIf(known, run)];
  if (map.focused >= 0) choose(map.focused);
  linked(modules, table, lanes, paint, choose);
  let timer = 0;
  const again = () => {
    clearTimeout(timer);
    timer = setTimeout(() => redraw.forEach((one) => one()), 60);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("resize", again);
  byId("main").setAttribute("aria-busy", "false");
  performance.mark("ready");
}

answers();
addEventListener("DOMContentLoaded", () => {
  start().catch((error) => {
    byId("main").prepend(element("p", { role: "alert" }, `This page cannot be shown: ${error}`));
    throw error;
  });
});
