// The blocks of the page as arrays: the other side of record/src/page/{block,modules,timeline}.rs.

/** The bytes of a block: base64, deflated. */
export async function inflated(id) {
  const text = document.getElementById(`data-${id}`).textContent;
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const inflater = new DecompressionStream("deflate");
  const written = write(inflater.writable.getWriter(), packed);
  const parts = [];
  let length = 0;
  for await (const part of inflater.readable) {
    parts.push(part);
    length += part.length;
  }
  await written;
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

async function write(writer, bytes) {
  await writer.write(bytes);
  await writer.close();
}

/** Varints, one after the other. */
export class Numbers {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  next() {
    let byte = this.bytes[this.at++];
    let value = byte & 127;
    for (let unit = 128; byte > 127; unit *= 128) {
      byte = this.bytes[this.at++];
      value += (byte & 127) * unit;
    }
    return value;
  }

  column(count) {
    const column = new Float64Array(count);
    for (let i = 0; i < count; i++) column[i] = this.next();
    return column;
  }

  /** Numbers of which some are not known; those are NaN. */
  known(count) {
    const column = this.column(count);
    for (let i = 0; i < count; i++) column[i] = column[i] === 0 ? NaN : column[i] - 1;
    return column;
  }
}

/** The modules and the directories that they lie in. */
export async function modules(facts) {
  const { modules: count, directories } = facts;
  const lines = new TextDecoder().decode(await inflated("names")).split("\n");
  const numbers = new Numbers(await inflated("modules"));
  const sides = (n) => [numbers.column(n), numbers.column(n), numbers.column(n), numbers.column(n)];
  return {
    count,
    names: lines.slice(0, count),
    own: numbers.column(count),
    imported: numbers.column(count),
    time: numbers.known(count),
    took: numbers.known(count),
    memory: numbers.known(count),
    sides: sides(count),
    directories: {
      count: directories,
      names: lines.slice(count, count + directories),
      depth: numbers.column(directories),
      sides: sides(directories),
    },
  };
}

/** Lists of modules, one for each module: `at(i)` are those of module i. */
class Lists {
  constructor(starts, values) {
    this.starts = starts;
    this.values = values;
  }

  at(i) {
    return this.values.subarray(this.starts[i], this.starts[i + 1]);
  }

  count(i) {
    return this.starts[i + 1] - this.starts[i];
  }
}

/** Who imports from whom, in both directions. */
export async function imports(count) {
  const numbers = new Numbers(await inflated("imports"));
  const starts = new Uint32Array(count + 1);
  for (let i = 0; i < count; i++) starts[i + 1] = starts[i] + numbers.next();
  const total = starts[count];
  const values = new Uint32Array(total);
  const back = new Uint32Array(count + 1);
  for (let i = 0, at = 0; i < count; i++) {
    for (let before = 0; at < starts[i + 1]; at++) {
      before += numbers.next();
      values[at] = before;
      back[before + 1]++;
    }
  }
  for (let i = 0; i < count; i++) back[i + 1] += back[i];
  const free = back.slice();
  const importers = new Uint32Array(total);
  for (let i = 0; i < count; i++) {
    for (let at = starts[i]; at < starts[i + 1]; at++) importers[free[values[at]]++] = i;
  }
  return { total, imports: new Lists(starts, values), importers: new Lists(back, importers) };
}

/** The actions of a run, in the order in which timeline.rs writes their columns. */
export async function run(facts, id) {
  const count = facts.actions;
  const numbers = new Numbers(await inflated(id));
  const run = { facts, count, module: numbers.known(count) };
  for (const name of ["label", "kind", "result", "why", "reason", "worker", "failure", "cache"]) run[name] = numbers.column(count);
  run.time = numbers.known(count);
  run.memory = numbers.known(count);
  run.object = numbers.column(count);
  run.start = numbers.column(count);
  run.length = numbers.column(count);
  run.lane = numbers.known(count);
  run.phases = [0, 1, 2, 3].map(() => numbers.column(count));
  run.engine = [0, 1, 2, 3].map(() => numbers.column(count));
  const texts = new TextDecoder().decode(numbers.bytes.subarray(numbers.at)).split("\n");
  run.text = (column, i) => texts[run[column][i]];
  return run;
}
