// The page of a report: shows the answers at once, and the rest when the data is there. record/src/page.rs writes the data.

import { distributions } from "./charts.js";
import * as data from "./data.js";
import { links, line, searchField, show } from "./focus.js";
import { ModuleMap, about } from "./map.js";
import { byId, counted, element, time } from "./text.js";
import { Timeline } from "./timeline.js";
import { whatIf } from "./whatif.js";

const json = (id) => JSON.parse(byId(`data-${id}`).textContent);
const sentences = (list, lines) => list.replaceChildren(...lines.map((text) => element("li", {}, text)));

function answers() {
  const first = json("first");
  byId("title").textContent = first.output;
  document.title = `${first.output}: distlto report`;
  sentences(byId("answers"), first.lines);
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
  const of = (module) => {
    const i = action[module];
    if (i < 0) return "no action";
    const parts = [run.text("result", i)];
    if (run.cache[i] === 2) parts.push("from the cache");
    if (run.why[i] > 0) parts.push(`since ${run.text("why", i)}`);
    if (run.object[i] > 0) parts.push(run.object[i] === 2 ? "the object is another one" : "the object is the same");
    return parts.join(", ");
  };
  return { ran, kept, of, action };
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

/** Shows the run, or says that there is none; gives what draws it again. */
function timeline(run, earlier, modules, last, choose) {
  byId("timeline-none").hidden = run !== undefined;
  byId("timeline-all").hidden = run === undefined;
  if (run === undefined) return () => {};
  byId("kept-all").hidden = last.kept.length === 0;
  byId("kept-title").textContent = `${counted(last.kept.length, "backend")} did not have to run or did not start`;
  const open = byId("kept-all");
  open.addEventListener("toggle", () => links(byId("kept"), modules.names, last.kept, choose), { once: true });
  const shown = new Timeline(run, earlier, choose);
  return () => shown.resize();
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
  const map = new ModuleMap(modules, last?.ran, (i) => line(known, i), choose);
  function choose(i) {
    const inList = document.activeElement?.closest(".links, #critical");
    map.focus(i);
    show(known, i, choose);
    // The list that had the button is another one; the heading is before what follows.
    if (inList || document.activeElement?.id === "lanes") byId("module-title").focus();
  }
  searchField(modules.names, choose);
  const redraw = [() => map.resize(), timeline(run, earlier, modules, last, choose)];
  comparison(facts, run, earlier, modules, last);
  performance.mark("map");
  // What is shown is drawn before more is unpacked.
  await new Promise((done) => setTimeout(done));
  known.graph = map.graph = await data.imports(modules.count);
  redraw.push(distributions(known), whatIf(known, run));
  if (map.focused >= 0) choose(map.focused);
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
