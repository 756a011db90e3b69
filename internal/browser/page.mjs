// The browser test of the page: node internal/browser/page.mjs, at the root of the repository. make test-page builds what
// it needs before. It says what it has checked, and ends with status 1 if something did not hold.

import assert from "node:assert/strict";
import { act, drawn, ink, launch, open, pause, picture, rows, stats, text, token, until } from "./browser.mjs";
import { arena, endAll, harbour, logged } from "./servers.mjs";

const secret = "open sesame";
const began = performance.now();
let failed = 0;

async function check(name, fn) {
  const before = performance.now();
  try {
    await fn();
    console.log(`ok    ${name} (${Math.round(performance.now() - before)} ms)`);
  } catch (e) {
    failed++;
    console.log(`FAIL  ${name}\n${e.stack}`);
  }
}

// unharmed checks that the page complained of nothing and asked nobody else.
function unharmed(page) {
  assert.deepEqual(page.watch.complaints, []);
  assert.deepEqual(page.watch.elsewhere, []);
  assert.ok(page.watch.asked > 10, "it has asked for little: is this the page?");
}

async function checkArena(browser) {
  let server = await arena("--inspect-token", secret, "--for", "10m");
  const page = await open(browser, server);

  await check("arena: charts move", async () => {
    await until(page, () => document.querySelector("#chart-frame canvas").getAttribute("aria-label")?.includes("p99 "), "a chart with a line");
    for (const id of ["#chart-frame", "#chart-wait", "#chart-stall", "#chart-life", "#chart-skips"]) {
      const before = await picture(page, id + " canvas"), frame = await page.evaluate(() => Number(document.body.dataset.frame));
      assert.ok((await drawn(page, id + " canvas", "one")) > 5, `${id} is empty`);
      await until(page, ([id, before]) => document.querySelector(id).toDataURL() !== before, `${id} moves`, [id + " canvas", before], 3000);
      await until(page, (frame) => document.body.dataset.frame > frame, "frames go on", frame);
    }
  });

  await check("arena: actions ask for the token, and have their effect with it", async () => {
    await page.click("[data-action=pause]");
    assert.equal(await page.evaluate(() => document.activeElement.id), "token");
    await token(page, secret);
    await act(page, "pause");
    await until(page, () => document.querySelector("#state").textContent.includes("paused"), "the page says paused");
    const { Frame: before } = await stats(page);
    await act(page, "step");
    await until(page, (n) => Number(document.body.dataset.frame) === n, "one frame more", before + 1);
    await pause(300);
    assert.equal((await stats(page)).Frame, before + 1);
  });

  await check("arena: the pools panel has the numbers of /stats.json", async () => {
    const s = await stats(page);
    await until(page, (frame) => Number(document.body.dataset.frame) === frame, "the page shows that frame", s.Frame);
    const n = (x) => x.toLocaleString("en");
    const want = s.Pools.map((p) => [p.Name, n(p.Cap), n(p.InUse), n(p.Free), n(p.Peak), p.GrowShort, p.Warm ? "✓ warm" : "", n(p.Refused)]);
    assert.deepEqual((await rows(page, "#pool-table")).map((r) => r.slice(0, 8)), want);
    assert.deepEqual(want.map((r) => r[0]).sort(), ["Arrow", "Grunt", "HitSpark"]);
    assert.ok(s.Pools.some((p) => p.InUse > 0), "no pool is used: nothing was compared");
    assert.ok((await text(page, "#headline")).includes(`${n(s.Registry.Live)} live`));
    for (const [, cap, inUse, free] of await rows(page, "#pool-table")) assert.equal(number(cap), number(inUse) + number(free));
  });

  await check("arena: the chunk map stands still in a pause, and changes when players die and arrows fly", async () => {
    await act(page, "resume");
    await page.click("#archetype-table button >> nth=0");
    await until(page, () => document.querySelector("#chunk-map").dataset.frame > 0, "a chunk map");
    await act(page, "pause");
    await pause(500); // for what is under way
    const before = await picture(page, "#chunk-map");
    assert.ok((await ink(page, "#chunk-map")) > 0.4, "the map is empty");
    await pause(800);
    assert.equal(await picture(page, "#chunk-map"), before);
    await act(page, "resume");
    await until(page, (before) => document.querySelector("#chunk-map").toDataURL() !== before, "the map changes", before);
    await page.click("#chunks-close");
  });

  await check("arena: a pool is declared by the form", async () => {
    await page.fill("#declare [name=Prefab]", "Grunt");
    await page.fill("#declare [name=Capacity]", "40");
    await page.selectOption("#declare [name=Grow]", "Fixed");
    await page.click("#declare button");
    await until(page, () => document.querySelector("[data-pool=Grunt]").cells[1].textContent === "40", "the pool has 40 places");
    await until(page, () => document.querySelector("#action-result").textContent.includes("is declared"), "it says so");
  });

  await check("arena: nothing was complained of, and nobody else was asked", () => unharmed(page));

  await check("arena: the page says that the server has gone, and goes on when it is back", async () => {
    const lastFrame = await page.evaluate(() => Number(document.body.dataset.frame));
    assert.equal(await server.stop(), 0, "the arena's status");
    await until(page, () => !document.querySelector("#connection").hidden, "a notice");
    assert.match(await text(page, "#connection"), /No connection: these are the last figures/);
    assert.match(await text(page, "#state"), /no connection/);
    assert.ok((await rows(page, "#pool-table")).length === 3, "the last figures stay");
    server = await arena("--inspect-token", secret, "--for", "10m", "--inspect", new URL(server.url).host);
    await until(page, (n) => document.body.dataset.frame < n && document.body.dataset.connection === "open", "figures of the new one", lastFrame);
    await until(page, () => document.querySelector("#state").textContent.includes("running"), "it says running");
    assert.ok(await page.evaluate(() => document.querySelector("#connection").hidden));
  });
  await page.context().close();
  assert.equal(await server.stop(), 0, "the arena's status");
}

const number = (text) => Number(text.replaceAll(",", ""));

const className = `<img src="//example.invalid/x" onerror="window.harmed=1"><b>bold</b>`;

async function checkHarbour(browser) {
  const server = await harbour();
  const page = await open(browser, server);

  await check("harbour: everything is reached with the Tab key, and shows that it is", () => checkTab(page));

  await check("harbour: Enter opens a row, and closes it again", async () => {
    await token(page, "harbour");
    await tabTo(page, (e) => e.closest("#archetype-table tr")?.cells[1].textContent === "1,500");
    await page.keyboard.press("Enter");
    await until(page, () => document.querySelector("#chunk-map").dataset.frame > 0, "a chunk map");
    assert.equal(await page.evaluate(() => document.activeElement.closest("tr").getAttribute("aria-current")), "true");
    await tabTo(page, (e) => e.id === "chunks-close");
    await page.keyboard.press("Enter");
    assert.ok(await page.evaluate(() => document.querySelector("#chunks").hidden));
    assert.equal(await page.evaluate(() => document.activeElement.closest("#archetype-table tr")?.cells[1].textContent), "1,500", "where the focus goes");
  });

  await check("harbour: names with markup are text", async () => {
    await page.click("#archetype-table tr:has-text('example.invalid') button");
    await until(page, (name) => document.querySelector("#chunks-h").textContent === "Chunk map of " + name, "the chunk map's heading", className);
    await page.click("#chunks-close");
    await page.click("#systems summary");
    await page.fill("#entity-handle", "L1.1");
    await page.press("#entity-handle", "Enter");
    await until(page, () => document.querySelector("#entity-page").textContent.includes("from Logic"), "the entity");
    const shown = await text(page, "main");
    for (const name of [className, "<i>place</i>&lt;", `<u onmouseover="window.harmed=1">Gull</u>`, "</li><script>window.harmed=1</script>", `"<b>Anna</b>"`]) {
      assert.ok(shown.includes(name), `${name} is not shown`);
    }
    assert.equal(await page.evaluate(() => document.querySelectorAll("main :is(b, i, u, em, img, script), [onerror], [onmouseover]").length), 0);
    assert.equal(await page.evaluate(() => window.harmed), undefined);
  });

  await check("harbour: the dead are remembered, with a cause that is text", async () => {
    const dead = await page.evaluate(async () => {
      for (let i = 1501; i < 1520; i++) {
        const e = await (await fetch(`entity.json?handle=L${i}.1`)).json();
        if (e.State === "dead") return e.Handle;
      }
    });
    await page.fill("#entity-handle", dead);
    await page.press("#entity-handle", "Enter");
    await until(page, () => document.querySelector("#obituary")?.textContent.includes("<em>the tide</em>"), "the obituary");
  });

  await check("harbour: arrow keys go from dot to dot, and Enter shows an entity", async () => {
    await tabTo(page, (e) => e.id === "world-map");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const tip = await until(page, () => /^L\d+\.\d+/.exec(document.querySelector("#world-tip").textContent)?.[0], "a tip");
    await page.keyboard.press("Enter");
    await until(page, (h) => document.querySelector("#entity-page [data-field=Handle] dd")?.textContent === h, "its page", tip);
    assert.ok((await ink(page, "#world-map")) > 0.01, "the world is empty");
  });

  await check("harbour: the chunk map changes by deaths, and by a defrag", async () => {
    await page.click("#archetype-table tr:has-text('Ship') button");
    await until(page, () => /1,500/.test(document.querySelector("#chunk-legend [data-slots=L]")?.textContent), "1,500 are live");
    const full = await picture(page, "#chunk-map"), chunks = await shipChunks(page);
    await server.do("churn");
    await until(page, () => /\b188$/.test(document.querySelector("#chunk-legend [data-slots=L]").textContent), "188 are live");
    await until(page, () => /free 1,312/.test(document.querySelector("#chunk-legend").textContent), "the rest is free");
    const thin = await picture(page, "#chunk-map");
    assert.notEqual(thin, full);
    assert.equal(await shipChunks(page), chunks);
    const said = await act(page, "defrag");
    const [, moved, freed] = /(\d+) entities moved, (\d+) chunks freed/.exec(said) || assert.fail(said);
    assert.ok(moved > 0 && freed > 0, said);
    await until(page, (thin) => document.querySelector("#chunk-map").toDataURL() !== thin, "the map changes", thin);
    await until(page, () => /\b188$/.test(document.querySelector("#chunk-legend [data-slots=L]").textContent), "188 are live as before");
    await until(page, ([chunks]) => Number([...document.querySelectorAll("#archetype-table tr")].find((r) => r.cells[0].textContent === "Ship").cells[4].textContent) < chunks,
      "there are fewer chunks", [chunks]);
  });

  await check("harbour: day and night", async () => {
    const seen = {};
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await pause(200); // for the charts
      assert.deepEqual(await page.evaluate(weakTexts), [], `too little contrast, ${colorScheme}`);
      assert.ok((await drawn(page, "#chart-frame canvas", "one")) > 5, "the charts are drawn in other colours");
      assert.ok((await drawn(page, "#world-map", "one")) > 100, "the world is drawn in other colours");
      seen[colorScheme] = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    }
    assert.notEqual(seen.light, seen.dark);
  });

  await check("harbour: a phone does not scroll sideways", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await pause(200);
    assert.ok(await page.evaluate(() => !document.querySelector("#chunks").hidden && document.querySelector("#entity-page").childElementCount > 0));
    assert.equal(await page.evaluate(() => document.scrollingElement.scrollWidth), 390);
    await page.evaluate(() => scrollTo(200, 0));
    assert.equal(await page.evaluate(() => scrollX), 0);
    assert.deepEqual(await page.evaluate(() => [...document.querySelectorAll("button, input:not([type=checkbox]), select")].filter((e) => e.checkVisibility() && !e.matches(".link") && e.getBoundingClientRect().height < 32).map((e) => e.outerHTML)), [], "too small for a finger");
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  await check("harbour: who holds Logic is named", async () => {
    const done = server.do("hold");
    await until(page, () => !document.querySelector("#held").hidden, "a notice");
    assert.match(await text(page, "#held-text"), /Spawn callback/);
    assert.match(await text(page, "#state"), /held/);
    await done;
    await until(page, () => document.querySelector("#held").hidden, "the notice goes");
  });

  await check("harbour: nothing was complained of, and nobody else was asked", () => unharmed(page));

  await check("harbour: the page says that the engine has stopped", async () => {
    await server.do("stop");
    await until(page, () => document.querySelector("#state").textContent.includes("stopped"), "it says stopped");
    assert.ok(await page.evaluate(() => document.querySelector("#connection").hidden));
    assert.match(await text(page, "#headline"), /202 live/);
    unharmed(page);
  });
  await page.context().close();
  assert.equal(await server.stop(), 0, "the harbour's status");
}

const shipChunks = (page) => page.evaluate(() => Number([...document.querySelectorAll("#archetype-table tr")].find((r) => r.cells[0].textContent === "Ship").cells[4].textContent));

// tabTo presses Tab until the focus is where it should be.
async function tabTo(page, wanted) {
  for (let i = 0; i < 100; i++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate(`(${wanted})(document.activeElement)`)) return;
  }
  assert.fail(`Tab does not come to ${wanted}`);
}

// checkTab goes once round the page.
async function checkTab(page) {
  const wanted = await page.evaluate(() => {
    const all = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex]:not([tabindex='-1'])")].filter((e) => e.checkVisibility() && !e.disabled);
    all.forEach((e, i) => { e.dataset.stop = i; });
    return all.map((e) => e.outerHTML.slice(0, 80));
  });
  assert.ok(wanted.length > 25, `${wanted.length} places to go to`);
  const seen = new Set();
  for (let i = 0; i < wanted.length + 20; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const e = document.activeElement, s = getComputedStyle(e);
      return { stop: e.dataset.stop, outline: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2 };
    });
    if (at.stop === undefined) continue;
    assert.ok(at.outline, `${wanted[at.stop]} does not show that it has the focus`);
    seen.add(Number(at.stop));
  }
  assert.deepEqual(wanted.filter((_, i) => !seen.has(i)), [], "not reached");
}

// weakTexts are the texts with less contrast to what is behind them than people need (WCAG 2.2, 1.4.3). It runs in the page.
function weakTexts() {
  const rgb = (s) => s.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const weak = [];
  for (const e of document.querySelectorAll("body *")) {
    const text = [...e.childNodes].filter((n) => n.nodeType === Node.TEXT_NODE).map((n) => n.textContent.trim()).join("");
    if (!text || !e.checkVisibility() || e.matches(":disabled")) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.push(`${ratio.toFixed(2)} ${text.slice(0, 40)}`);
  }
  return weak;
}

for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(130)); // takes the servers with it
const browser = await launch();
try {
  await checkArena(browser);
  await checkHarbour(browser);
} catch (e) {
  failed++;
  console.log(`FAIL  ${e.stack}`);
} finally {
  await browser.close();
  await endAll();
  if (failed) console.log(logged());
}
console.log(failed ? `${failed} FAILED` : `everything holds, after ${Math.round((performance.now() - began) / 1000)} s, with Chromium ${browser.version()}`);
process.exit(failed ? 1 : 0);
