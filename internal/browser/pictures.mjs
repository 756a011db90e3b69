// Takes the pictures that README.md and docs show: node internal/browser/pictures.mjs docs. It takes some two minutes, so
// that the charts have something to show. Each picture has to stay below mostBytes.

import { mkdirSync, statSync } from "node:fs";
import { connect } from "node:net";
import { createInterface } from "node:readline";
import path from "node:path";
import { launch, open, pause, token, until } from "./browser.mjs";
import { arena, endAll } from "./servers.mjs";

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

mkdirSync(dir, { recursive: true });
const browser = await launch();
try {
  const server = await arena("secret");
  const day = await open(browser, server, { colorScheme: "light", viewport: { width: 1280, height: 960 } });
  await token(day, "secret");
  await pause(fill);

  await take("page-light.png", day);
  await day.emulateMedia({ colorScheme: "dark" });
  await pause(300);
  await take("page-dark.png", day);
  await day.emulateMedia({ colorScheme: "light" });

  await day.setViewportSize({ width: 1280, height: 1400 });
  await day.focus("#world-map");
  for (let i = 0; i < 3; i++) await day.keyboard.press("ArrowRight");
  await pause(300);
  const player = await day.evaluate(async () => {
    const w = await (await fetch("world.json?component=")).json(), kind = w.Classes.indexOf("arena.Player");
    return w.Handle[w.Class.indexOf(kind)];
  });
  await day.fill("#entity-handle", player);
  await day.press("#entity-handle", "Enter");
  await until(day, () => document.querySelector("#entity-page").childElementCount > 1, "an entity");
  const box = await day.evaluate(() => {
    document.querySelector("#pools").scrollIntoView({ block: "center" });
    const [a, b] = ["#pools", "#entity"].map((id) => document.querySelector(id).getBoundingClientRect());
    return { x: a.left - 8, y: a.top - 8, width: a.width + 16, height: b.bottom - a.top + 16 };
  });
  await take("page-world.png", day, { clip: box });

  await day.click("#archetype-table tr:has-text('arena.Arrow') >> nth=-1 >> button");
  await until(day, () => document.querySelector("#chunk-map").dataset.frame > 0, "a chunk map");
  await pause(1000);
  await day.evaluate(() => document.activeElement.blur());
  await take("page-chunks.png", day.locator("#archetypes"));

  const phone = await open(browser, server, { colorScheme: "dark", viewport: { width: 390, height: 844 }, hasTouch: true });
  await token(phone, "secret");
  await phone.evaluate(() => document.activeElement.blur());
  await pause(500);
  await take("page-phone.png", phone);

  const first = server.lines.slice(0, 6).filter((line) => !line.startsWith("frame")), last = server.lines.slice(-4);
  const port = /nc 127\.0\.0\.1 (\d+)/.exec(first.join("\n"))[1];
  await terminal(browser, "arena.png", ["$ make run", ...first, "…", ...last, "", ...(await play(port))]);
} finally {
  await browser.close();
  await endAll();
}
process.exit(0);
