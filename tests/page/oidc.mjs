// Signs in by a provider: `node oidc.mjs STEP CHROMIUM FARM PROVIDER ARGUMENTS...`. Ends with a
// status other than 0, and says why, where something is not as it should be.
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

const [step, executablePath, farm, provider, ...rest] = process.argv.slice(2);

// A browser without pages: it keeps cookies by host and port, and follows redirects one by one.
class Client {
  cookies = new Map();

  async ask(address, options = {}) {
    const { origin } = new URL(address);
    const own = this.cookies.get(origin) ?? new Map();
    const cookie = [...own].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { ...options.headers, ...(cookie && { cookie }) };
    const answer = await fetch(address, { ...options, headers, redirect: "manual" });
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      if (value === "" || /expires=Thu, 01 Jan 1970/i.test(line)) own.delete(name);
      else own.set(name, value);
    }
    this.cookies.set(origin, own);
    return answer;
  }

  // Where the farm sends browsers, with other values of some parameters.
  async begin(changes = {}) {
    const answer = await this.ask(`${farm}/oidc/begin`);
    assert.equal(answer.status, 303, await answer.text());
    const address = new URL(answer.headers.get("location"));
    assert.equal(address.origin, provider);
    assert.equal(address.searchParams.get("code_challenge_method"), "S256");
    for (const [name, value] of Object.entries(changes)) address.searchParams.set(name, value);
    return address.href;
  }

  // Signs in at the provider; the address that leads back to the farm.
  async login(name, address) {
    let next = address;
    for (let hop = 0; hop < 12; hop += 1) {
      if (next.startsWith(`${farm}/oidc/return`)) return next;
      const answer = await this.ask(next);
      const there = answer.headers.get("location");
      if (there) {
        next = new URL(there, next).href;
        continue;
      }
      const page = await answer.text();
      assert.equal(answer.status, 200, page);
      const action = new URL(/action="([^"]+)"/.exec(page)[1], next).href;
      const prompt = /name="prompt" value="([^"]+)"/.exec(page)[1];
      const form = prompt === "login" ? { prompt, login: name, password: "x" } : { prompt };
      const posted = await this.ask(action, { method: "POST", body: new URLSearchParams(form) });
      next = new URL(posted.headers.get("location"), action).href;
    }
    throw new Error(`the provider does not lead back: ${next}`);
  }

  async signIn(name, changes) {
    return this.ask(await this.login(name, await this.begin(changes)));
  }

  async me() {
    const answer = await this.ask(`${farm}/api/v1/me`);
    return { status: answer.status, ...await answer.json() };
  }
}

async function refused(answer, status, ...texts) {
  const page = await answer.text();
  assert.equal(answer.status, status, page);
  for (const text of texts) assert.ok(page.includes(text), `no ${text} in ${page}`);
  const session = answer.headers.getSetCookie().filter((line) => !line.includes("-oidc="));
  assert.deepEqual(session, [], "no session is given");
}

async function accepted(answer) {
  assert.equal(answer.status, 303, await answer.text());
  assert.equal(answer.headers.get("location"), "/jobs");
  const [session] = answer.headers.getSetCookie().filter((line) => !line.includes("-oidc="));
  assert.match(session, /; HttpOnly; SameSite=Lax; Max-Age=604800/);
}

const steps = {
  // A person signs in with a browser, sees the pages, and signs out.
  async browser(name, picture) {
    const require = createRequire(path.join(process.env.TESSERA_PAGE_TOOLS, "node_modules/"));
    const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
    const { chromium } = require("playwright-core");
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    const page = await (await browser.newContext()).newPage();
    page.setDefaultTimeout(20_000);
    const faults = [];
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (said) => {
      if (said.type() === "error" && page.url().startsWith(farm)) faults.push(said.text());
    });
    await page.goto(`${farm}/sign-in`);
    if (picture) await page.screenshot({ path: picture });
    await page.click("a.button");
    await page.fill("input[name=login]", name);
    await page.fill("input[name=password]", "x");
    await page.click("button[type=submit]");
    await page.waitForURL((url) => url.origin === provider && url.pathname !== "/auth");
    await page.click("button[type=submit]");
    await page.waitForURL(`${farm}/jobs`);
    assert.ok((await page.textContent("form.out")).includes(`${name} (artist)`));
    const cookies = (await page.context().cookies(farm)).filter((one) => one.name !== "_session");
    assert.ok(cookies.some((one) => one.httpOnly && /^tessera-\d+$/.test(one.name)));
    assert.ok(!cookies.some((one) => one.name.endsWith("-oidc")), "the ticket is used up");
    await page.click("form.out button");
    await page.waitForURL(`${farm}/sign-in`);
    await page.goto(`${farm}/jobs`);
    await page.waitForURL(`${farm}/sign-in`);
    assert.deepEqual(faults, []);
    const bare = await (await browser.newContext({ bypassCSP: true })).newPage();
    await bare.goto(`${farm}/sign-in`);
    await bare.evaluate(axe);
    const { violations } = await bare.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map((fault) => fault.id), []);
    await browser.close();
  },

  // A person signs in; says who they are for the farm.
  async enter(name) {
    const client = new Client();
    await accepted(await client.signIn(name));
    console.log(JSON.stringify(await client.me()));
  },

  // A person is not let in, for this reason.
  async refuse(name, ...texts) {
    await refused(await new Client().signIn(name), 403, ...texts);
  },

  // A person's session and token after something happens: waits for a line on standard input.
  async stay(name) {
    const client = new Client();
    await accepted(await client.signIn(name));
    const made = await client.ask(`${farm}/api/v1/tokens/api`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: farm },
      body: JSON.stringify({ ttl_secs: 600 }),
    });
    const { token } = await made.json();
    const byToken = async () => {
      const headers = { authorization: `Bearer ${token}` };
      return (await fetch(`${farm}/api/v1/me`, { headers })).status;
    };
    console.log(JSON.stringify([(await client.me()).status, await byToken()]));
    for await (const _ of process.stdin) {
      console.log(JSON.stringify([(await client.me()).status, await byToken()]));
    }
    process.exit(0);
  },

  // Answers that are not those of an honest browser.
  async attacks() {
    const ada = new Client();
    const back = await ada.login("ada", await ada.begin());
    const forged = new URL(back);
    forged.searchParams.set("state", "A".repeat(43));
    await refused(await ada.ask(forged.href), 403, "belongs to another sign-in");
    await refused(await new Client().ask(back), 403, "has begun no sign-in");
    const other = new Client();
    await other.begin();
    await refused(await other.ask(back), 403, "belongs to another sign-in");

    // The code of somebody else in an own sign-in: it is bound to the verifier.
    const thief = new Client();
    const own = new URL(await thief.begin());
    const stolen = new URL(back);
    stolen.searchParams.set("state", own.searchParams.get("state"));
    await refused(await thief.ask(stolen.href), 403, "does not take the code", "invalid_grant");

    const honest = new Client();
    const link = await honest.login("ada", await honest.begin());
    const ticket = new Map([...honest.cookies.get(farm)]);
    await accepted(await honest.ask(link));
    honest.cookies.set(farm, new Map(ticket));
    await refused(await honest.ask(link), 403, "was used already");
    const again = new Client();
    const fresh = new URL(await again.begin());
    const replayed = new URL(link);
    replayed.searchParams.set("state", fresh.searchParams.get("state"));
    await refused(await again.ask(replayed.href), 403, "invalid_grant");

    await refused(await new Client().signIn("ada", { nonce: "mine" }), 403, "(nonce)");
    const denied = new Client();
    const state = new URL(await denied.begin()).searchParams.get("state");
    const error = "error=access_denied&error_description=%3Cb%3Eno";
    const answer = await denied.ask(`${farm}/oidc/return?${error}&state=${state}`);
    await refused(answer, 403, "access_denied &lt;b&gt;no");
    const twice = await new Client().ask(`${farm}/oidc/return?state=a&state=b`);
    await refused(twice, 403, "not one of a provider");
    const mixed = new Client();
    const mixedState = new URL(await mixed.begin()).searchParams.get("state");
    const from = `${farm}/oidc/return?code=x&iss=http://evil.example&state=${mixedState}`;
    await refused(await mixed.ask(from), 403, "another provider");
  },

  // The provider shows another key of the same name than the one that it signs with; then its own.
  async keys() {
    await refused(await new Client().signIn("ada"), 403, "a key that the provider does not have");
    await fetch(`${provider}/test/keys/own`);
    // New keys are looked for once in ten seconds.
    await new Promise((done) => setTimeout(done, 11_000));
    await accepted(await new Client().signIn("ada"));
  },

  // Nobody answers.
  async down() {
    await refused(await new Client().ask(`${farm}/oidc/begin`), 503, "Not signed in", provider);
    const page = await (await fetch(`${farm}/sign-in`)).text();
    assert.ok(page.includes("does not answer as it should"), page);
    assert.ok(page.includes("tessera web"), "the other way is still there");
  },

  // The provider goes away between the way there and the way back: waits for a line.
  async late(name) {
    const client = new Client();
    const back = await client.login(name, await client.begin());
    console.log("there");
    for await (const _ of process.stdin) {
      await refused(await client.ask(back), 503, "Not signed in", "/token");
      return;
    }
  },
};
await steps[step](...rest);
