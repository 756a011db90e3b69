// What changes something: only there when a token was configured, and sent with it.

import { $, setText } from "./dom.js";
import { headers, setToken, token } from "./stream.js";

export function init(again) {
  $("token-form").onsubmit = (event) => {
    event.preventDefault();
    setToken($("token").value);
    $("token").value = "";
    $("access").hidden = true;
    again();
  };
  for (const button of document.querySelectorAll("[data-action]")) button.onclick = () => act(button.dataset.action, {});
}

// show says which of the actions there are.
export function show(s) {
  $("actions").hidden = !s.Actions;
  if (s.Actions && !token()) $("access").hidden = false;
}

// ask shows the form for the token.
export function ask() {
  $("access").hidden = false;
  $("token").focus();
}

export async function act(name, body) {
  if (!token()) return ask();
  setText($("action-result"), `${name}: asked`);
  try {
    const answer = await fetch("actions/" + name, { method: "POST", headers: { ...headers(), "Content-Type": "application/json" }, body: JSON.stringify(body) });
    const text = (await answer.text()).trim();
    setText($("action-result"), `${answer.ok ? "" : "⚠ "}${name}: ${text}`);
    if (answer.status === 401) ask();
  } catch (e) {
    setText($("action-result"), `⚠ ${name}: ${e.message}`);
  }
}
