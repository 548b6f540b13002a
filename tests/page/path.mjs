// One path through all pages: `node path.mjs CHROMIUM LINK FINISHED-JOB PAUSED-JOB SCENE
// TONE-MAP=JOB...`. Ends with a status other than 0, and says why, where a page is not as it
// should be.
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

const tools = path.join(process.env.TESSERA_PAGE_TOOLS, "node_modules/");
const require = createRequire(tools);
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [executablePath, link, finished, live, scene, ...toned] = process.argv.slice(2);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
// The checker of accessibility is put into the page, which its own policy forbids.
const context = await browser.newContext({ bypassCSP: true });
const page = await context.newPage();
page.setDefaultTimeout(20_000);
const faults = [];
page.on("pageerror", (error) => faults.push(`script: ${error.message}`));
page.on("response", (answer) => {
  if (answer.status() >= 400) faults.push(`${answer.status()} ${answer.url()}`);
});

async function accessible(name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, nodes } of violations) {
    faults.push(`${name}: ${id}: ${nodes.map((node) => node.html.slice(0, 100)).join(" | ")}`);
  }
}

// Moves the focus with the Tab key until it is on what the selector names, and presses a key there.
async function press(selector, key) {
  for (let step = 0; step < 120; step += 1) {
    const there = await page.evaluate(
      (wanted) => document.activeElement?.matches(wanted) ?? false, selector);
    if (there) {
      await page.keyboard.press(key);
      return;
    }
    await page.keyboard.press("Tab");
  }
  throw new Error(`the keyboard does not reach ${selector}`);
}

const origin = new URL(link).origin;
await page.goto(link);
await page.waitForURL("**/jobs");
assert.equal(new URL(page.url()).hash, "", "the code stays in no history");
await accessible("jobs");

// A frame: the browser's own reading of the linear pixels is what the farm's PNG file has.
await press(`a[href="/jobs/${finished}"]`, "Enter");
await page.waitForSelector(".frames img");
await accessible("job");
await press(".frames a", "Enter");
await page.waitForSelector("#canvas[data-drawn=picture]");
await accessible("frame");
const differ = (shown) => page.evaluate(async (job) => {
  const answer = await fetch(`/api/v1/jobs/${job}/frames/0/files/png`);
  const image = await createImageBitmap(await answer.blob(), { colorSpaceConversion: "none" });
  const other = new OffscreenCanvas(image.width, image.height).getContext("2d");
  other.drawImage(image, 0, 0);
  const { width, height } = document.getElementById("canvas");
  const ours = document.getElementById("canvas").getContext("2d");
  const [a, b] = [ours, other].map((one) => one.getImageData(0, 0, width, height).data);
  return a.reduce((most, value, at) => Math.max(most, Math.abs(value - b[at])), 0);
}, shown);
// The steps of a byte may fall to either side where a value lies between two of them.
const steps = await differ(finished);
assert.ok(steps <= 1, `the browser shows other pixels: ${steps} steps`);
await press("#stage", "ArrowRight");
assert.match(await page.textContent("#under"), /^x 49, y 32: R /);

// Each tone map shows what the farm's files have.
for (const [tone, job] of toned.map((text) => text.split("="))) {
  await page.goto(`${origin}/jobs/${job}/frames/0`);
  await page.waitForSelector("#canvas[data-drawn=picture]");
  assert.ok(await differ(job) > 1, `${tone}: another tone map shows other bytes`);
  await page.selectOption("#tone", tone);
  await page.waitForSelector(`#canvas[data-tone=${tone}]`);
  const by = await differ(job);
  assert.ok(by <= 1, `${tone}: the browser shows other pixels: ${by} steps`);
}

// Two frames are compared: these differ in their tone maps only, and not in their linear pixels.
const [[, first], [, second]] = toned.map((text) => text.split("="));
await page.goto(`${origin}/jobs/${first}/frames/0`);
await page.waitForSelector("#canvas[data-drawn=picture]");
const bright = () => page.evaluate(() => {
  const { width, height } = document.getElementById("canvas");
  const context = document.getElementById("canvas").getContext("2d");
  return context.getImageData(0, 0, width, height).data.reduce(
    (most, value, at) => (at % 4 < 3 ? Math.max(most, value) : most), 0);
});
await page.fill("#with", `${finished}/0`);
await page.keyboard.press("Tab");
await page.waitForSelector("text=that frame has 96 × 64 pixels");
await page.fill("#with", `${second}/0`);
await page.keyboard.press("Tab");
await page.waitForSelector(`#canvas[data-compared="${second}/0"]`);
assert.ok(await bright() > 100);
await accessible("comparison");
await page.selectOption("#how", "difference");
assert.equal(await bright(), 0, "the same linear pixels");

// Changes jobs as a page does.
function change(what) {
  return page.evaluate(async (body) => {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch("/api/v1/jobs/change", { method: "POST", headers, body });
    if (!answer.ok) throw new Error(await answer.text());
  }, JSON.stringify(what));
}

// A frame comes up live: its tiles are in the page while it is rendered.
await page.goto(`${origin}/jobs/${live}/frames/0`);
await page.waitForSelector("#arrived");
await page.waitForFunction(() => document.getElementById("canvas").width === 256);
await accessible("live frame");
await page.locator("#exposure").focus();
await page.keyboard.press("ArrowRight");
// What the page shows, and what the farm has committed, at each moment. The farm is asked so often
// that a commit is known within 50 ms.
await page.evaluate((job) => {
  const noted = { shown: [], committed: [] };
  sessionStorage.setItem("noted", JSON.stringify(noted));
  const note = (kind, count) => {
    noted[kind].push([Date.now(), count]);
    sessionStorage.setItem("noted", JSON.stringify(noted));
  };
  const canvas = document.getElementById("canvas");
  new MutationObserver(() => note("shown", Number(canvas.dataset.tiles)))
    .observe(canvas, { attributeFilter: ["data-tiles"] });
  setInterval(async () => {
    // The page is left when the frame is finished.
    const answer = await fetch(`/api/v1/jobs/${job}/frames?from=0&most=1`).catch(() => null);
    const [{ state }] = answer?.ok ? await answer.json() : [{ state: {} }];
    // The units of a tile are neighbours, and the first of them shows it.
    const each = (state.open?.units ?? 64) / 64;
    if (state.open) note("committed", Math.ceil(state.open.committed / each));
  }, 50);
}, live);
// The farm is one thread, and has nothing else to do meanwhile.
await change({ change: "pause", name: "long-*" });
await change({ change: "resume", jobs: [live] });
await page.waitForFunction(
  () => Number(document.getElementById("canvas").dataset.tiles) >= 8, null, { timeout: 120_000 });
if (process.env.TESSERA_PAGE_PICTURES) {
  await page.screenshot({ path: path.join(process.env.TESSERA_PAGE_PICTURES, "live.png") });
}
assert.match(await page.textContent("#arrived"), /^\d+ of 64 tiles/);
await page.waitForSelector("#canvas[data-drawn=picture]", { timeout: 300_000 });
assert.equal(await page.inputValue("#exposure"), "0.25", "it is shown as it was");
const noted = JSON.parse(await page.evaluate(() => sessionStorage.getItem("noted")));
const lags = [];
for (const [at, count] of noted.committed.filter((one, index, all) => one[1] > 0
  && one[1] !== all[index - 1]?.[1])) {
  const shown = noted.shown.find(([, tiles]) => tiles >= count);
  if (shown) lags.push(Math.max(shown[0] - at, 0));
}
const most = noted.shown.at(-1)?.[1] ?? 0;
console.log(`live: ${most} of 64 tiles were shown before the frame's end; ${lags.length} commits `
  + `were seen, and the slowest tile came ${Math.max(...lags)} ms after its commit`);
assert.ok(most >= 8 && lags.length > 0, "no tile came live");
await change({ change: "resume", name: "long-*" });

// Tiles: a job's progress moves on the open page.
await page.goto(`${origin}/jobs?name=long-one`);
const row = page.locator("#jobs tr").first();
const before = await row.locator("[data-field=percent]").textContent();
await page.waitForFunction(
  (text) => document.querySelector("#jobs [data-field=percent]").textContent !== text
    || document.querySelector("#jobs [data-field=state]").textContent === "running", before);

// A scene is dropped, looked at, tried and submitted.
await press('a[href="/submit"]', "Enter");
await page.waitForSelector("#drop");
await accessible("new job");
const transfer = await page.evaluateHandle(([name, text]) => {
  const carried = new DataTransfer();
  carried.items.add(new File([text], name));
  return carried;
}, [path.basename(scene), fs.readFileSync(scene, "utf8")]);
await page.dispatchEvent("#drop", "drop", { dataTransfer: transfer });
await page.waitForSelector("#job:not([hidden])");
assert.match(await page.textContent("#report"), /geometry.*triangles/);
assert.ok(await page.evaluate(() => document.activeElement.id === "about-title"));
await page.fill("[name=width]", "64");
await page.fill("[name=height]", "48");
await page.fill("[name=spp]", "4");
await page.fill("[name=frames]", "0");
await press("#try", "Enter");
await page.waitForSelector("#preview-picture:not([hidden])");
await accessible("new job, tried");
await press("#submit", "Enter");
await page.waitForURL(/jobs\/[0-9a-f-]{36}$/);
await page.waitForSelector("[data-state=done]");
const left = await page.evaluate(async () => {
  const answer = await fetch("/api/v1/jobs?name=*-preview");
  return (await answer.json()).jobs.length;
});
assert.equal(left, 0, "the preview is forgotten");

// A template is chosen, its values are set, its jobs are shown, and it is published as a preset.
const template = `tessera = 1
name = "shot"
description = "looks of a scene"
[parameters.scene]
type = "file"
default = "box.gltf"
[parameters.spp]
type = "integer"
default = 2
min = 1
max = 8
help = "samples per pixel"
[[steps]]
name = "look"
render = "{scene}"
each = { seed = "1-3" }
seed = "{seed}"
size = "32x24"
spp = "{spp}"
[[steps]]
name = "last"
render = "{scene}"
after = ["look"]
size = "32x24"
spp = 1
`;
const file = (name, text) => ({ name, mimeType: "text/plain", buffer: Buffer.from(text) });
await page.goto(`${origin}/submit`);
await press('a[href="/submit/template"]', "Enter");
await page.setInputFiles("#template", file("broken.toml", "tessera = 1"));
await page.waitForSelector("#problem:not([hidden])");
assert.match(await page.textContent("#problem"), /missing field/);
assert.match(faults.pop(), /^422 .*\/templates\/outline$/);
await page.setInputFiles("#template", file("shot.toml", template));
await page.waitForSelector("#values:not([hidden])");
assert.ok(await page.evaluate(() => document.activeElement.id === "about"));
assert.match(await page.textContent("#wanted"), /box\.gltf/);
await accessible("a template");
await press("#check", "Enter");
await page.waitForSelector("#problem:not([hidden])");
assert.match(await page.textContent("#problem"), /Choose box\.gltf/);
await page.setInputFiles("#files", file("box.gltf", fs.readFileSync(scene, "utf8")));
await page.waitForFunction(() => /here/.test(document.querySelector("#wanted").textContent));
await page.fill('[name="set:spp"]', "3");
await press("#check", "Enter");
await page.waitForSelector("#plan:not([hidden])");
assert.match(await page.textContent("#sum"), /^4 jobs with 1 file/);
assert.equal(await page.locator("#jobs tr").count(), 4);
await accessible("a template's jobs");
let answered = null;
page.once("dialog", (dialog) => { answered = dialog.type(); dialog.accept("looks"); });
await press("#publish", "Enter");
await page.waitForSelector("#preset");
assert.equal(answered, "prompt");
await accessible("presets");
await page.selectOption("#preset", "looks");
await page.waitForSelector("#values:not([hidden])");
await page.setInputFiles("#files", file("box.gltf", fs.readFileSync(scene, "utf8")));
await page.waitForFunction(() => /here/.test(document.querySelector("#wanted").textContent));
await press("#submit", "Enter");
await page.waitForURL(/jobs\?batch=shot-[0-9a-f]{8}$/);
assert.equal(await page.locator("#jobs tr").count(), 4);
page.once("dialog", (dialog) => dialog.accept());
await page.goto(`${origin}/submit/template`);
await press("[data-remove=looks]", "Enter");
await page.waitForFunction(() => !document.querySelector("[data-remove]"));

// Jobs are cancelled together.
await page.goto(`${origin}/jobs?name=long`);
page.on("dialog", (dialog) => dialog.accept());
await press("#tick-all", "Space");
assert.match(await page.textContent("#ticked"), /^2 ticked/);
await page.keyboard.down("Shift");
for (let step = 0; step < 8; step += 1) {
  const there = await page.evaluate(() => document.activeElement?.value === "cancel");
  if (there) break;
  await page.keyboard.press("Tab");
}
await page.keyboard.up("Shift");
await page.keyboard.press("Enter");
await page.waitForURL("**/jobs");
await page.goto(`${origin}/jobs?name=long&state=cancelled`);
assert.equal(await page.locator("#jobs tr").count(), 2);

// A node is drained.
await press('a[href="/nodes"]', "Enter");
await page.waitForSelector("#nodes");
await accessible("nodes");
await press("#nodes a", "Enter");
await page.waitForSelector("h2");
await accessible("node");
await press('button[value="drain"]', "Enter");
await page.waitForSelector('button[value="undrain"]');
// What the node says of it comes to the open page.
await page.waitForFunction(() => /drained/.test(document.getElementById("log-lines").textContent));
assert.match(await page.textContent("#log-lines"), /info rig node.*connected/);

// What was spent, of whom, and with which devices.
await press('a[href="/costs"]', "Enter");
await page.waitForSelector("#owners tr");
await accessible("costs");

await press('a[href="/access"]', "Enter");
await page.waitForSelector("text=Audit log");
await accessible("access");
await press(".out button", "Enter");
await page.waitForURL("**/sign-in");
await accessible("sign-in");
await browser.close();
if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exit(1);
}
