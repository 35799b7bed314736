// The portal as developers use it: from the sign-in to the returned claims, and the protection against others.

import assert from "node:assert/strict";

import { scan, visit } from "./browser.mjs";
import { press, tabTo } from "./keyboard.mjs";
import { signedIn } from "./portal_session.mjs";
import { Service } from "./service.mjs";
import { browser, service, test } from "./suite.mjs";

const SOON = { timeout: 20_000 };

const heading = (page, words) => page.getByRole("heading", { level: 1, name: words }).waitFor(SOON);

// A browser that has signed in with the keyboard alone.
async function signIn(more = {}) {
  const page = await visit(browser, "desktop", `${service.base}/portal`, more);
  await heading(page, "Sign in");
  await page.getByLabel("API key").focus();
  await page.keyboard.type(service.headers["X-API-KEY"]);
  await page.keyboard.press("Tab");
  await page.keyboard.type(service.headers["X-API-APP-ID"]);
  await page.keyboard.press("Enter");
  await heading(page, "Overview");
  await page.getByRole("link", { name: "Try a verification" }).first().focus();
  await page.keyboard.press("Enter");
  await heading(page, "Try a verification");
  return page;
}

// Plays the person in the sandbox's app, which the page opens in another tab.
async function decide(page, button) {
  const opening = page.context().waitForEvent("page");
  await page.locator("#sandbox").click();
  const app = await opening;
  await app.getByRole("button", { name: button }).first().click();
  await app.getByRole("link", { name: "Back to the portal" }).waitFor(SOON);
  await app.close();
}

for (const [manner, more] of [["with JavaScript", {}], ["without JavaScript", { javaScriptEnabled: false }]]) {
  test(`from the sign-in to the claims that came back, with the bytes that the API answers, ${manner}`, async () => {
    const page = await signIn(more);
    const before = Number(await page.locator(".cost b").textContent());
    await page.getByLabel("Photo").check();
    await page.getByLabel("Language of the person").selectOption("hindi");
    await page.getByRole("button", { name: "Start" }).click();
    await heading(page, "Scan it with a phone");
    const txn = new URL(page.url()).pathname.split("/").pop();
    assert.equal(await scan(page, "#page-code"), `${service.base}/v/${txn}`);
    await decide(page, /^Face matches|Approve/);
    await heading(page, "Verified");
    assert.equal(await page.getByText("Asha Rao").count(), 0, "details are hidden until somebody asks");
    await page.getByRole("button", { name: "Show the details" }).click();
    await page.getByText("Asha Rao", { exact: true }).waitFor(SOON);
    assert.ok(await page.getByAltText("The photo that was shared").evaluate((image) => image.naturalWidth > 0));
    const polled = await fetch(`${service.base}/api/v1/nationalid-ovse/result/${txn}`, { headers: service.headers });
    assert.equal(await page.locator("#body").textContent(), await polled.text());
    await page.getByRole("link", { name: "Try another one" }).click();
    assert.equal(Number(await page.locator(".cost b").textContent()), before - 1);
    assert.deepEqual(page.troubles, []);
  });

  test(`an event is created, takes a guest, and is disabled, ${manner}`, async () => {
    const page = await signedIn(service, "desktop", more);
    await page.getByRole("link", { name: "Events" }).click();
    await page.getByRole("link", { name: "New event" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Evening <of> talks");
    await page.getByLabel("Places").fill("2");
    await page.getByRole("button", { name: "Create the event" }).click();
    await heading(page, "Evening <of> talks");
    const event = new URL(page.url()).pathname.split("/").pop();
    await page.getByText("Registered of 2").waitFor(SOON);

    const jwt = await fetch(`${service.base}/e/${event}`, { headers: { Accept: "application/jwt" } });
    await service.answer({ intentJwt: await jwt.text() }, "approve");
    if (more.javaScriptEnabled === false) await page.reload();
    await page.locator("#registrations", { hasText: "1" }).waitFor(SOON);
    await page.getByText("Asha Rao").waitFor(SOON);

    await page.getByRole("link", { name: "Settings and doors" }).click();
    await page.getByLabel("Places", { exact: true }).fill("0");
    await page.locator("form").first().evaluate((form) => { form.noValidate = true; });
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("must be a whole number from 1 to").first().waitFor(SOON);
    await page.getByLabel("Places", { exact: true }).fill("7");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor(SOON);
    await page.getByLabel("Gate (optional)").fill("North");
    await page.getByRole("button", { name: "Open a door" }).click();
    await page.getByText("The door is open.").waitFor(SOON);
    assert.match(await page.locator("dd", { hasText: /^\d{8}$/ }).textContent(), /^\d{8}$/);
    await page.getByRole("button", { name: "Close North" }).click();
    await page.getByText("The door is closed.").waitFor(SOON);
    await page.getByRole("button", { name: "Close registration" }).click();
    await page.getByText("Saved.").waitFor(SOON);
    await page.goto(`${service.base}/portal/events/${event}`);
    await page.locator("#status", { hasText: "Closed" }).waitFor(SOON);
    await page.getByText("Registered of 7").waitFor(SOON);
    assert.equal((await fetch(`${service.base}/e/${event}`)).status, 410);
    assert.deepEqual(page.troubles, []);
  });
}

test("by the keyboard alone, from the sign-in through the sandbox's app to the claims and the very bytes of the webhook", async () => {
  const { createServer } = await import("node:http");
  const { once } = await import("node:events");
  const { buffer } = await import("node:stream/consumers");
  const got = [];
  let arrive;
  const arrived = new Promise((resolve) => { arrive = resolve; });
  const backend = createServer(async (request, answer) => {
    got.push({ method: request.method, url: request.url, body: await buffer(request) });
    answer.end();
    arrive();
  });
  await once(backend.listen(0, "127.0.0.1"), "listening");
  try {
    const page = await signIn();
    await press(page, page.getByLabel("Photo"), "Space");
    await press(page, page.getByRole("radio", { checked: true }), "ArrowDown");
    await press(page, page.getByText("More options"));
    await tabTo(page, page.getByLabel("Webhook URL"));
    await page.keyboard.type(`http://127.0.0.1:${backend.address().port}/hook?for=me`);
    await press(page, page.getByRole("button", { name: "Start" }));
    await heading(page, "Scan it with a phone");
    const txn = new URL(page.url()).pathname.split("/").pop();
    assert.deepEqual(got, []);
    const opening = page.context().waitForEvent("page");
    await press(page, page.locator("#sandbox"));
    const app = await opening;
    await app.waitForLoadState();
    await press(app, app.getByRole("button", { name: /^Face matches/ }));
    await app.getByRole("heading", { name: "Your details were shared" }).waitFor(SOON);
    await app.close();
    await heading(page, "Verified");
    await press(page, page.getByRole("button", { name: "Show the details" }));
    await page.getByText("Asha Rao", { exact: true }).waitFor(SOON);
    await arrived;
    const [{ method, url, body }, ...more] = got;
    assert.deepEqual([method, url, more], ["POST", "/hook?for=me", []]);
    assert.equal(await page.locator("#body").textContent(), body.toString());
    const polled = await fetch(`${service.base}/api/v1/nationalid-ovse/result/${txn}`, { headers: service.headers });
    assert.equal(await polled.text(), body.toString());
    const { data } = JSON.parse(body);
    assert.equal(data.verification_passed, true);
    assert.ok(body.includes("Asha Rao"));
    assert.deepEqual(page.troubles, []);
    await page.context().close();
  } finally {
    backend.close();
    backend.closeAllConnections();
  }
});

test("what is copied is the command, and it works with the credentials put in", async () => {
  const page = await signedIn(service);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: service.base });
  await page.goto(`${service.base}/portal/credits`);
  await page.getByRole("button", { name: "Copy: Read the balance" }).click();
  await page.getByText("Copied").first().waitFor(SOON);
  const command = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(command, await page.locator("#curl-1").textContent());
  const { execFile } = await import("node:child_process");
  const { promisify } = await import("node:util");
  const env = { ...process.env, KEY: service.headers["X-API-KEY"], APP: service.headers["X-API-APP-ID"] };
  const { stdout } = await promisify(execFile)("bash", ["-c", command], { env });
  assert.equal(String(JSON.parse(stdout).balance), await page.locator(".big").textContent());
});

test("a form of another site does nothing, and neither does one without the session's word", async () => {
  const page = await signedIn(service);
  const { createServer } = await import("node:http");
  const { once } = await import("node:events");
  const form = `<form method="post" action="${service.base}/portal/trial"><input name="claims" value="name"><input name="channel" value="qr"><button>go</button></form>`;
  const evil = createServer((_, answer) => answer.setHeader("content-type", "text/html").end(form));
  await once(evil.listen(0, "127.0.0.1"), "listening");
  try {
    const balance = async () => (await (await fetch(`${service.base}/api/v1/credits`, { headers: service.headers })).json()).balance;
    const before = await balance();
    const other = await page.context().newPage();
    await other.goto(`http://127.0.0.1:${evil.address().port}/`);
    await other.getByRole("button").click();
    await other.waitForLoadState();
    const told = await other.getByRole("heading", { level: 1 }).textContent();
    assert.ok(["This form was not accepted", "Sign in"].includes(told), told);
    await page.goto(`${service.base}/portal/trial`);
    await page.locator("input[name=form_word]").evaluateAll((all) => all.forEach((input) => { input.value = "made up"; }));
    await page.getByRole("button", { name: "Start" }).click();
    await heading(page, "This form was not accepted");
    assert.equal(await balance(), before);
  } finally {
    evil.close();
    evil.closeAllConnections();
    await page.context().close();
  }
});

test("nothing of the key is in a page, in the browser's storage or in a cookie that scripts read", async () => {
  const page = await signIn();
  const key = service.headers["X-API-KEY"].slice(3);
  for (const path of ["", "/events", "/events/new", "/webhooks", "/credits", "/sign-in", "/events/none"]) {
    await page.goto(`${service.base}/portal${path}`);
    const seen = await page.evaluate(() => [document.documentElement.outerHTML, document.cookie, JSON.stringify({ ...localStorage, ...sessionStorage })]);
    assert.ok(seen.every((text) => !text.includes(key)), path);
    assert.equal(seen[1], "");
  }
  const [cookie, ...more] = await page.context().cookies(`${service.base}/portal`);
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path, cookie.expires, more], [true, "Strict", "/portal", -1, []]);
  assert.ok(!cookie.value.includes(key));
  assert.deepEqual(await page.context().cookies(`${service.base}/v/x`), [], "other pages do not get it");
});

test("a revoked key ends its sessions within a second, also on a page that is open", async () => {
  const mortal = await Service.start();
  try {
    const event = await mortal.call("events", { name: "Talks", claims: ["name"], max_guests: 5, expires_at: new Date(Date.now() + 3_600_000).toISOString() });
    const page = await visit(browser, "desktop", `${mortal.base}/portal`);
    await page.getByLabel("App id").fill(mortal.headers["X-API-APP-ID"]);
    await page.getByLabel("API key").fill(mortal.headers["X-API-KEY"]);
    await page.getByRole("button", { name: "Sign in" }).click();
    await heading(page, "Overview");
    await page.goto(`${mortal.base}/portal/events/${event.event_id}`);
    await heading(page, "Talks");
    await mortal.revokeKeys();
    const revoked = Date.now();
    let status;
    do {
      status = (await page.context().request.get(`${mortal.base}/portal/credits`, { maxRedirects: 0 })).status();
    } while (status === 200 && Date.now() - revoked < 1_000);
    assert.equal(status, 303);
    await heading(page, "Sign in");
    await page.context().close();
  } finally {
    await mortal.stop();
  }
});

test("signing out leads to the sign-in, and the way back shows nothing", async () => {
  const page = await signIn();
  await page.goto(`${service.base}/portal/credits`);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("You are signed out.").waitFor(SOON);
  await page.goBack();
  await heading(page, "Sign in");
});
