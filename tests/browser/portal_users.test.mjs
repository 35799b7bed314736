// Sign-in to the portal as users: from the invitation to the sign-out, without JavaScript, and the pages for keys, team, log and sessions
// in any window.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";

import { open, scan } from "./browser.mjs";
import { forcedColourProblems, layoutProblems, narrowProblems, problemsInBothSchemes } from "./inspect.mjs";
import { Service } from "./service.mjs";
import { browser, test } from "./suite.mjs";

const SOON = { timeout: 20_000 };
const PASSWORD = "mango tree on the hill";
const STEP_MS = 30_000;

const heading = (page, words) => page.getByRole("heading", { level: 1, name: words }).waitFor(SOON);

// Returns the bytes of a secret in Base32.
function bytes(text) {
  const bits = [...text.replaceAll(" ", "")].map((letter) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter).toString(2).padStart(5, "0")).join("");
  return Buffer.from(bits.match(/.{8}/g).map((eight) => parseInt(eight, 2)));
}

// Returns the code of a secret in the step of a time (RFC 6238).
function codeAt(secret, time) {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(time / STEP_MS)));
  const tag = createHmac("sha1", bytes(secret)).update(counter).digest();
  const offset = tag.at(-1) & 15;
  return String((tag.readUInt32BE(offset) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

// Invites an admin of the first client, as the operator.
async function invited(service, email) {
  const [{ client_id: client }] = (await service.operate("GET", "clients")).clients;
  return { client, ...await service.operate("POST", `clients/${client}/users`, { name: "Asha Rao", email, role: "admin" }) };
}

// Accepts an invitation; returns the secret of the codes, and the recovery codes.
async function accept(page, url) {
  await page.goto(url);
  await heading(page, /^Your user at/);
  const secret = await page.locator("#secret").textContent();
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByLabel("Code", { exact: true }).fill(codeAt(secret, Date.now()));
  await page.getByRole("button", { name: "Finish" }).click();
  await heading(page, "Keep these recovery codes");
  return { secret, recovery: await page.locator(".recovery code").allTextContents() };
}

async function signIn(page, service, email, code) {
  await page.goto(`${service.base}/portal/sign-in`);
  await page.getByText("Sign in as a user").first().click();
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByLabel("Code", { exact: true }).fill(code);
  await page.getByRole("button", { name: "Sign in as a user" }).click();
}

test("a person accepts an invitation, signs in with a code, switches the application, issues a key and signs out, without JavaScript", async () => {
  const service = await Service.start();
  try {
    const { client, invite_url: url } = await invited(service, "asha@example.com");
    await service.operate("POST", `clients/${client}/apps`, { name: "Second app" });
    const page = await open(browser, "desktop", { javaScriptEnabled: false });
    await page.goto(url);
    await page.getByLabel("Password").fill("short");
    await page.getByLabel("Code", { exact: true }).fill("000000");
    await page.getByRole("button", { name: "Finish" }).click();
    await page.getByText("Please correct these fields.").waitFor(SOON);
    const { secret } = await accept(page, url);
    assert.equal((await page.goto(url)).status(), 404, "the link works once");
    await signIn(page, service, "asha@example.com", "000000");
    await page.getByText("do not belong together").waitFor(SOON);
    await signIn(page, service, "Asha@Example.com", codeAt(secret, Date.now() + STEP_MS));
    await page.getByRole("link", { name: "Asha Rao (admin)" }).waitFor(SOON);
    await page.getByLabel("Application").selectOption({ label: "Second app" });
    await page.getByRole("button", { name: "Switch" }).click();
    await page.locator(".who .app", { hasText: "Second app" }).waitFor(SOON);

    await page.getByRole("link", { name: "Keys" }).click();
    await page.getByLabel("Label").fill("kiosk");
    await page.getByRole("button", { name: "Issue a key" }).click();
    const key = await page.locator("#key-text").textContent();
    const status = await fetch(`${service.base}/api/v1/status`, { headers: { ...service.headers, "X-API-KEY": key } });
    assert.equal(status.status, 200, "the API takes the key");
    await page.getByRole("link", { name: "Team" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Ravi Kumar");
    await page.getByLabel("E-mail").fill("ravi@example.com");
    await page.getByRole("button", { name: "Make a link" }).click();
    assert.match(await page.locator("#invite-link").textContent(), /\/portal\/invite\/[\w-]{43}$/);
    await page.getByRole("link", { name: "Log" }).click();
    await page.getByText("Issued an API key").last().waitFor(SOON);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You are signed out.").waitFor(SOON);
    await page.goto(`${service.base}/portal/keys`);
    await heading(page, "Sign in");
    assert.deepEqual(page.troubles, []);
  } finally {
    await service.stop();
  }
});

async function problemsOf(page, state) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  const wrong = [...await problemsInBothSchemes(page), ...await forcedColourProblems(page), ...await layoutProblems(page), ...await narrowProblems(page)];
  if (await page.locator("h1").count() !== 1) wrong.push("has not one heading");
  return [...wrong, ...page.troubles.splice(0)].map((words) => `${state}: ${words}`);
}

test("the pages for users keep nobody out, in either scheme, in a narrow window and in forced colours", async () => {
  const service = await Service.start();
  try {
    const email = `${"a-long-address-of-a-person".repeat(3)}@example.com`;
    const { client, invite_url: url } = await invited(service, email);
    await service.operate("POST", `clients/${client}/apps`, { name: "Second app with a name that goes on for quite a while" });
    const page = await open(browser, "desktop", { still: true, judged: true });
    const problems = [];
    await page.goto(url);
    problems.push(...await problemsOf(page, "invitation"));
    assert.match(await scan(page, ".code"), /^otpauth:\/\/totp\/Sakshi%20/);
    const { secret, recovery } = await accept(page, url);
    problems.push(...await problemsOf(page, "recovery codes"));
    await page.goto(url);
    problems.push(...await problemsOf(page, "a link that was used"));
    await signIn(page, service, email, "000000");
    problems.push(...await problemsOf(page, "a sign-in that failed"));
    await signIn(page, service, email, recovery[0]);
    await page.getByRole("link", { name: "Asha Rao (admin)" }).waitFor(SOON);
    await signIn(page, service, email, codeAt(secret, Date.now() + STEP_MS));
    await page.getByRole("link", { name: "Asha Rao (admin)" }).waitFor(SOON);
    await service.operate("POST", `clients/${client}/users`, { name: "Ravi Kumar", email: "ravi@example.com", role: "view" });
    for (const path of ["team", "keys", "log", "log?who=none", "account"]) {
      await page.goto(`${service.base}/portal/${path}`);
      problems.push(...await problemsOf(page, path));
    }
    await page.goto(`${service.base}/portal/keys`);
    await page.getByRole("button", { name: "Issue a key" }).click();
    await page.locator("#key-text").waitFor(SOON);
    problems.push(...await problemsOf(page, "a new key"));
    assert.deepEqual(problems, []);
  } finally {
    await service.stop();
  }
});
