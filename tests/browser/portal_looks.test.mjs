// What is on the portal's pages: nothing that keeps anybody out, at any width, in either scheme, and
// by the keyboard alone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { accessibilityProblems, devices, launch, visit } from "./browser.mjs";
import { Service } from "./service.mjs";

let service, browser, paths;
before(async () => {
  [service, browser] = await Promise.all([Service.start(), launch()]);
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString();
  const event = await service.call("events", { name: "A name that goes on for quite a while and has Wortzusammensetzungsungetüme in it", claims: ["name"], max_guests: 5, expires_at: tomorrow, webhook_url: `https://client.example/${"a".repeat(120)}` });
  const jwt = await fetch(`${service.base}/e/${event.event_id}`, { headers: { Accept: "application/jwt" } });
  await service.answer({ intentJwt: await jwt.text() }, "approve");
  const [waiting, verified, declined, app] = await Promise.all([
    service.open({ channel: "qr" }), service.open({ claims: ["name", "photo", "address"] }), service.open(), service.open({ channel: "app" }),
  ]);
  await Promise.all([service.answer(verified, "approve"), service.answer(declined, "decline")]);
  paths = ["", "/events", "/events/new", `/events/${event.event_id}`, "/webhooks", "/credits", "/events/none",
    ...[waiting, verified, declined, app].map((opened) => `/transactions/${opened.txnId}`)];
});
after(() => Promise.all([service?.stop(), browser?.close()]));

async function signedIn(device, more) {
  const page = await visit(browser, device, `${service.base}/portal/sign-in`, more);
  await page.getByLabel("App id").fill(service.headers["X-API-APP-ID"]);
  await page.getByLabel("API key").fill(service.headers["X-API-KEY"]);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/portal");
  return page;
}

async function looksWell(page, state) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
  assert.deepEqual(await accessibilityProblems(page), [], state);
  assert.equal(await page.locator("h1").count(), 1, state);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${state} scrolls sideways`);
  assert.deepEqual(page.troubles, [], state);
}

for (const device of ["desktop", "android", "narrow"]) {
  for (const colorScheme of ["light", "dark"]) {
    test(`no page has an accessibility violation, a broken policy or a sideways scroll, on ${device}, ${colorScheme}`, async () => {
      const page = await signedIn(device, { colorScheme });
      for (const path of paths) {
        await page.goto(`${service.base}/portal${path}`);
        await looksWell(page, path);
      }
      await page.goto(`${service.base}/portal/events/new`);
      await page.locator("form[action='/portal/events']").evaluate((form) => { form.noValidate = true; });
      await page.getByRole("button", { name: "Create the event" }).click();
      await page.getByText("Some fields are not acceptable.").waitFor();
      await looksWell(page, "what is wrong");
      await page.context().clearCookies();
      await page.goto(`${service.base}/portal/sign-in?ended=1`);
      await looksWell(page, "sign-in");
      await page.context().close();
    });
  }
}

test("four times as large, every page still needs no sideways scroll", async () => {
  // A window of 1280 pixels at 400 % has room for 320.
  const page = await signedIn("desktop", { viewport: { width: 320, height: 256 } });
  for (const path of paths) {
    await page.goto(`${service.base}/portal${path}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), path);
  }
  await page.context().close();
});

test("the keyboard reaches what there is, in the order in which it stands, and one sees where one is", async () => {
  const page = await signedIn("desktop");
  await page.goto(`${service.base}/portal`);
  await page.keyboard.press("Tab");
  const skip = page.getByRole("link", { name: "Skip to the content" });
  assert.ok(await skip.evaluate((link) => link === document.activeElement));
  assert.ok((await skip.boundingBox()).width > 40, "it can be seen once it has the focus");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => ({ name: document.activeElement.value, inside: document.querySelector("main").contains(document.activeElement) }));
  assert.deepEqual(first, { name: "name", inside: true });
  const seen = [];
  for (let press = 0; press < 60; press += 1) {
    const here = await page.evaluate(() => {
      const { activeElement } = document;
      const style = getComputedStyle(activeElement);
      return { text: activeElement.name || activeElement.textContent.trim(), outlined: style.outlineStyle !== "none" };
    });
    assert.ok(here.outlined, `${here.text} shows the focus`);
    seen.push(here.text);
    if (here.text.startsWith("Start")) break;
    await page.keyboard.press("Tab");
  }
  assert.ok(seen.at(-1).startsWith("Start"), seen.join(", "));
  assert.ok(seen.indexOf("channel") > seen.lastIndexOf("claims") && seen.indexOf("language") > seen.indexOf("channel"));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Scan it with a phone" }).waitFor();
  await page.context().close();
});

test("what is touched is large enough, and what is shown for an own app is shown when it is chosen", async () => {
  const page = await signedIn("android");
  for (const name of ["Start", "Sign out"]) {
    const box = await page.getByRole("button", { name }).boundingBox();
    assert.ok(box.height >= 40, `${name}: ${box.height}`);
  }
  const field = page.getByLabel("Android package");
  assert.equal(await field.isVisible(), false);
  await page.getByLabel("Your own app").check();
  assert.equal(await field.isVisible(), true);
  assert.ok(devices.android.hasTouch);
  await page.context().close();
});
