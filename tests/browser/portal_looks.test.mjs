// What is on the portal's pages: nothing that keeps anybody out, at any width, in either scheme, and
// by the keyboard alone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { devices, launch, open } from "./browser.mjs";
import { forcedColourProblems, layoutProblems, problemsInBothSchemes, spacingProblems } from "./inspect.mjs";
import { focusProblems } from "./keyboard.mjs";
import { Service } from "./service.mjs";
import { event } from "./states.mjs";

// A window of 1280 pixels at 400 % has room for so many.
const NARROW = { width: 320, height: 256 };
const PHONE = { width: 390, height: 844 };

let service, strict, browser, paths;
before(async () => {
  [service, strict, browser] = await Promise.all([Service.start(), Service.start({ SAKSHI__LIMITS__SIGN_INS_PER_MINUTE_PER_ADDRESS: "1" }), launch()]);
  const made = await event(service, { name: "A name that goes on for quite a while and has Wortzusammensetzungsungetüme in it", webhook_url: `https://client.example/${"a".repeat(120)}` });
  await service.attend(made);
  const [waiting, verified, declined, app] = await Promise.all([
    service.open({ channel: "qr" }), service.open({ claims: ["name", "photo", "address"] }), service.open(), service.open({ channel: "app" }),
  ]);
  await Promise.all([service.answer(verified, "approve"), service.answer(declined, "decline")]);
  paths = ["", "/verifications", "/verifications?status=waiting&find=none", "/refusals", "/refusals?find=none", "/events", "/events/new", `/events/${made.event_id}`, "/webhooks", "/credits", "/checks", "/events/none",
    ...[waiting, verified, declined, app].map((opened) => `/transactions/${opened.txnId}`)];
});
after(() => Promise.all([service?.stop(), strict?.stop(), browser?.close()]));

async function fillIn(page, { base, headers }, key = headers["X-API-KEY"]) {
  await page.goto(`${base}/portal/sign-in`);
  await page.getByLabel("App id").fill(headers["X-API-APP-ID"]);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

async function signedIn(device, more) {
  const page = await open(browser, device, more);
  await fillIn(page, service);
  await page.waitForURL("**/portal");
  return page;
}

async function unfold(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
}

// What is wrong with a page as it stands, in either scheme and in windows of every size.
async function problemsOf(page, state) {
  await unfold(page);
  const wrong = [...await problemsInBothSchemes(page), ...await forcedColourProblems(page)];
  for (const size of [page.viewportSize(), PHONE, NARROW]) wrong.push(...await layoutProblems(page, size));
  wrong.push(...await spacingProblems(page, NARROW));
  if (await page.locator("h1").count() !== 1) wrong.push("has not one heading");
  return [...wrong, ...page.troubles.splice(0)].map((words) => `${state}: ${words}`);
}

test("no page has an accessibility violation in either scheme, breaks the policy, or is cut off, covered or too wide in any window, wide text spacing or forced colours", async () => {
  const page = await signedIn("desktop", { still: true });
  const problems = [];
  for (const path of paths) {
    await page.goto(`${service.base}/portal${path}`);
    problems.push(...await problemsOf(page, path));
  }
  for (const path of ["/docs/errors", "/docs/errors#event_closed", "/docs/claims", "/docs/quirks",
    ...["web", "qr", "app", "event", "webhooks", "checks", "errors", "testing"].map((guide) => `/docs/guides/${guide}`)]) {
    await page.goto(`${service.base}${path}`);
    problems.push(...await problemsOf(page, path));
  }
  await page.goto(`${service.base}/portal/events/new`);
  await page.locator("form[action='/portal/events']").evaluate((form) => { form.noValidate = true; });
  await page.getByRole("button", { name: "Create the event" }).click();
  await page.getByText("Please correct these fields.").waitFor();
  problems.push(...await problemsOf(page, "what is wrong"));
  await page.goto(`${service.base}/portal/transactions/${paths.at(-4).split("/").pop()}`);
  await page.context().setOffline(true);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.locator("#trouble:not(:empty)").waitFor();
  await page.context().setOffline(false);
  problems.push(...await problemsOf(page, "offline"));
  await page.context().clearCookies();
  await page.goto(`${service.base}/portal/sign-in?ended=1`);
  problems.push(...await problemsOf(page, "sign-in"));
  await fillIn(page, service, "sk_none");
  await page.getByText("do not match").waitFor();
  problems.push(...await problemsOf(page, "a wrong key"));
  do await fillIn(page, strict, "sk_none"); while (!await page.getByText("Too many attempts").count());
  problems.push(...await problemsOf(page, "too many tries"));
  assert.equal(problems.join("\n"), "");
  await page.context().close();
});

test("on every page the Tab key stops at everything in order, seen, and gets out again", async () => {
  const page = await signedIn("desktop", { still: true });
  const problems = [];
  for (const path of paths) {
    await page.goto(`${service.base}/portal${path}`);
    await unfold(page);
    problems.push(...(await focusProblems(page)).map((words) => `${path}: ${words}`));
  }
  assert.equal(problems.join("\n"), "");
  await page.context().close();
});

test("without JavaScript every page has its heading, its ways and no dead button", async () => {
  const page = await signedIn("desktop", { javaScriptEnabled: false });
  for (const path of paths) {
    await page.goto(`${service.base}/portal${path}`);
    await page.locator("h1").waitFor();
    assert.equal(await page.locator("button[type=button]:visible").count(), 0, `${path} has a button that only a script would hear`);
    assert.ok(await page.locator("header nav a").count() === 6 || path === "/events/none", path);
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

test("on a phone what a form is for is in view from the start, and never over what has the focus", async () => {
  const page = await signedIn("android");
  await page.setViewportSize({ width: 360, height: 640 });
  const app = await open(browser, "android");
  const { intentJwt } = await service.open();
  await app.goto(`${service.base}/sandbox/app?req=${intentJwt}`);
  for (const [form, name, bar] of [[page, /^Start/, ".go"], [app, /^Face matches/, ".decide"]]) {
    const button = form.getByRole("button", { name });
    const { y, height } = await button.boundingBox();
    assert.ok(y >= 0 && y + height <= form.viewportSize().height, `${name} is in view`);
    for (let press = 0; press < 60 && !await button.evaluate((element) => element === document.activeElement); press += 1) {
      await form.keyboard.press("Tab");
      const hidden = await form.evaluate((bar) => {
        const { activeElement } = document, over = document.querySelector(bar);
        return !over.contains(activeElement) && activeElement.getBoundingClientRect().bottom > over.getBoundingClientRect().top && activeElement.outerHTML;
      }, bar);
      assert.equal(hidden, false);
    }
    assert.ok(await button.evaluate((element) => element === document.activeElement), `${name} is reached`);
    await form.context().close();
  }
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
