// The links of this output over time, the latest first: how long each took, and what ran.

import { byId, element, moment, number, time } from "./text.js";

const SHOWN = 15;

export function past(links) {
  byId("past").hidden = byId("to-past").hidden = links.length < 2;
  if (links.length < 2) return;
  const longest = Math.max(1, ...links.map((link) => link.wall_us));
  const row = (link) => {
    const bar = element("span", { className: link.failed ? "bar failed" : "bar" });
    bar.style.width = `${(100 * link.wall_us) / longest}%`;
    const cells = link.unchanged
      ? ["nothing to do", "", ""]
      : [number(link.ran + link.remote), number(link.kept + link.cached), link.spared_us > 0 ? time(link.spared_us) : ""];
    if (link.failed) cells[0] += ", failed";
    return element(
      "tr",
      {},
      element("td", { className: "text" }, moment(link.begun_ms)),
      element("td", {}, link.unchanged ? "" : time(link.wall_us)),
      element("td", { className: "bars" }, bar),
      ...cells.map((cell) => element("td", {}, cell)),
    );
  };
  const body = byId("past-table").createTBody();
  const more = byId("past-more");
  const add = () => {
    const shown = body.rows.length;
    body.append(...links.slice(shown, shown + SHOWN).map(row));
    more.hidden = body.rows.length === links.length;
  };
  more.addEventListener("click", add);
  add();
}
