// The sliders for workers and memory: how long a link of everything would take.

import { curve } from "./charts.js";
import { backends, makespan } from "./schedule.js";
import { byId, counted, size, time } from "./text.js";

/** As many points as are quickly drawn, also of 100,000 backends. */
const STEPS = 24;

/** Numbers of workers, up to where more bring nothing. */
function workersOf(all) {
  const longest = all.times[0];
  const found = [];
  for (let scale = 1; ; scale *= 2) {
    for (const workers of scale < 2 ? [1] : scale < 4 ? [2, 3] : [scale, scale * 1.5]) {
      found.push(workers);
      if (workers >= all.count || makespan(all, workers, Infinity) <= longest || found.length >= STEPS) return found;
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

/** Sets it up; gives what draws it again. */
export function whatIf(data) {
  const all = backends(data.modules);
  byId("what-if-none").hidden = all.count > 0;
  byId("what-if-all").hidden = all.count === 0;
  if (all.count === 0) return () => {};
  const [workers, memory, result] = [byId("workers"), byId("memory"), byId("what-if-result")];
  const numbers = workersOf(all);
  const budgets = budgetsOf(all, numbers.at(-1));
  const linker = data.facts.linker_us ?? 0;
  const jobs = data.facts.runs[0]?.jobs ?? 1;
  workers.max = numbers.length - 1;
  memory.max = budgets.length - 1;
  memory.disabled = budgets.length === 1;
  const nearest = numbers.findLastIndex((one) => one <= jobs);
  workers.value = Math.max(0, nearest);
  memory.value = budgets.length - 1;
  let known = { budget: NaN, times: [] };
  const at = (count, budget) => linker + makespan(all, count, budget);
  const show = () => {
    const [count, budget] = [numbers[workers.value], budgets[memory.value]];
    const told = budget === Infinity ? "no limit" : size(budget);
    byId("workers-value").textContent = workers.ariaValueText = counted(count, "worker");
    byId("memory-value").textContent = memory.ariaValueText = told;
    const us = at(count, budget);
    const alone = linker + all.times.reduce((sum, one) => sum + one, 0);
    result.textContent = `${time(us)} with ${counted(count, "worker")} and ${budget === Infinity ? "any memory" : told}; ${(alone / us).toFixed(1)} times as fast as one after the other, of which the linker takes ${time(linker)}`;
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
    if (known.budget !== budget) {
      const times = [];
      for (const count of numbers) {
        times.push(at(count, budget));
        // In between the page may do something else.
        await new Promise((done) => setTimeout(done));
        if (budgets[memory.value] !== budget) return;
      }
      known = { budget, times };
    }
    curve(byId("what-if-chart"), numbers, known.times, Number(workers.value));
  };
  workers.addEventListener("input", show);
  memory.addEventListener("input", show);
  show();
  return () => draw(budgets[memory.value]);
}
