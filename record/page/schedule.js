// How long backends take on so many workers with so much memory: the rules of executor/src/schedule.rs on a simulated clock.
//
// The longest first. What does not fit has what it lacks kept for it: another one may overtake it only if there is room for it
// beside both what runs and the one that is overtaken. If nothing runs, the first one does, however large it is. A test compares
// the times with those of that schedule.

/** A queue of what runs, by end and then by beginning. */
class Running {
  constructor() {
    this.ends = [];
    this.places = [];
  }

  isBefore(a, b) {
    return this.ends[a] < this.ends[b] || (this.ends[a] === this.ends[b] && this.places[a][1] < this.places[b][1]);
  }

  swap(a, b) {
    [this.ends[a], this.ends[b]] = [this.ends[b], this.ends[a]];
    [this.places[a], this.places[b]] = [this.places[b], this.places[a]];
  }

  push(end, action, added) {
    let at = this.ends.push(end) - 1;
    this.places.push([action, added]);
    while (at > 0 && this.isBefore(at, (at - 1) >> 1)) {
      this.swap(at, (at - 1) >> 1);
      at = (at - 1) >> 1;
    }
  }

  pop() {
    const found = [this.ends[0], this.places[0][0]];
    const [end, place] = [this.ends.pop(), this.places.pop()];
    if (this.ends.length === 0) return found;
    [this.ends[0], this.places[0]] = [end, place];
    for (let at = 0; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) if (child < this.ends.length && this.isBefore(child, least)) least = child;
      if (least === at) return found;
      this.swap(at, least);
      at = least;
    }
  }
}

/** The first waiting action that needs no more than so much memory, in a tree of least needs. */
class Waiting {
  constructor(memory) {
    for (this.leaves = 1; this.leaves < memory.length; ) this.leaves *= 2;
    this.tree = new Float64Array(2 * this.leaves).fill(Infinity);
    this.tree.set(memory, this.leaves);
    for (let i = this.leaves - 1; i > 0; i--) this.tree[i] = Math.min(this.tree[2 * i], this.tree[2 * i + 1]);
  }

  first(most) {
    if (this.tree[1] > most || this.tree[1] === Infinity) return -1;
    let i = 1;
    while (i < this.leaves) i = this.tree[2 * i] <= most ? 2 * i : 2 * i + 1;
    return i - this.leaves;
  }

  remove(place) {
    let i = place + this.leaves;
    this.tree[i] = Infinity;
    for (i >>= 1; i > 0; i >>= 1) this.tree[i] = Math.min(this.tree[2 * i], this.tree[2 * i + 1]);
  }
}

/** Backends as they are scheduled: the longest first, in their order where they are equal. Of each its time, its memory and its
 * processor time; those of unknown time are left out. */
export function backends(all) {
  const known = all.filter(([time]) => !Number.isNaN(time));
  const weight = ([time]) => Math.max(1, time);
  known.sort((a, b) => weight(b) - weight(a));
  const column = (at) => Float64Array.from(known, (one) => one[at] || 0);
  return { count: known.length, times: column(0), memory: column(1), cpu: column(2) };
}

/** When the last of them ends, in microseconds. */
export function makespan({ count, times, memory }, workers, limit) {
  const waiting = new Waiting(memory);
  const running = new Running();
  const overtaking = new Set();
  let [used, now, added, reservedFor, overtakingMemory] = [0, 0, 0, -1, 0];
  const take = () => {
    const first = waiting.first(Number.MAX_VALUE);
    if (first < 0) return -1;
    if (running.ends.length === 0) return first;
    if (running.ends.length >= workers) return -1;
    if (used + memory[first] <= limit) return first;
    if (reservedFor !== first) {
      reservedFor = first;
      overtaking.clear();
      overtakingMemory = 0;
    }
    const most = Math.min(limit - memory[first] - overtakingMemory, limit - used);
    const found = most < 0 ? -1 : waiting.first(most);
    if (found >= 0) {
      overtaking.add(found);
      overtakingMemory += memory[found];
    }
    return found;
  };
  for (;;) {
    for (let next = take(); next >= 0; next = take()) {
      if (next === reservedFor) reservedFor = -1;
      waiting.remove(next);
      used += memory[next];
      running.push(now + times[next], next, added++);
    }
    if (running.ends.length === 0) return now;
    const [end, action] = running.pop();
    now = end;
    used -= memory[action];
    if (overtaking.delete(action)) overtakingMemory -= memory[action];
  }
}
