// The sliders for workers and memory: how long a link would take with others, and the run itself as a point beside it.
//
// A backend takes as long as it took on its worker, so that the estimate for a run's own workers agrees with the run.

import { curve } from "./charts.js";
import { backends, makespan } from "./schedule.js";
import { byId, counted, size, time } from "./text.js";

/** As many points as are quickly drawn, also of 100,000 backends. */
const STEPS = 24;
/** Backends that took this much longer than their processor time have waited for the processor. */
const WAITED = 1.25;
/** Fewer slots than this that others held are nobody's. */
const LEAST_HELD = 0.05;

/** Numbers of workers, up to where more bring nothing; those of the run are among them. */
function workersOf(all, jobs) {
  const longest = all.times[0];
  const found = [];
  for (let scale = 1; ; scale *= 2) {
    for (const workers of scale < 2 ? [1] : scale < 4 ? [2, 3] : [scale, scale * 1.5]) {
      found.push(workers);
      if (workers < all.count && makespan(all, workers, Infinity) > longest && found.length < STEPS) continue;
      return found.includes(jobs) || !jobs ? found : [...found, jobs].sort((a, b) => a - b);
    }
  }
}

/** Budgets of memory from that of the largest backend to that of the largest ones together, and none. */
function budgetsOf(all, workers) {
  const sorted = Float64Array.from(all.memory).sort().reverse();
  const least = sorted[0];
  if (!(least > 0)) return [Infinity];
  const most = sorted.slice(0, workers).reduce((sum, one) => sum + one, 0);
  const found = [];
  for (let budget = least; budget < most && found.length < STEPS; budget *= 1.5) found.push(Math.ceil(budget / 1048576) * 1048576);
  return [...found, Infinity];
}

/** The backends of a run, and all of the link: each with its time on its worker. */
function scenes({ modules, facts }, run) {
  const ofRun = [];
  for (let i = 0; run && i < run.count; i++) {
    if (run.text("kind", i) !== "opt" || Number.isNaN(run.lane[i])) continue;
    ofRun.push([Math.max(0, run.length[i] - run.engine[1][i]), run.memory[i], run.time[i]]);
  }
  const ofAll = Array.from({ length: modules.count }, (_, i) => [modules.took[i], modules.memory[i], modules.time[i]]);
  const around = facts.runs[0]?.around ?? {};
  const scene = (tasks) => ({ ...backends(tasks), around, jobs: facts.runs[0]?.jobs ?? 0 });
  return { run: scene(ofRun), all: scene(ofAll) };
}

/** Where the run itself is beside its curve: the workers that others left it, and its time without waiting for any. */
function pointOf({ around, jobs, count }, facts) {
  if (count === 0 || !jobs || around.linker_us == null) return null;
  return { workers: Math.max(1, jobs - around.held), us: facts.runs[0].wall_us - around.idle_us };
}

/** The run's own time, in words. */
function ownTime({ around, jobs }, facts) {
  const held = around.held >= LEAST_HELD ? `, of which others held ${around.held.toFixed(1)} on average` : "";
  const idle = around.idle_us > 0 ? ` It waited ${time(around.idle_us)} for others with no backend running.` : "";
  return `The run itself took ${time(facts.runs[0].wall_us)} with ${counted(jobs, "worker")}${held}: the large ring.${idle}`;
}

/** How much of the backends' time was no processor's. */
function busyNote(scene) {
  const sum = (values) => values.reduce((all, one) => all + one, 0);
  const [took, cpu] = [sum(scene.times), sum(scene.cpu)];
  if (cpu <= 0 || took < WAITED * cpu) return "";
  return ` These backends took ${time(took)}, of which ${time(cpu)} on a processor: idle processors would be faster.`;
}

/** Sets it up; gives what draws it again. */
export function whatIf(data, run) {
  const all = scenes(data, run);
  byId("what-if-none").hidden = all.all.count > 0;
  byId("what-if-all").hidden = all.all.count === 0;
  if (all.all.count === 0) return () => {};
  const [workers, memory, result, choice] = ["workers", "memory", "what-if-result", "backends"].map(byId);
  choice.hidden = byId("backends-label").hidden = all.run.count === 0 || all.run.count === data.modules.count;
  choice.options[0].textContent = `the ${counted(all.run.count, "backend")} of the last run`;
  choice.options[1].textContent = `all ${counted(all.all.count, "backend")}`;
  choice.value = all.run.count > 0 ? "run" : "all";
  let [scene, numbers, budgets, known] = [null, [], [], {}];
  const at = (count, budget) => (scene.around.linker_us ?? 0) + makespan(scene, count, budget);
  const show = () => {
    const [count, budget] = [numbers[workers.value], budgets[memory.value]];
    const said = budget === Infinity ? "no limit" : size(budget);
    byId("workers-value").textContent = workers.ariaValueText = counted(count, "worker");
    byId("memory-value").textContent = memory.ariaValueText = said;
    const us = at(count, budget);
    const linker = scene.around.linker_us ?? 0;
    const alone = linker + scene.times.reduce((sum, one) => sum + one, 0);
    result.textContent = `${time(us)} with ${counted(count, "worker")} and ${budget === Infinity ? "any memory" : said}; ${(alone / us).toFixed(1)} times as fast as one after the other, of which ${time(linker)} are without a backend`;
    result.dataset.us = us;
    result.dataset.workers = count;
    result.dataset.memory = budget === Infinity ? "" : budget;
    later(() => draw(budget));
  };
  // The curve is of many schedules; the answer does not wait for it.
  let timer = 0;
  const later = (work) => {
    clearTimeout(timer);
    timer = setTimeout(work, 150);
  };
  const draw = async (budget) => {
    const drawn = scene;
    if (known.scene !== drawn || known.budget !== budget) {
      const times = [];
      for (const count of numbers) {
        times.push(at(count, budget));
        // In between the page may do something else.
        await new Promise((done) => setTimeout(done));
        if (scene !== drawn || budgets[memory.value] !== budget) return;
      }
      known = { scene: drawn, budget, times };
    }
    const point = scene === all.run ? pointOf(scene, data.facts) : null;
    curve(byId("what-if-chart"), numbers, known.times, Number(workers.value), point);
  };
  const choose = () => {
    scene = all[choice.value];
    numbers = workersOf(scene, scene.jobs);
    budgets = budgetsOf(scene, numbers.at(-1));
    workers.max = numbers.length - 1;
    memory.max = budgets.length - 1;
    memory.disabled = budgets.length === 1;
    workers.value = Math.max(0, numbers.indexOf(scene.jobs));
    memory.value = budgets.length - 1;
    const own = pointOf(all.run, data.facts) ? ownTime(all.run, data.facts) : "";
    byId("what-if-run").textContent = own + busyNote(scene);
    show();
  };
  for (const slider of [workers, memory]) slider.addEventListener("input", show);
  choice.addEventListener("input", choose);
  choose();
  return () => draw(budgets[memory.value]);
}
