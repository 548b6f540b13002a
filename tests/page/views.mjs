// Every view of the pages, in both schemes and on a phone: `node views.mjs CHROMIUM LINK
// NAME=PATH...`. Ends with a status other than 0, and says why, where a view is not as it should
// be.
// With TESSERA_PAGE_PICTURES, a picture of each is put into that folder.
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";

const tools = path.join(process.env.TESSERA_PAGE_TOOLS, "node_modules/");
const require = createRequire(tools);
const { chromium } = require("playwright-core");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [executablePath, link, ...named] = process.argv.slice(2);
const views = named.map((text) => text.split(/=(.*)/s).slice(0, 2));
const origin = new URL(link).origin;
const pictures = process.env.TESSERA_PAGE_PICTURES;

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const faults = [];

// What a page of its kind shows once it is complete.
const complete = {
  frame: "#canvas[data-drawn=picture]",
  film: ".frames img",
  jobs: "#jobs tr",
  nodes: "#nodes tr",
  graph: ".graph .self",
};

// The graph leads to each job that is waited for, or waits, by the keyboard, and says each state.
async function linked(page, name) {
  const links = await page.locator(".graph li a").count();
  if (links !== 3) faults.push(`${name}: ${links} of 3 jobs of the graph are linked`);
  for (let at = 0; at < links; at += 1) {
    const item = page.locator(".graph li").nth(at);
    await item.locator("a").focus();
    const said = await item.innerText();
    if (!/running|done|queued/.test(said)) faults.push(`${name}: no state is in ${said}`);
    if (!/until|frame by frame/.test(said)) faults.push(`${name}: no wait is in ${said}`);
  }
}

// Whatever has the focus can be seen to have it, in each of the first stops of the Tab key.
async function seenFocus(page, name) {
  for (let stop = 0; stop < 12; stop += 1) {
    await page.keyboard.press("Tab");
    const unseen = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return null;
      const style = getComputedStyle(element);
      const shown = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
      return shown || style.boxShadow !== "none" ? null : element.outerHTML.slice(0, 100);
    });
    if (unseen) faults.push(`${name}: the focus cannot be seen on ${unseen}`);
  }
}

async function looked(page, name, size) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, nodes } of violations) {
    faults.push(`${name}: ${id}: ${nodes.map((node) => node.html.slice(0, 100)).join(" | ")}`);
  }
  const beyond = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  if (beyond > 0) faults.push(`${name}: ${beyond} pixels wider than a screen of ${size.width}`);
  if (pictures) await page.screenshot({ path: path.join(pictures, `${name}.png`) });
}

// The scrub bar has all eight frames, also those that the page does not list.
async function scrubbed(page, name) {
  await page.waitForSelector("#film:not([hidden])");
  await page.waitForFunction(() => document.getElementById("scrub").max === "7");
  await page.locator("#scrub").focus();
  await page.keyboard.press("End");
  const shown = await page.textContent("#scrub-is");
  if (shown !== "7") faults.push(`${name}: frame ${shown} is shown as the last`);
  await page.keyboard.press("Home");
}

async function visit(page, [name, at], kind, size) {
  const answer = await page.goto(origin + at);
  const expected = name === "missing" ? 404 : 200;
  if (answer.status() !== expected) faults.push(`${name}: ${answer.status()} ${at}`);
  const wanted = complete[name.split("-")[0]];
  if (wanted) await page.waitForSelector(wanted);
  await page.waitForLoadState("load");
  // The page's own scripts have run, and what they asked for has come.
  await page.waitForTimeout(300);
  if (name.startsWith("film")) await scrubbed(page, name);
  if (name === "graph") await linked(page, name);
  await looked(page, `${name}-${kind}`, size);
  if (kind === "light") await seenFocus(page, name);
}

const wide = { width: 1100, height: 760 };
const kinds = [
  ["light", wide, "light"],
  ["dark", wide, "dark"],
  ["phone", { width: 390, height: 800 }, "light"],
];
// The link is good for one session, which all of them share.
const first = await browser.newContext({ bypassCSP: true });
const door = await first.newPage();
await door.goto(link);
await door.waitForURL("**/jobs");
const storageState = await first.storageState();
await first.close();
for (const [kind, viewport, colorScheme] of kinds) {
  for (const signedIn of [true, false]) {
    const context = await browser.newContext({
      bypassCSP: true, viewport, colorScheme, storageState: signedIn ? storageState : undefined,
    });
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    page.on("pageerror", (error) => faults.push(`${kind}: script: ${error.message}`));
    if (signedIn) {
      for (const view of views) await visit(page, view, kind, viewport);
    } else {
      await visit(page, ["signin", "/sign-in"], kind, viewport);
    }
    await context.close();
  }
}
await browser.close();
console.log(`${views.length + 1} views, ${kinds.length} kinds each`);
if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exit(1);
}
