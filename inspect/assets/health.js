// What the engine does, counters, and the handle spaces.

import { $, bar, count, duration, make, makeBar, setText, table } from "./dom.js";

const signs = { running: "▶", paused: "⏸", held: "⚠", stopped: "■", stopping: "■", "not started": "○", idle: "○", stepping: "▶" };

export function show(s) {
  badge(s.State, s.State);
  setText($("headline"), `frame ${count(s.Frame)}, ${s.Rate} a second, ${count(s.Registry.Live)} live`);
  showHeld(s.Held);
  counters(s);
  spaces(s.Spaces);
  systems(s);
}

export function badge(state, text) {
  $("state").dataset.state = state;
  setText($("state"), `${signs[state] || "?"} ${text}`);
}

function showHeld(held) {
  $("held").hidden = !held;
  if (!held) return;
  const since = new Date(held.Since).toLocaleTimeString();
  setText($("held-text"), `Logic is held since ${since}, for ${duration(held.ForNanos)}, by: ${held.By}`);
  $("held-stacks").hidden = !held.Stacks;
  setText($("held-stacks-text"), held.Stacks || "");
}

function counters(s) {
  const e = s.Engine, r = s.Registry;
  const values = {
    "Live": count(r.Live), "Inactive": count(r.Inactive), "Idle in pools": count(r.Idle), "Tombstoned": count(r.Tombstoned),
    "Allocated": count(r.Allocated), "Chunks": count(r.Chunks), "Pending destructions": count(r.PendingDestructions),
    "Waiting callers": count(e.Waiting), "Queued operations": count(e.Queued), "Overruns": count(e.Overruns),
    "Dropped frames": count(e.DroppedFrames), "Rollbacks": count(e.Rollbacks), "Publish skips": count(e.PublishSkips),
    "Pinned frames": count(r.Pinned), "Peers": count(e.Peers),
    "Frame p50 / p99": `${duration(e.FrameTime.P50Nanos)} / ${duration(e.FrameTime.P99Nanos)}`,
  };
  const list = $("counters");
  if (!list.children.length) {
    for (const name of Object.keys(values)) list.append(make("div", { data: { counter: name } }, make("dt", {}, name), make("dd")));
  }
  for (const item of list.children) setText(item.lastChild, values[item.dataset.counter]);
}

function spaces(list) {
  table($("spaces").tBodies[0], list, (s) => s.Space, [
    { text: (s) => s.Space },
    ...["Issued", "Free", "Pending", "Retired"].map((name) => ({ kind: "number", text: (s) => count(s[name]) })),
    { make: makeBar, update: shares },
    { text: (s) => (s.Pending ? `${count(s.AgeFrames)} frames; waits for ${s.HeldBy}` : "none") },
  ], (row, s) => { row.dataset.space = s.Space; });
}

// shares shows how a space is shared out, issued first.
function shares(e, s) {
  bar(e.firstChild, [[s.Issued, "one"], [s.Free, "free"], [s.Pending, "two"], [s.Retired, "limit"]], 2);
  e.setAttribute("role", "img");
  e.setAttribute("aria-label", `${s.Issued} issued, ${s.Free} free, ${s.Pending} pending, ${s.Retired} retired`);
}

let shownSystems = "";

function systems(s) {
  const key = JSON.stringify([s.Systems, s.SystemsLeft]);
  if (key === shownSystems) return;
  shownSystems = key;
  const items = s.Systems.map((y) => make("li", { data: { system: y.Name } }, make("span", { className: "long" }, `${y.Phase}: ${y.Name}`)));
  if (s.SystemsLeft) items.push(make("li", {}, `and ${s.SystemsLeft} more`));
  $("systems").querySelector("ol").replaceChildren(...items);
}
