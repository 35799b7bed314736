// Operators' sign-in to the console through a real identity provider, which this file starts.

import assert from "node:assert/strict";
import { createServer } from "node:net";
import { once } from "node:events";

import { open } from "./browser.mjs";
import { browser, shared, test } from "./suite.mjs";

const { Provider } = await import("../../target/browser/node_modules/oidc-provider/lib/index.js");

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

const [there, here] = [await freePort(), await freePort()];
const [issuer, base] = [`http://127.0.0.1:${there}`, `http://127.0.0.1:${here}`];
const people = { asha: { name: "Asha Rao", groups: ["staff", "sakshi-owners"] }, ravi: { name: "Ravi", groups: ["revision"] }, mira: { name: "Mira", groups: ["staff"] } };

const provider = new Provider(issuer, {
  clients: [{
    client_id: "sakshi", client_secret: "a secret: with / odd % signs", redirect_uris: [`${base}/console/oidc/back`],
    backchannel_logout_uri: `${base}/console/oidc/logout`, backchannel_logout_session_required: true,
  }],
  claims: { openid: ["sub", "sid"], profile: ["name", "groups"] },
  conformIdTokenClaims: false,
  features: { backchannelLogout: { enabled: true } },
  // By itself it reaches no client on this machine.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  findAccount: (context, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
});
const listening = provider.listen(there, "127.0.0.1");
listening.unref();

const service = await shared("provider", {
  SAKSHI__SERVER__INTERNAL_ADDR: `127.0.0.1:${here}`,
  SAKSHI__CONSOLE__BASE_URL: base,
  SAKSHI__CONSOLE__OIDC_ISSUER: issuer,
  SAKSHI__CONSOLE__OIDC_CLIENT_ID: "sakshi",
  SAKSHI__CONSOLE__OIDC_CLIENT_SECRET: "a secret: with / odd % signs",
  SAKSHI__CONSOLE__OIDC_ROLES: "sakshi-owners=owner,revision=auditor",
});

// Signs in as somebody; returns the page where that ends.
async function signIn(person) {
  const page = await open(browser, "desktop", { javaScriptEnabled: false, mayLeave: true });
  await page.goto(`${base}/console`);
  await page.getByRole("link", { name: "Sign in with 127.0.0.1" }).click();
  await page.locator("[name=login]").fill(person);
  await page.locator("[name=password]").fill("anything");
  await page.getByRole("button", { name: "Sign-in" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  return page;
}

// Returns the provider's answer to a browser that has begun, as an attacker may have it; and the cookie of that browser.
async function codeOf(person) {
  const jar = new Map();
  const ask = async (url, form) => {
    const headers = { cookie: [...jar].map((pair) => pair.join("=")).join("; ") };
    const answer = await fetch(url, { redirect: "manual", headers, ...form && { method: "POST", body: new URLSearchParams(form) } });
    for (const cookie of answer.headers.getSetCookie()) jar.set(...cookie.split(";")[0].split(/=(.*)/s).slice(0, 2));
    const location = answer.headers.get("location");
    return location && new URL(location, url).href;
  };
  const begun = await fetch(`${base}/console/oidc/start`, { redirect: "manual" });
  let at = begun.headers.get("location");
  for (const form of [undefined, { prompt: "login", login: person, password: "anything" }, { prompt: "consent" }]) {
    at = await ask(at, form);
    while (at.startsWith(issuer) && !at.includes("/interaction/")) at = await ask(at);
  }
  return { answer: at, begun: begun.headers.get("set-cookie").split(";")[0] };
}

const log = async () => (await service.operate("GET", "audit-log?limit=100")).entries.map(({ entry }) => entry);

test("who is in a group with a role signs in at the provider, without a script, and the audit log has subject and name", async () => {
  const page = await signIn("asha");
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  assert.equal((await page.locator(".who .app").innerText()).trim(), "Asha Rao · owner");
  const [{ client_id: client }] = (await service.operate("GET", "clients")).clients;
  await page.goto(`${base}/console/clients/${client}`);
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.getByText("The client is suspended.").waitFor();
  await service.operate("PATCH", `clients/${client}`, { suspended: false });
  const entries = (await log()).filter(({ subject }) => subject === "asha");
  assert.deepEqual(entries.map(({ operation, operator }) => [operation, operator]), [["signIn", "Asha Rao"], ["updateClient", "Asha Rao"], ["updateClient", "Asha Rao"]]);
  const cookies = (await page.context().cookies(`${base}/console`)).filter(({ name }) => name.startsWith("sakshi"));
  assert.deepEqual(cookies.map(({ name, sameSite, httpOnly }) => [name, sameSite, httpOnly]), [["sakshi_console", "Strict", true]], "the cookie of the way there is gone");
});

test("another group has another role, and who is in none is not let in and counted as a failed login", async () => {
  const auditor = await signIn("ravi");
  await auditor.getByText("Ravi · auditor").waitFor();
  const stranger = await signIn("mira");
  await stranger.getByText("Your account has no role here.").waitFor();
  await stranger.goto(`${base}/console`);
  await stranger.getByRole("heading", { level: 1, name: "Sign in" }).waitFor();
  assert.ok((await log()).some(({ operation, stage }) => operation === "login" && stage === "refused"));
});

test("an answer that this browser has not asked for, or that another issuer gives, signs nobody in", async () => {
  const page = await open(browser, "desktop", { javaScriptEnabled: false, mayLeave: true });
  await page.goto(`${base}/console/oidc/back?code=stolen&state=guessed`);
  await page.getByText("This sign-in was not begun here").waitFor();
  const { answer, begun } = await codeOf("asha");
  const back = (change, cookie) => {
    const url = new URL(answer);
    for (const [name, value] of Object.entries(change)) url.searchParams.set(name, value);
    return fetch(url, { redirect: "manual", headers: { cookie, accept: "text/html" } });
  };
  for (const [change, cookie] of [[{}, ""], [{}, begun.replace(/=.*/, `=${"A".repeat(43)}`)], [{ state: "guessed" }, begun], [{ iss: "http://127.0.0.1:1" }, begun]]) {
    const refused = await back(change, cookie);
    assert.equal(refused.status, 400, JSON.stringify(change));
    assert.ok(!refused.headers.get("set-cookie").includes("sakshi_console="), "nobody is signed in");
  }
  assert.equal((await back({ code: "another" }, begun)).status, 502);
  assert.equal((await back({}, begun)).status, 200, "the browser that has begun");
});

test("a logout at the provider ends the session here", async () => {
  const page = await signIn("asha");
  await page.getByText("Asha Rao · owner").waitFor();
  const elsewhere = await page.context().newPage();
  await elsewhere.goto(`${issuer}/session/end`);
  await elsewhere.getByRole("button", { name: "Yes, sign me out" }).click();
  // The provider reports it with a delay.
  do await page.goto(`${base}/console`); while (!await page.getByRole("heading", { name: "Sign in" }).count());
  const forged = await fetch(`${base}/console/oidc/logout`, { method: "POST", body: new URLSearchParams({ logout_token: "a.b.c" }) });
  assert.deepEqual([forged.status, await forged.json()], [400, { error: "invalid_request" }]);
});
