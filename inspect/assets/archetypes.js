// The table of archetypes, and the chunk map of the one that was chosen: a pixel for each slot.

import { $, bytes, colour, count, make, setText, table } from "./dom.js";

let perRow = 256, scale = 2; // slots in a row, and points a slot is wide and high
const states = { L: "live", I: "inactive", P: "idle", T: "tomb", K: "kept", ".": "free", _: "unused" };

export const chosen = { archetype: -1, first: 0 };
let onChoice = () => {}, map = null;

export function init(choice) {
  onChoice = choice;
  $("chunks-close").onclick = () => {
    const row = $("archetype-table").querySelector(`tr[data-archetype="${chosen.archetype}"] button`);
    choose(-1, 0);
    row?.focus(); // what had the focus is gone
  };
  $("chunks-before").onclick = () => choose(chosen.archetype, Math.max(0, chosen.first - Math.max(1, map?.Map.length || 1)));
  $("chunks-after").onclick = () => choose(chosen.archetype, chosen.first + (map?.Map.length || 1));
  $("chunk-map").onmousemove = hover;
  $("chunk-map").onmouseleave = describe;
}

function choose(archetype, first) {
  Object.assign(chosen, { archetype, first });
  map = null;
  $("chunks").hidden = archetype < 0;
  setText($("chunk-text"), "waiting for the next window");
  onChoice();
}

export function show(r) {
  table($("archetype-table").tBodies[0], r.Archetypes, (a) => a.Number, [
    {
      kind: "name",
      make: (a) => make("button", { className: "link", type: "button", title: "Show its chunk map", onclick: () => choose(a.Number, 0) }, make("span", { className: "long" })),
      update: (e, a) => setText(e.firstChild, a.Class + (a.Pooled ? ` (pool ${a.Pooled})` : "")),
    },
    ...["Live", "Allocated", "Idle", "Chunks"].map((name) => ({ kind: "number", text: (a) => count(a[name]) })),
    { kind: "number", text: (a) => bytes(a.Bytes) },
    { kind: "number", text: (a) => (a.Fragmentation * 100).toFixed(0) + " %" },
    { text: (a) => a.Tier || "" },
    { kind: "name", text: (a) => (a.Parts || []).map((p) => `${p.Name} (${p.Tier}${p.Split ? ", split" : ""})${p.Fields ? ": " + p.Fields.join(", ") : ""}`).join("\n") },
  ], (row, a) => {
    row.dataset.archetype = a.Number;
    row.setAttribute("aria-current", String(a.Number === chosen.archetype));
  });
  $("archetypes-left").hidden = !r.ArchetypesLeft;
  setText($("archetypes-left"), `and ${r.ArchetypesLeft} more`);
}

// showMap draws a chunk below the other, each in rows of perRow slots, with a line between chunks.
export function showMap(m) {
  if (m.Waiting || m.Archetype !== chosen.archetype || m.First !== chosen.first) return;
  map = m;
  const canvas = $("chunk-map"), slots = m.Map.reduce((n, c) => n + c.Slots.length, 0);
  perRow = slots > 8192 ? 256 : slots > 1024 ? 128 : 64;
  scale = Math.max(2, Math.min(12, Math.floor(canvas.parentElement.clientWidth / perRow)));
  const rows = m.Map.map((c) => Math.ceil(c.Slots.length / perRow)), height = rows.reduce((a, b) => a + b + 1, 0);
  canvas.width = perRow;
  canvas.height = Math.max(height, 1);
  canvas.style.width = `${perRow * scale}px`;
  canvas.style.height = `${height * scale}px`;
  const c = canvas.getContext("2d"), image = c.createImageData(perRow, Math.max(height, 1));
  const colours = Object.fromEntries(Object.entries(states).map(([letter, name]) => [letter, rgb(c, colour(name))]));
  const counts = {};
  let y = 0;
  m.Map.forEach((chunk, i) => {
    for (let slot = 0; slot < chunk.Slots.length; slot++) {
      const letter = chunk.Slots[slot], at = ((y + Math.floor(slot / perRow)) * perRow + (slot % perRow)) * 4;
      counts[letter] = (counts[letter] || 0) + 1;
      image.data.set(colours[letter], at);
    }
    y += rows[i] + 1;
  });
  c.putImageData(image, 0, 0);
  canvas.dataset.frame = m.Frame;
  describe();
  legend(counts);
  $("chunks-before").disabled = m.First === 0;
  $("chunks-after").disabled = m.First + m.Map.length >= m.Chunks;
}

// rgb is a colour as four bytes.
function rgb(c, name) {
  c.fillStyle = name;
  const n = parseInt(c.fillStyle.slice(1), 16);
  return [n >> 16, (n >> 8) & 255, n & 255, 255];
}

function describe() {
  if (!map) return;
  setText($("chunks-h"), `Chunk map of ${map.Class}`);
  const last = map.Map.length ? map.First + map.Map.length - 1 : map.First;
  setText($("chunk-text"), `frame ${count(map.Frame)}: chunks ${map.First} to ${last} of ${map.Chunks}; ${count(map.Allocated)} slots allocated of ${count(map.Capacity)}`);
}

function legend(counts) {
  const list = $("chunk-legend");
  if (!list.children.length) {
    for (const [letter, name] of Object.entries(map.Letters)) {
      list.append(make("li", { data: { slots: letter, name } }, make("canvas", { width: 14, height: 14 }), make("span")));
    }
  }
  for (const item of list.children) {
    const c = item.firstChild.getContext("2d");
    c.fillStyle = colour(states[item.dataset.slots]);
    c.fillRect(0, 0, 14, 14);
    c.strokeStyle = colour("faint");
    c.strokeRect(0.5, 0.5, 13, 13);
    setText(item.lastChild, `${item.dataset.name} ${count(counts[item.dataset.slots] || 0)}`);
  }
}

function hover(event) {
  if (!map) return;
  const x = Math.floor(event.offsetX / scale);
  let y = Math.floor(event.offsetY / scale);
  for (const chunk of map.Map) {
    const rows = Math.ceil(chunk.Slots.length / perRow), slot = y * perRow + x;
    if (y < rows && slot < chunk.Slots.length) {
      setText($("chunk-text"), `chunk ${chunk.Index}, slot ${slot}, cache index ${chunk.Base + slot}: ${map.Letters[chunk.Slots[slot]]}`);
      return;
    }
    y -= rows + 1;
    if (y < 0) return;
  }
}
