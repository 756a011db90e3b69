// The world: a dot for each entity that has a place, in a published frame. Classes differ in shape, too.

import { $, colour, count, fit, make, setText } from "./dom.js";
import { headers } from "./stream.js";

const shapes = ["circle", "square", "triangle", "cross", "diamond", "ring"];
let world = null, places = [], extent = null, at = -1, onOpen = () => {}, asked = 0;

export const asks = { on: true, component: "" };

export function init(choice, open) {
  onOpen = open;
  const canvas = $("world-map");
  $("world-on").onchange = (e) => { asks.on = e.target.checked; choice(); };
  $("world-component").onchange = (e) => { asks.component = e.target.value; world = extent = null; choice(); };
  canvas.onmousemove = (e) => point(nearest(e.offsetX, e.offsetY, 14));
  canvas.onclick = (e) => openAt(nearest(e.offsetX, e.offsetY, 24));
  canvas.onkeydown = (e) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (step && places.length) {
      e.preventDefault();
      point((at + step + places.length) % places.length);
    } else if (e.key === "Enter") openAt(at);
  };
}

export function show(w) {
  const before = at >= 0 && world ? world.Handle[at] : "";
  world = w;
  at = before ? w.Handle.indexOf(before) : -1;
  if (before && at < 0) setText($("world-tip"), `${before} is gone`);
  choices(w.Choices);
  draw();
  const hidden = w.Total - w.Handle.length - w.Elsewhere;
  setText($("world-text"), w.Error || (w.Total
    ? `frame ${count(w.Frame)}: ${count(w.Handle.length)} of ${count(w.Total)} entities with a place` +
      (w.Elsewhere ? `, ${count(w.Elsewhere)} at no finite place` : "") + (hidden > 0 ? ", evenly chosen" : "")
    : "no published component has X and Y: register one in the tier Volatile or Temporal"));
}

function choices(names) {
  const select = $("world-component");
  const known = [...select.options].map((o) => o.value);
  for (const name of names) if (!known.includes(name)) select.append(make("option", { value: name }, name));
}

export function draw() {
  if (!world) return;
  const canvas = $("world-map"), { c, width, height } = fit(canvas);
  widen();
  const scale = Math.min((width - 24) / (extent.right - extent.left || 1), (height - 24) / (extent.bottom - extent.top || 1));
  const left = width / 2 - ((extent.left + extent.right) / 2) * scale, top = height / 2 - ((extent.top + extent.bottom) / 2) * scale;
  places = world.X.map((x, i) => ({ x: left + x * scale, y: top + world.Y[i] * scale }));
  c.strokeStyle = colour("line");
  c.lineWidth = 1;
  c.strokeRect(left + extent.left * scale - 8, top + extent.top * scale - 8, (extent.right - extent.left) * scale + 16, (extent.bottom - extent.top) * scale + 16);
  places.forEach((p, i) => dot(c, p.x, p.y, world.Class[i], 3));
  if (at >= 0) {
    c.strokeStyle = colour("text");
    c.lineWidth = 2;
    c.beginPath();
    c.arc(places[at].x, places[at].y, 8, 0, 7);
    c.stroke();
  }
  canvas.dataset.dots = places.length;
  legend();
}

// widen has the picture show all places that anybody was at: a scale that follows each frame would shake.
function widen() {
  extent ||= { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  for (const x of world.X) [extent.left, extent.right] = [Math.min(extent.left, x), Math.max(extent.right, x)];
  for (const y of world.Y) [extent.top, extent.bottom] = [Math.min(extent.top, y), Math.max(extent.bottom, y)];
}

function dot(c, x, y, kind, r) {
  c.fillStyle = c.strokeStyle = colour(["one", "two", "limit", "idle", "kept", "faint"][kind % 6]);
  c.lineWidth = 1.5;
  c.beginPath();
  switch (shapes[kind % 6]) {
    case "circle": c.arc(x, y, r, 0, 7); c.fill(); break;
    case "square": c.fillRect(x - r, y - r, 2 * r, 2 * r); break;
    case "triangle": c.moveTo(x, y - r); c.lineTo(x + r, y + r); c.lineTo(x - r, y + r); c.fill(); break;
    case "cross": c.moveTo(x - r, y - r); c.lineTo(x + r, y + r); c.moveTo(x + r, y - r); c.lineTo(x - r, y + r); c.stroke(); break;
    case "diamond": c.moveTo(x, y - r); c.lineTo(x + r, y); c.lineTo(x, y + r); c.lineTo(x - r, y); c.fill(); break;
    default: c.arc(x, y, r, 0, 7); c.stroke();
  }
}

function legend() {
  const list = $("world-legend"), counts = world.Classes.map(() => 0);
  for (const k of world.Class) counts[k]++;
  if (list.children.length !== world.Classes.length) {
    list.replaceChildren(...world.Classes.map(() => make("li", {}, make("canvas", { width: 14, height: 14 }), make("span"))));
  }
  world.Classes.forEach((name, i) => {
    const c = list.children[i].firstChild.getContext("2d");
    c.clearRect(0, 0, 14, 14);
    dot(c, 7, 7, i, 4);
    setText(list.children[i].lastChild, `${name} ${count(counts[i])}`);
  });
}

function nearest(x, y, within) {
  let best = -1, least = within * within;
  places.forEach((p, i) => {
    const d = (p.x - x) ** 2 + (p.y - y) ** 2;
    if (d < least) [best, least] = [i, d];
  });
  return best;
}

// point shows who is at a dot: handle and class at once, values when they have come.
async function point(i) {
  if (i === at) return;
  at = i;
  draw();
  if (i < 0) return setText($("world-tip"), "");
  const handle = world.Handle[i], head = `${handle}  ${world.Classes[world.Class[i]]}  X ${world.X[i]}  Y ${world.Y[i]}`;
  setText($("world-tip"), head);
  const mine = ++asked;
  await new Promise((resolve) => setTimeout(resolve, 120));
  if (mine !== asked) return;
  try {
    const e = await (await fetch("entity.json?handle=" + encodeURIComponent(handle), { headers: headers() })).json();
    if (mine !== asked) return;
    const values = (e.Components || []).flatMap((k) => k.Fields.map((f) => `${k.Name}${f.Name ? "." + f.Name : ""} ${f.Value}`));
    setText($("world-tip"), `${head}  ${values.join("  ")}`);
  } catch { /* the head stays */ }
}

function openAt(i) {
  if (i >= 0) onOpen(world.Handle[i]);
}
