// Classes of modules, for the colours of the map and the columns of the table: how an object was found, why a backend ran,
// how long it took.

import { number, time } from "./text.js";

const REASONS = 6;
const SHADES = 6;

/** How the object of each module was found in a run, in words; "" where the run has nothing of it. */
export function found(run, action) {
  return Array.from(action, (i) => {
    if (i < 0) return "";
    const result = run.text("result", i);
    if (result === "failed" || result === "interrupted" || result === "skipped" || result === "not-started") return result.replace("-", " ");
    if (result === "kept") return "linker's key";
    if (result === "up-to-date") return "up to date";
    if (result === "same-imports") return "same imports";
    if (run.cache[i] === 2) return "content";
    return run.worker[i] > 0 ? "ran on an engine" : "ran";
  });
}

/** Colours of the ways to find an object, the most work first. */
const WAYS = [
  ["failed", "failed", "failed"],
  ["interrupted", "failed", "interrupted"],
  ["ran", "ran", "its backend ran"],
  ["ran on an engine", "engine", "its backend ran on an engine"],
  ["content", "cached", "found by content"],
  ["same imports", "alike", "kept: it imports the same"],
  ["linker's key", "same", "found by the linker's key"],
  ["up to date", "same", "up to date"],
];

/** Classes by a word of each module: `[word, colour, text]` each; any other word is in the last one, `rest`. */
function byWord(words, kinds, rest) {
  const places = new Map(kinds.map(([word], at) => [word, at]));
  const of = Uint8Array.from(words, (word) => places.get(word) ?? kinds.length);
  return counted(of, [...kinds.map(([, colour, text]) => [colour, text]), ["unknown", rest]]);
}

/** Classes with their numbers of modules; those without any are not in the legend. */
function counted(of, colours) {
  const counts = new Array(colours.length).fill(0);
  for (const at of of) counts[at]++;
  const legend = colours.map(([colour, text], at) => [colour, `${text} (${number(counts[at])})`]);
  return { of, colours: colours.map(([colour]) => colour), legend: legend.filter((_, at) => counts[at] > 0) };
}

function byReason(reasons, ran) {
  const counts = new Map();
  const words = reasons.map((reason, i) => (ran[i] ? reason || "not known" : ""));
  for (const word of words) if (word) counts.set(word, (counts.get(word) ?? 0) + 1);
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, REASONS);
  const kinds = most.map(([word], at) => [word, `reason${at}`, word]);
  if (counts.size > REASONS) kinds.push(["another", "reason6", "another reason"]);
  const known = new Set(kinds.map(([word]) => word));
  return byWord(words.map((word) => (word && !known.has(word) ? "another" : word)), kinds, "did not run");
}

/** Each class is half as long as the one before, from the longest on. */
function byTime(times) {
  const longest = times.reduce((most, us) => (us > most ? us : most), 0);
  const of = Uint8Array.from(times, (us) => {
    if (Number.isNaN(us)) return SHADES;
    return us <= 0 ? SHADES - 1 : Math.min(SHADES - 1, Math.floor(Math.log2(longest / us)));
  });
  const text = (at) => (at === SHADES - 1 ? `less than ${time(longest / 2 ** at)}` : `${time(longest / 2 ** (at + 1))} to ${time(longest / 2 ** at)}`);
  const shades = Array.from({ length: SHADES }, (_, at) => [`shade${at}`, at === SHADES - 1 ? `less than ${time(longest / 2 ** at)}` : text(at)]);
  return counted(of, [...shades, ["unknown", "time not known"]]);
}

/** The classes of all modules by one of "found", "time" and "reason". */
export function classes(kind, { modules, last }) {
  if (kind === "time") return byTime(modules.time);
  if (kind === "reason") return byReason(last?.reason ?? modules.names.map(() => ""), last?.ran ?? []);
  return byWord(last?.found ?? modules.names.map(() => ""), WAYS, "not in the last run");
}
