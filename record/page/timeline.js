// The run in lanes: the linker, one for each slot, what compilers and linkers wrote of their own time, and the earlier run.

import { keep } from "./address.js";
import { byId, colour, element, facts, legend, moment, number, prepared, short, size, time } from "./text.js";

const HEAD = 22;

/** What an action is, in colours and in words. */
function kind(run, i) {
  const result = run.text("result", i);
  if (result === "failed" || result === "interrupted" || result === "again") return "failed";
  if (run.cache[i] === 2) return "cached";
  if (result === "up-to-date" || result === "same-imports") return "same";
  return run.worker[i] > 0 ? "engine" : "ran";
}

/** Rows of spans: of phases, of actions by lane, of traces. */
function rows(run, prefix) {
  const end = run.facts.wall_us;
  const linker = { title: `${prefix}linker`, spans: [], end, gap: () => "waits for objects" };
  // The phase in which most of a gap lies.
  const gap = (from, to) => {
    const shared = (phase) => Math.min(to, phase.end) - Math.max(from, phase.start);
    const [most] = [...run.facts.phases].sort((a, b) => shared(b) - shared(a));
    return most && shared(most) > (to - from) / 2 ? `waits for the ${most.name}` : "no backend is ready";
  };
  run.facts.phases.forEach((phase, at) => {
    linker.spans.push({ start: phase.start, length: Math.max(0, phase.end - phase.start), text: phase.name, colour: "linker", phase: at, run });
  });
  const lanes = Array.from({ length: run.facts.lanes }, (_, lane) => ({ title: `${prefix}${lane + 1}`, spans: [], end, gap }));
  for (let i = 0; i < run.count; i++) {
    if (Number.isNaN(run.lane[i])) continue;
    const span = { start: run.start[i], length: run.length[i], text: run.name(i), colour: kind(run, i), action: i, run };
    lanes[run.lane[i]].spans.push(span);
  }
  const traces = run.facts.traces.flatMap(({ name, events }) => {
    const deepest = events.reduce((most, event) => Math.max(most, event[3]), 0);
    const found = Array.from({ length: Math.min(deepest + 1, 6) }, (_, at) => ({ title: at === 0 ? short(name) : "", spans: [] }));
    for (const [text, start, length, depth] of events) {
      if (depth < found.length) found[depth].spans.push({ start, length, text, colour: "linker", run });
    }
    return found;
  });
  const all = [linker, ...lanes, ...traces];
  for (const row of all) row.spans.sort((a, b) => a.start - b.start);
  return all;
}

export class Timeline {
  /** `choose(i)` is called when the module of an action is wanted. */
  constructor(run, earlier, choose) {
    Object.assign(this, { run, earlier, choose, span: null, hovered: null });
    this.canvas = byId("lanes");
    this.kept = document.createElement("canvas");
    this.steps = new Set(run.facts.critical);
    legend(byId("timeline-legend"), [
      ["linker", "linker"],
      ["ran", "backend"],
      ["cached", "from the cache"],
      ["engine", "on a worker of an engine"],
      ["same", "up to date"],
      ["failed", "failed or interrupted"],
      ["critical", "critical path (frame)"],
    ]);
    if (earlier) {
      byId("earlier-label").hidden = false;
      byId("earlier").addEventListener("change", () => this.arrange());
    }
    this.listen();
    this.describe();
    this.arrange();
  }

  arrange() {
    const shown = byId("earlier").checked && this.earlier;
    this.rows = rows(this.run, "");
    if (shown) this.rows.push(...rows(this.earlier, "earlier "));
    this.whole = Math.max(1, this.run.facts.wall_us, shown ? this.earlier.facts.wall_us : 0);
    this.view = { from: 0, length: this.whole };
    const lanes = this.rows.length;
    this.each = lanes <= 40 ? 20 : Math.max(4, Math.floor(800 / lanes));
    this.resize();
  }

  resize() {
    this.colours = {};
    const names = ["linker", "ran", "cached", "engine", "same", "failed", "critical", "text", "faint", "line", "ground", "part"];
    for (const name of names) this.colours[name] = colour(name);
    this.draw();
  }

  isCritical(span) {
    if (span.run !== this.run) return false;
    return this.steps.has(span.action !== undefined ? span.action : span.phase !== undefined ? -1 - span.phase : NaN);
  }

  left(at) {
    return this.gutter + ((at - this.view.from) / this.view.length) * (this.width - this.gutter);
  }

  draw() {
    const height = HEAD + this.rows.length * this.each + 4;
    const { context, width } = prepared(this.canvas, height);
    Object.assign(this, { context, width, gutter: this.each > 11 ? 70 : 8 });
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    this.drawAxis(height);
    this.rows.forEach((row, at) => this.drawRow(row, HEAD + at * this.each));
    this.kept.width = this.canvas.width;
    this.kept.height = this.canvas.height;
    this.kept.getContext("2d").drawImage(this.canvas, 0, 0);
    this.drawChosen();
  }

  /** What changes with every movement of the pointer, over what is kept. */
  drawChosen() {
    const { context } = this;
    context.save();
    context.resetTransform();
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    context.drawImage(this.kept, 0, 0);
    context.restore();
    for (const [span, ink] of [[this.span, "text"], [this.hovered, "faint"]]) if (span) this.frame(span, this.colours[ink], 2);
  }

  drawAxis(height) {
    const { context, colours } = this;
    const steps = [1, 2, 5, 10];
    const wanted = this.view.length / Math.max(2, this.width / 110);
    const scale = 10 ** Math.floor(Math.log10(wanted));
    const step = scale * steps.find((one) => one * scale >= wanted);
    context.fillStyle = colours.faint;
    context.strokeStyle = colours.line;
    context.lineWidth = 1;
    for (let at = Math.ceil(this.view.from / step) * step; at <= this.view.from + this.view.length; at += step) {
      const x = Math.round(this.left(at)) + 0.5;
      context.beginPath();
      context.moveTo(x, HEAD - 4);
      context.lineTo(x, height);
      context.stroke();
      if (x < this.width - 30) context.fillText(step < 1000 ? `${(at / 1000).toFixed(1)} ms` : time(at), x + 2, 10);
    }
  }

  drawRow(row, top) {
    const { context, colours, each } = this;
    let covered = -1;
    for (const span of row.spans) {
      const left = Math.max(this.left(span.start), this.gutter);
      const right = Math.min(this.left(span.start + span.length), this.width);
      if (right < this.gutter || left > this.width || (right <= covered && right - left < 1)) continue;
      const wide = Math.max(0.7, right - left - (right - left > 3 ? 1 : 0));
      covered = left + wide;
      context.fillStyle = colours[span.colour];
      context.fillRect(left, top + 1, wide, each - 2);
      if (wide > 24 && each > 11) this.drawParts(span, left, wide, top);
      if (this.isCritical(span)) this.frame(span, colours.critical, 2, top);
      if (wide > 40 && each > 11) {
        context.save();
        context.beginPath();
        context.rect(left, top, wide - 3, each);
        context.clip();
        context.fillStyle = colours.text;
        context.fillText(short(span.text), left + 4, top + each / 2 + 0.5);
        context.restore();
      }
    }
    if (each > 11) this.drawGaps(row, top);
    if (each > 11 && row.title) {
      context.fillStyle = colours.faint;
      context.fillText(row.title, 2, top + each / 2 + 0.5, this.gutter - 6);
    }
  }

  /** Names what a lane waits for where nothing runs on it. */
  drawGaps(row, top) {
    if (row.gap === undefined) return;
    const { context, colours, each } = this;
    context.fillStyle = colours.faint;
    let from = 0;
    for (const { start, length } of [...row.spans, { start: row.end, length: 0 }]) {
      const [left, right] = [Math.max(this.left(from), this.gutter), Math.min(this.left(start), this.width)];
      const text = row.gap(from, start);
      if (right - left > context.measureText(text).width + 12) context.fillText(text, left + 6, top + each / 2 + 0.5);
      from = Math.max(from, start + length);
    }
  }

  /** What an action did besides its command, or on its way to a worker and back: paler. */
  drawParts(span, left, wide, top) {
    if (span.action === undefined || span.length <= 0) return;
    const i = span.action;
    const { engine, phases } = span.run;
    const [upload, queue, running, download] = engine.map((column) => column[i]);
    const parts = upload + queue + running + download > 0 ? [[upload + queue, 1], [running, 0], [download, 1]] : [[phases[0][i] + phases[1][i], 1], [phases[2][i], 0], [phases[3][i], 1]];
    this.context.fillStyle = this.colours.part;
    let x = left;
    for (const [length, isPale] of parts) {
      const part = (length / span.length) * wide;
      if (isPale && part > 0.5) this.context.fillRect(x, top + this.each - 6, Math.min(part, left + wide - x), 5);
      x = Math.min(x + part, left + wide);
    }
  }

  frame(span, ink, thick, top = HEAD + this.rowOf(span) * this.each) {
    const left = Math.max(this.left(span.start), this.gutter);
    const right = Math.min(this.left(span.start + span.length), this.width);
    if (right < this.gutter || left > this.width) return;
    this.context.strokeStyle = ink;
    this.context.lineWidth = Math.min(thick, this.each / 3);
    this.context.strokeRect(left + 0.5, top + 1.5, Math.max(1, right - left - 2), this.each - 3);
  }

  rowOf(span) {
    return this.rows.findIndex((row) => row.spans.includes(span));
  }

  at(x, y) {
    const row = this.rows[Math.floor((y - HEAD) / this.each)];
    if (!row || x < this.gutter) return null;
    const near = (this.view.length / (this.width - this.gutter)) * 2;
    const at = this.view.from + ((x - this.gutter) / (this.width - this.gutter)) * this.view.length;
    return row.spans.find((span) => span.start - near <= at && at <= span.start + span.length + near) ?? null;
  }

  /** Chooses a span and tells what is known of it. */
  pick(span) {
    this.span = span;
    this.hovered = null;
    const end = span.start + span.length;
    if (end < this.view.from || span.start > this.view.from + this.view.length) {
      this.view.from = Math.max(0, Math.min(this.whole - this.view.length, span.start));
      this.draw();
    } else this.drawChosen();
    tell(byId("action"), span, this);
    if (span.run === this.run && span.action !== undefined) keep("action", span.action);
  }

  /** Chooses an action of the run by its number. */
  pickAction(action) {
    const spans = this.rows.flatMap((row) => row.spans);
    const span = spans.find((one) => one.run === this.run && one.action === action);
    if (!span) return;
    this.pick(span);
    byId("timeline").scrollIntoView();
  }

  step(by) {
    // A run of a graph has nothing of the linker.
    const row = this.span ? this.rows[this.rowOf(this.span)] : this.rows.find((one) => one.spans.length > 0);
    const next = this.span ? row.spans[row.spans.indexOf(this.span) + by] : row?.spans[0];
    if (next) this.pick(next);
  }

  lane(by) {
    if (!this.span) return this.step(1);
    const middle = this.span.start + this.span.length / 2;
    for (let at = this.rowOf(this.span) + by; this.rows[at]; at += by) {
      const far = (span) => Math.max(0, span.start - middle, middle - span.start - span.length);
      const nearest = this.rows[at].spans.reduce((best, span) => (!best || far(span) < far(best) ? span : best), null);
      if (nearest) return this.pick(nearest);
    }
  }

  zoom(factor, at) {
    const length = Math.min(this.whole, Math.max(this.whole / 1e5, this.view.length * factor));
    const from = at - ((at - this.view.from) / this.view.length) * length;
    this.view = { from: Math.max(0, Math.min(this.whole - length, from)), length };
    this.draw();
  }

  listen() {
    const { canvas } = this;
    const moment = (x) => this.view.from + ((x - this.gutter) / (this.width - this.gutter)) * this.view.length;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => (drag = { x: event.offsetX, moved: false }));
    canvas.addEventListener("pointermove", (event) => {
      if (drag && event.buttons && Math.abs(event.offsetX - drag.x) > 3) {
        const by = ((drag.x - event.offsetX) / (this.width - this.gutter)) * this.view.length;
        this.view.from = Math.max(0, Math.min(this.whole - this.view.length, this.view.from + by));
        drag = { x: event.offsetX, moved: true };
        return this.draw();
      }
      const found = this.at(event.offsetX, event.offsetY);
      if (found === this.hovered) return;
      this.hovered = found;
      this.drawChosen();
      if (found) tell(byId("action"), found, this);
      else if (this.span) tell(byId("action"), this.span, this);
    });
    canvas.addEventListener("click", (event) => {
      const found = drag?.moved ? null : this.at(event.offsetX, event.offsetY);
      drag = null;
      if (found) this.pick(found);
    });
    canvas.addEventListener("dblclick", () => this.open());
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.shiftKey) return;
        event.preventDefault();
        this.zoom((event.deltaY || event.deltaX) < 0 ? 1 / 1.3 : 1.3, moment(event.offsetX));
      },
      { passive: false },
    );
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  open() {
    const i = this.span?.action;
    const module = i === undefined ? NaN : this.span.run.module[i];
    if (!Number.isNaN(module)) this.choose(module);
  }

  key(event) {
    const middle = this.span ? this.span.start + this.span.length / 2 : this.view.from + this.view.length / 2;
    const actions = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      ArrowUp: () => this.lane(-1),
      ArrowDown: () => this.lane(1),
      "+": () => this.zoom(1 / 1.5, middle),
      "=": () => this.zoom(1 / 1.5, middle),
      "-": () => this.zoom(1.5, middle),
      0: () => this.zoom(Infinity, middle),
      Enter: () => this.open(),
    };
    if (!Object.hasOwn(actions, event.key)) return;
    actions[event.key]();
    event.preventDefault();
  }

  /** Says in words what the picture shows. */
  describe() {
    const { run } = this;
    const { facts: about } = run;
    const states = new Map();
    for (let i = 0; i < run.count; i++) {
      const word = Number.isNaN(run.lane[i]) ? run.text("result", i) : { cached: "from the cache", engine: "on an engine" }[kind(run, i)] ?? run.text("result", i);
      states.set(word, (states.get(word) ?? 0) + 1);
    }
    const list = [...states].map(([word, count]) => `${number(count)} ${word}`).join(", ");
    const jobs = about.jobs === null ? "" : `, at most ${about.jobs} at once`;
    byId("timeline-about").textContent = `The run of ${moment(about.begun_ms)} took ${time(about.wall_us)}${jobs}: ${list || "no action"}. Pale at the lower edge: what is not the command, such as looking up, sending and checking. Ctrl or Shift with the wheel zooms, dragging moves.${about.traces.length ? "" : " No time trace of a compiler or a linker is merged."}`;
    const steps = about.critical.map((step) => {
      const phase = step < 0 ? about.phases[-1 - step] : null;
      const [name, start, length] = phase ? [phase.name, phase.start, phase.end - phase.start] : [run.name(step), run.start[step], run.length[step]];
      return { name, start, length };
    });
    const shown = steps.length > 200 ? [...steps].sort((a, b) => b.length - a.length).slice(0, 200).sort((a, b) => a.start - b.start) : steps;
    byId("critical").replaceChildren(
      ...shown.map(({ name, start, length }) => element("li", {}, element("bdi", {}, name), `, ${time(length)}, from ${time(start)} on`)),
    );
  }
}

/** What is known of a span. */
function tell(panel, span, timeline) {
  const pairs = [
    ["begins", time(span.start)],
    ["takes", time(span.length)],
  ];
  if (span.action !== undefined) pairs.push(...known(span.run, span.action, span, timeline));
  if (timeline.isCritical(span)) pairs.push(["critical path", "yes: the end of the run waited for it"]);
  const list = element("dl");
  facts(list, pairs);
  panel.replaceChildren(element("strong", { className: "name" }, span.text), list);
}

function known(run, i, span, timeline) {
  const value = (column, text) => (Number.isNaN(column[i]) ? "" : text(column[i]));
  const parts = (columns, names) =>
    columns.map((column, at) => [names[at], column[i]]).filter(([, us]) => us > 0).map(([name, us]) => `${name} ${time(us)}`).join(", ");
  return [
    ["action", run.text("kind", i)],
    ["result", run.text("result", i)],
    ["reason", run.text("why", i)],
    ["failure", run.text("failure", i)],
    ["cache", ["", "asked, and had none", "had the result"][run.cache[i]]],
    ["processor time", value(run.time, time)],
    ["memory", value(run.memory, size)],
    ["object", ["", "the same as before", "differs from the one before"][run.object[i]]],
    ["was at", parts(run.phases, ["checking inputs", "asking the cache", "the command", "checking and storing"])],
    ["worker", run.text("worker", i)],
    ["on the way", parts(run.engine, ["sending", "queued", "running", "receiving"])],
    ["waits for it", waits(run, i, span, timeline)],
  ];
}

/** What waited for an action: the linker for all backends, and what had its slot next. */
function waits(run, i, span, timeline) {
  const row = timeline.rows.find((one) => one.spans.includes(span));
  const next = row?.spans[row.spans.indexOf(span) + 1];
  const slot = next ? `; its slot was ${short(next.text)}'s next` : "";
  const of = { opt: "the link of the program, which needs all objects", index: "every backend", link: "nothing" }[run.text("kind", i)];
  return `${of ?? "what reads its outputs"}${slot}`;
}

