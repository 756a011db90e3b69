// The pools, and the form that declares one.

import { $, bar, count, makeBar, setText, table } from "./dom.js";
import { act } from "./actions.js";

export function init() {
  $("declare").onsubmit = (event) => {
    event.preventDefault();
    const f = event.target.elements;
    const grow = f.Grow.value === "Additive" ? `Additive(${f.Step.value})` : f.Grow.value;
    act("declare", { Prefab: f.Prefab.value, Capacity: Number(f.Capacity.value), Grow: grow, Prewarm: f.Prewarm.checked });
  };
}

export function show(s) {
  table($("pool-table").tBodies[0], s.Pools.map((p, i) => ({ ...p, place: i })), (p) => p.Source + " " + p.place, [
    { kind: "name", text: (p) => p.Name },
    ...["Cap", "InUse", "Free", "Peak"].map((name) => ({ kind: "number", text: (p) => count(p[name]) })),
    { text: (p) => p.GrowShort },
    { text: (p) => (p.Warm ? "✓ warm" : "") },
    { kind: "number", text: (p) => count(p.Refused) },
    { make: makeBar, update: use },
    { text: note },
  ], (row, p) => {
    row.dataset.pool = p.Name;
    row.classList.toggle("full", p.Fixed && p.AtCap);
  });
  $("pools-left").hidden = !s.PoolsLeft;
  setText($("pools-left"), `and ${s.PoolsLeft} more`);
  $("declare").hidden = !(s.Actions && s.Declares);
}

// use shows how much of a pool is in use, and how much was at once.
function use(e, p) {
  bar(e.firstChild, [[p.InUse, "one"], [p.Peak - p.InUse, "inactive"], [Math.max(p.Cap - p.Peak, 0), "free"]]);
  e.setAttribute("role", "img");
  e.setAttribute("aria-label", `${p.InUse} of ${p.Cap} in use, at most ${p.Peak} were`);
}

function note(p) {
  const notes = [];
  if (p.Fixed && p.AtCap) notes.push("⚠ at its cap");
  if (p.Max) notes.push(`max ${count(p.Max)}`);
  if (p.Grown) notes.push(`grew ${count(p.Grown)}×`);
  if (p.Leaked) notes.push(`${count(p.Leaked)} leaked`);
  return notes.join(", ");
}
