// Chromium, and a page that is watched.

import assert from "node:assert/strict";
import { chromium } from "playwright-core";

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

// open opens the page of a server, and notes what it complains of and whom it asks.
export async function open(browser, server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const watch = { complaints: [], elsewhere: [], asked: 0 };
  page.on("console", (m) => {
    const ours = m.text().includes("willReadFrequently"); // the test reads canvases, which the page never does
    if (["error", "warning"].includes(m.type()) && !ours) watch.complaints.push(m.text());
  });
  page.on("pageerror", (e) => watch.complaints.push(String(e)));
  page.on("dialog", (d) => { watch.complaints.push("dialog: " + d.message()); d.dismiss(); });
  page.on("request", (r) => {
    watch.asked++;
    if (!r.url().startsWith(server.url)) watch.elsewhere.push(r.url());
  });
  await page.goto(server.url);
  await until(page, () => document.body.dataset.frame > 0, "the first figures");
  return Object.assign(page, { watch });
}

// until waits for something in the page to be true.
export async function until(page, what, name, arg, within = 10_000) {
  const over = Date.now() + within;
  for (;;) {
    const value = await page.evaluate(what, arg);
    if (value) return value;
    if (Date.now() > over) throw new assert.AssertionError({ message: `after ${within / 1000} s still not: ${name}` });
    await pause(50);
  }
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// picture is all that a canvas shows, as a text.
export const picture = (page, id) => page.evaluate((id) => document.querySelector(id).toDataURL(), id);

// ink is the share of a canvas' pixels that have anything in them.
export const ink = (page, id) => page.evaluate((id) => {
  const canvas = document.querySelector(id), data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let n = 0;
  for (let i = 3; i < data.length; i += 4) n += data[i] > 0;
  return n / (data.length / 4);
}, id);

// drawn is how many pixels of a canvas have a colour of the style sheet, as it is by day or by night.
export const drawn = (page, id, name) => page.evaluate(([id, name]) => {
  const hex = parseInt(getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim().slice(1), 16);
  const want = [hex >> 16, (hex >> 8) & 255, hex & 255];
  const canvas = document.querySelector(id), data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let n = 0;
  for (let i = 0; i < data.length; i += 4) n += data[i + 3] > 100 && want.every((v, k) => Math.abs(v - data[i + k]) < 8);
  return n;
}, [id, name]);

// rows are the texts of a table, row by row.
export const rows = (page, table) =>
  page.evaluate((table) => [...document.querySelector(table).tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent)), table);

export const text = (page, id) => page.evaluate((id) => document.querySelector(id).textContent, id);

// stats asks as the page does, from the page.
export const stats = (page) => page.evaluate(async () => (await fetch("stats.json")).json());

// act presses the button of an action, and waits for what comes of it.
export async function act(page, name) {
  await page.click(`[data-action=${name}]`);
  return until(page, (name) => {
    const t = document.querySelector("#action-result").textContent;
    return t.startsWith(name + ": ") || t.startsWith("⚠ ") ? !t.endsWith(": asked") && t : "";
  }, `an answer to ${name}`, name);
}

// token gives the page its token, by the form that it shows.
export async function token(page, value) {
  await page.fill("#token", value);
  await page.press("#token", "Enter");
  await until(page, () => document.querySelector("#access").hidden, "the form for the token is gone");
}
