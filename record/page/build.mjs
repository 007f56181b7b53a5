// Makes one file of the page: `node build.mjs MODULES OUT`, with the folder of node_modules. `cargo xtask page` calls it.
//
// The same sources and the same locked packages give the same bytes. Script and style are named by their digests in the page's
// Content-Security-Policy, so a browser runs no other ones. The places for data, `@answers@` and `@data@`, stay.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));

function bundle(entry, ...options) {
  const words = [join(here, entry), "--bundle", "--minify", "--charset=ascii", "--legal-comments=none", ...options];
  const env = { ...process.env, NODE_PATH: modules };
  const text = execFileSync(join(modules, ".bin/esbuild"), words, { encoding: "utf8", env, maxBuffer: 1 << 26 });
  if (/<\/(script|style)/i.test(text)) throw new Error(`${entry} would end its own element`);
  return text.trim();
}

const digest = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

const script = bundle("main.js", "--format=iife", "--target=es2022");
const style = bundle("style.css");
const parts = {
  "@script@": script,
  "@style@": style,
  "@script-digest@": digest(script),
  "@style-digest@": digest(style),
  "@licence@": readFileSync(join(modules, "uplot/LICENSE"), "utf8").trim(),
};
const page = readFileSync(join(here, "page.html"), "utf8");
// A function, since `$&` in a text of a replacement has a meaning.
const built = page.replace(/@(script|style|script-digest|style-digest|licence)@/g, (place) => parts[place]);
for (const place of ["@answers@", "@data@"]) {
  if (built.split(place).length !== 2) throw new Error(`${place} stands not once in the page`);
}
writeFileSync(out, built);
