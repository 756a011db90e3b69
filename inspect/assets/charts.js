// Line charts of the last two minutes, drawn by hand. Lines differ in dashes, not in colour alone.

import { $, colour, count, duration, fit, make, setText } from "./dom.js";

const span = 120e3, keep = 241;
const dashes = [[], [6, 3], [1, 3]];
let points = [], budget = 0;

const charts = [
  { id: "chart-frame", unit: duration, lines: [["p50", "FrameP50Nanos"], ["p99", "FrameP99Nanos"]], limit: () => budget },
  { id: "chart-wait", unit: duration, lines: [["p50", "WaitP50Nanos"], ["p99", "WaitP99Nanos"]] },
  { id: "chart-stall", unit: duration, lines: [["p50", "StallP50Nanos"], ["p99", "StallP99Nanos"]] },
  { id: "chart-life", unit: (n) => count(Math.round(n)), lines: [["spawns", "Spawns"], ["destroys", "Destroys"]] },
  { id: "chart-skips", unit: (n) => n.toFixed(1), lines: [["skips", "PublishSkips"]] },
];

// add takes points behind those there are. A handler that began anew begins anew here, too.
export function add(more) {
  const last = points.length ? points[points.length - 1].Number : 0;
  if (more[0].Number <= last) points = [];
  points = points.concat(more).slice(-keep);
  draw();
}

export function setBudget(nanos) { budget = nanos; }

export function draw() {
  for (const chart of charts) drawOne(chart);
}

function drawOne({ id, unit, lines, limit }) {
  const figure = $(id), canvas = figure.querySelector("canvas"), { c, width, height } = fit(canvas);
  const end = points.length ? points[points.length - 1].AtMilli : 0;
  const shown = points.filter((p) => p.AtMilli > end - span);
  const most = Math.max(limit ? limit() * 1.1 : 0, ...shown.flatMap((p) => lines.map(([, field]) => p[field])), 1e-9);
  const x = (p) => width - ((end - p.AtMilli) / span) * width;
  const y = (v) => height - 4 - (v / most) * (height - 18);
  c.font = "11px system-ui, sans-serif";
  c.fillStyle = colour("faint");
  if (most > 1e-9) c.fillText(unit(most), 4, 11);
  c.strokeStyle = colour("line");
  c.lineWidth = 1;
  for (const part of [0.5, 1]) {
    c.beginPath();
    c.moveTo(0, Math.round(y(most * part)) + 0.5);
    c.lineTo(width, Math.round(y(most * part)) + 0.5);
    c.stroke();
  }
  if (limit) {
    c.strokeStyle = colour("limit");
    c.setLineDash(dashes[2]);
    c.beginPath();
    c.moveTo(0, y(limit()));
    c.lineTo(width, y(limit()));
    c.stroke();
  }
  lines.forEach(([, field], i) => {
    if (i === 0 && shown.length) { // the first line stands on something
      c.fillStyle = colour("one");
      c.globalAlpha = 0.15;
      c.beginPath();
      c.moveTo(x(shown[0]), height);
      for (const p of shown) c.lineTo(x(p), y(p[field]));
      c.lineTo(width, height);
      c.fill();
      c.globalAlpha = 1;
    }
    c.strokeStyle = colour(["one", "two"][i]);
    c.lineWidth = 1.5;
    c.setLineDash(dashes[i]);
    c.beginPath();
    shown.forEach((p, n) => (n ? c.lineTo(x(p), y(p[field])) : c.moveTo(x(p), y(p[field]))));
    c.stroke();
  });
  c.setLineDash([]);
  const now = shown[shown.length - 1];
  const texts = lines.map(([name, field]) => name + " " + (now ? unit(now[field]) : "–"));
  if (limit) texts.push("budget " + unit(limit()));
  legend(figure.querySelector(".legend"), texts, limit);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", figure.querySelector("figcaption").textContent + ", last two minutes: " + texts.join(", "));
}

// legend shows each line with a piece of it.
function legend(e, texts, limit) {
  if (e.childElementCount !== texts.length) {
    e.replaceChildren(...texts.map((_, i) => make("span", {}, make("canvas", { width: 24, height: 8 }), make("span"))));
  }
  texts.forEach((text, i) => {
    const c = e.children[i].firstChild.getContext("2d"), last = limit && i === texts.length - 1;
    c.clearRect(0, 0, 24, 8);
    c.strokeStyle = colour(last ? "limit" : ["one", "two"][i]);
    c.lineWidth = 2;
    c.setLineDash(last ? dashes[2] : dashes[i]);
    c.beginPath();
    c.moveTo(0, 4);
    c.lineTo(24, 4);
    c.stroke();
    setText(e.children[i].lastChild, text);
  });
}
