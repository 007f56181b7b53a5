// Distributions, drawn by uPlot: how many modules are how large. Each has a sentence that says the same.

import uPlot from "uplot";

import { byId, colour, element, number, size, time } from "./text.js";

const BARS = 40;

/** Numbers in bars of equal width, or of equal ratio where a few are many times as large as most. */
function bars(values) {
  const sorted = Float64Array.from(values).filter((value) => !Number.isNaN(value)).sort();
  const [least, most] = [sorted[0] ?? 0, sorted.at(-1) ?? 0];
  const edges = [least];
  if (most - least <= BARS || most <= 20 * least) {
    const step = Math.max(1, Math.ceil((most - least + 1) / BARS));
    for (let i = 1; i < BARS && least + i * step <= most; i++) edges.push(least + i * step);
  } else {
    const first = Math.max(1, sorted.find((value) => value > 0));
    const ratio = (most / first) ** (1 / BARS);
    for (let edge = least > 0 ? first * ratio : first; edge <= most && edges.length < 2 * BARS; edge *= Math.max(ratio, 1 + 1 / edge)) edges.push(Math.floor(edge));
  }
  const counts = new Array(edges.length).fill(0);
  let bar = 0;
  for (const value of sorted) {
    while (bar + 1 < edges.length && edges[bar + 1] <= value) bar++;
    counts[bar]++;
  }
  return { sorted, edges, counts };
}

/** An axis in the colours of the page. */
function axis(values, more = {}) {
  return { stroke: colour("faint"), grid: { stroke: colour("line"), width: 0.5 }, ticks: { stroke: colour("line") }, values, ...more };
}

function draw(place, { edges, counts }, text) {
  const labels = (_, splits) => splits.map((at) => (Number.isInteger(at) && edges[at] !== undefined ? text(edges[at]) : ""));
  const options = {
    width: Math.max(200, place.clientWidth),
    height: 180,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: [-0.5, edges.length - 0.5] }, y: { range: (_, __, most) => [0, Math.max(1, most * 1.05)] } },
    axes: [axis(labels, { space: 70 }), axis((_, splits) => splits.map((at) => (Number.isInteger(at) ? number(at) : "")), { size: 60 })],
    series: [{}, { fill: colour("ran"), stroke: colour("ran"), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.9, 100] }) }],
  };
  place.replaceChildren();
  new uPlot(options, [edges.map((_, at) => at), counts], place);
}

/** All charts; gives what draws them again. */
export function distributions(data) {
  const { modules, graph, facts } = data;
  const kinds = [
    ["Processor time of backends", modules.time, time],
    ["Memory of backends", modules.memory, size],
  ];
  if (facts.knows_imports) {
    kinds.push(["Imports of a module", Float64Array.from({ length: modules.count }, (_, i) => graph.imports.count(i)), number]);
    kinds.push(["Importers of a module", Float64Array.from({ length: modules.count }, (_, i) => graph.importers.count(i)), number]);
  }
  const drawn = kinds.map(([title, values, text]) => {
    const found = bars(values);
    const box = element("figure", {}, element("h3", {}, title));
    box.style.margin = "0";
    byId("charts").append(box);
    const share = (part) => text(found.sorted[Math.min(found.sorted.length - 1, Math.floor(found.sorted.length * part))]);
    if (found.sorted.length === 0) {
      box.append(element("figcaption", {}, "not known of any module"));
      return () => {};
    }
    const place = element("div", { className: "chart" });
    place.setAttribute("aria-hidden", "true");
    box.append(
      place,
      element("figcaption", {}, `${number(found.sorted.length)} modules: half of them at most ${share(0.5)}, nine of ten at most ${share(0.9)}, the most ${text(found.sorted.at(-1))}`),
    );
    return () => draw(place, found, text);
  });
  const all = () => drawn.forEach((one) => one());
  all();
  return all;
}

/** Where a number of workers lies between the places of these. */
function placeOf(workers, count) {
  const after = workers.findIndex((one) => one >= count);
  if (after <= 0) return Math.max(0, after);
  const [low, high] = [workers[after - 1], workers[after]];
  return after - 1 + (count - low) / (high - low);
}

/** A line of times by workers, and what was measured as a ring. */
export function curve(place, workers, times, chosen, measured) {
  const ring = (chart) => {
    if (!measured) return;
    const { ctx: context } = chart;
    context.beginPath();
    context.arc(chart.valToPos(placeOf(workers, measured.workers), "x", true), chart.valToPos(measured.us, "y", true), 9 * devicePixelRatio, 0, 7);
    context.strokeStyle = colour("text");
    context.lineWidth = 2 * devicePixelRatio;
    context.stroke();
  };
  const options = {
    width: Math.max(200, place.clientWidth),
    height: 200,
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: [-0.2, workers.length - 0.8] }, y: { range: (_, __, most) => [0, Math.max(most, measured?.us ?? 0) * 1.1] } },
    axes: [
      axis((_, splits) => splits.map((at) => (workers[at] === undefined ? "" : number(workers[at]))), { label: "workers", labelGap: 0, labelSize: 20 }),
      axis((_, splits) => splits.map((at) => time(at)), { size: 70 }),
    ],
    series: [
      {},
      { stroke: colour("ran"), width: 2, points: { show: true, size: 5 } },
      { stroke: colour("critical"), width: 0, points: { show: true, size: 10, fill: colour("critical") } },
    ],
    hooks: { draw: [ring] },
  };
  place.replaceChildren();
  new uPlot(options, [workers.map((_, at) => at), times, times.map((us, at) => (at === chosen ? us : null))], place);
}
