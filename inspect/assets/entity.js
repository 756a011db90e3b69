// The page of one entity.

import { $, count, make, setText } from "./dom.js";
import { act } from "./actions.js";

export const shown = { handle: "" };
let onChoice = () => {}, last = "";

export function init(choice) {
  onChoice = choice;
  $("entity-form").onsubmit = (event) => {
    event.preventDefault();
    open($("entity-handle").value.trim());
  };
  $("entity-destroy").onclick = () => act("destroy", { Handle: shown.handle });
}

export function open(handle) {
  shown.handle = handle;
  last = "";
  $("entity-handle").value = handle;
  $("entity-page").replaceChildren();
  $("entity").scrollIntoView({ block: "nearest" });
  onChoice();
}

export function show(e, actions) {
  const key = JSON.stringify(e);
  if (key === last) return;
  last = key;
  const head = { "Handle": e.Handle, "State": e.State, "Class": e.Class, "Active": e.Class ? (e.Active ? "yes" : "no") : "", "Net handle": e.Net,
    "Global handle": e.Global, "Cache index": e.CacheIndex, "Parent": e.Parent, "As of": `frame ${count(e.Frame)}, ${e.Source === "window" ? "from Logic" : "from the published frame"}` };
  const parts = [make("dl", {}, ...Object.entries(head).filter(([, v]) => v !== undefined && v !== "").map(([name, value]) =>
    make("div", { data: { field: name } }, make("dt", {}, name), make("dd", {}, name === "Parent" ? link(value) : String(value)))))];
  if (e.Obituary) {
    parts.push(make("p", { id: "obituary", className: "notice" }, `† died in frame ${count(e.Obituary.Frame)}, of: ${e.Obituary.Cause || "a call from outside"}`));
  } else if (e.State === "dead") {
    parts.push(make("p", { id: "obituary", className: "notice" }, "† dead, and forgotten: only the last 4096 deaths are remembered"));
  }
  for (const c of e.Components || []) parts.push(component(c));
  $("entity-page").replaceChildren(...parts);
  $("entity-destroy").hidden = !(actions && e.State === "alive");
  setText($("entity-error"), "");
}

function component(c) {
  const rows = c.Fields.map((f) => make("tr", {}, make("td", {}, f.Name || "value"), make("td", {}, make("span", { className: "long" }, f.Value))));
  return make("div", { data: { component: c.Name } }, make("h3", {}, make("span", { className: "long" }, `${c.Name} (${c.Tier})`)),
    c.Error ? make("p", { className: "hint" }, c.Error) : make("table", {}, make("tbody", {}, ...rows)));
}

function link(handle) {
  return make("button", { className: "link", type: "button", onclick: () => open(handle) }, handle);
}
