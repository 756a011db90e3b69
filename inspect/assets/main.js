// The page: one stream of events, handed to the parts that show them.

import { $, setText } from "./dom.js";
import { connect } from "./stream.js";
import * as actions from "./actions.js";
import * as archetypes from "./archetypes.js";
import * as charts from "./charts.js";
import * as entity from "./entity.js";
import * as health from "./health.js";
import * as pools from "./pools.js";
import * as world from "./world.js";

let last = null; // the newest figures

const handlers = {
  stats(s) {
    last = s;
    charts.setBudget(s.BudgetNanos);
    health.show(s);
    actions.show(s);
    archetypes.show(s.Registry);
    pools.show(s);
    document.body.dataset.frame = s.Frame;
  },
  points: charts.add,
  chunks: archetypes.showMap,
  world: world.show,
  entity: (e) => entity.show(e, last?.Actions),
};

// subscribe asks for what is looked at now.
function subscribe() {
  const q = new URLSearchParams();
  if (archetypes.chosen.archetype >= 0) {
    q.set("archetype", archetypes.chosen.archetype);
    q.set("first", archetypes.chosen.first);
  }
  if (world.asks.on) q.set("component", world.asks.component);
  if (entity.shown.handle) q.set("handle", entity.shown.handle);
  connect("?" + q, (name, data) => handlers[name]?.(data), status);
}

function status(state, why) {
  const notice = $("connection");
  document.body.dataset.connection = state;
  if (state === "refused") return actions.ask();
  const stopped = last?.State === "stopped";
  notice.hidden = state === "open" || stopped;
  if (notice.hidden) return;
  health.badge("lost", "no connection");
  setText(notice, `No connection: these are the last figures. ${why || ""}`);
}

const redraw = () => { charts.draw(); world.draw(); };

actions.init(subscribe);
archetypes.init(subscribe);
entity.init(subscribe);
pools.init();
world.init(subscribe, entity.open);
window.addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
subscribe();
