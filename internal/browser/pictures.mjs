// Takes the pictures that README.md and docs show: node internal/browser/pictures.mjs docs. It takes some two minutes, so
// that the charts have something to show. Each picture has to stay below mostBytes.

import { mkdirSync, statSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import path from "node:path";
import { launch, open, pause, until } from "./browser.mjs";
import { arena, endAll, harbour } from "./servers.mjs";

const dir = process.argv[2] || "docs", mostBytes = 150_000;
const fill = Number(process.env.FILL || 100) * 1000; // of the two minutes that charts show

async function take(name, of, options = {}) {
  const file = path.join(dir, name);
  await of.screenshot({ path: file, animations: "disabled", ...options });
  const size = statSync(file).size;
  console.log(`${file}: ${size} bytes`);
  if (size > mostBytes) throw new Error(`${file} is larger than ${mostBytes} bytes`);
}

// play joins an arena as a person would, and gives what a terminal would show of it.
async function play(port) {
  const shown = [`$ nc 127.0.0.1 ${port}`], socket = connect(port, "127.0.0.1");
  createInterface({ input: socket }).on("line", (line) => shown.push(line));
  for (const line of ["join anna", "look", "fire 1 1", "quit"]) {
    await pause(400);
    shown.push(line);
    socket.write(line + "\n");
  }
  await pause(400);
  socket.destroy();
  return shown;
}

// terminal draws lines as a terminal does.
async function terminal(browser, name, lines) {
  const page = await browser.newPage({ viewport: { width: 1000, height: 300 } });
  await page.setContent(`<body style="margin:0"><pre id="t" style="margin:0;padding:16px 18px;background:#14171b;color:#e8ebef;font:13px/1.5 monospace;white-space:pre-wrap;overflow-wrap:anywhere;width:964px"></pre>`);
  await page.evaluate((lines) => {
    for (const line of lines) {
      const e = document.createElement("span");
      e.textContent = line + "\n";
      if (line.startsWith("$")) e.style.cssText = "color:#79b4ff;font-weight:bold";
      document.querySelector("#t").append(e);
    }
  }, lines);
  await take(name, page.locator("#t"));
  await page.close();
}

// world takes the pools, the world, and the page of a player who lives. They do not live for long.
async function world(page) {
  await page.setViewportSize({ width: 1280, height: 1300 });
  for (let i = 0; i < 20; i++) {
    const player = await page.evaluate(async () => {
      const w = await (await fetch("world.json?component=")).json(), kind = w.Classes.indexOf("arena.Player");
      return w.Handle[w.Class.lastIndexOf(kind)];
    });
    await page.fill("#entity-handle", player);
    await page.press("#entity-handle", "Enter");
    await until(page, () => document.querySelector("#entity-page").textContent.includes("from Logic"), "an entity");
    const clip = await page.evaluate(() => {
      document.activeElement.blur();
      scrollTo(0, 0);
      const [a, b] = ["#pools", "#world"].map((id) => document.querySelector(id).getBoundingClientRect());
      return { x: a.left - 8, y: a.top - 8, width: a.width + 16, height: b.bottom - a.top + 16 };
    });
    await take("page-world.png", page, { clip, fullPage: true });
    if ((await page.evaluate(() => document.querySelector("#entity-page [data-field=State] dd").textContent)) === "alive") return;
  }
  throw new Error("no player lives long enough for a picture");
}

// chunks takes the chunk map of a class from which many have died.
async function chunks(browser) {
  const server = await harbour("-plain");
  const page = await open(browser, server, { viewport: { width: 1280, height: 1000 } });
  await server.do("churn");
  await page.click("#archetype-table tr:has-text('Ship') button");
  await until(page, () => document.querySelector("#chunk-map").dataset.frame > 0, "a chunk map");
  await page.evaluate(() => document.activeElement.blur());
  await pause(500);
  await take("page-chunks.png", page.locator("#archetypes"));
  await page.close();
  await server.stop();
}

mkdirSync(dir, { recursive: true });
const browser = await launch();
try {
  const server = await arena();
  const page = await open(browser, server, { colorScheme: "light", viewport: { width: 1280, height: 970 } });
  await pause(fill);

  await take("page-light.png", page);
  await page.emulateMedia({ colorScheme: "dark" });
  await pause(300);
  await take("page-dark.png", page);
  await page.emulateMedia({ colorScheme: "light" });
  await world(page);

  const phone = await open(browser, server, { colorScheme: "dark", viewport: { width: 390, height: 844 }, hasTouch: true });
  await pause(500);
  await take("page-phone.png", phone);

  const first = server.lines.slice(0, 6).filter((line) => !line.startsWith("frame")), last = server.lines.slice(-3);
  const port = /nc 127\.0\.0\.1 (\d+)/.exec(first.join("\n"))[1];
  const game = await play(port), players = game.filter((line) => line.startsWith("player"));
  await terminal(browser, "arena.png", ["$ airlock arena --port 0", ...first, "…", ...last, "", ...game.map((line) => (line === players[5] ? "…" : line)).filter((line) => !players.slice(6).includes(line))]);

  await chunks(browser);
} finally {
  await browser.close();
  await endAll();
}
process.exit(0);
