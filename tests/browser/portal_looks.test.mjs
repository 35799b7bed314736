// The portal's pages: accessible at any width, in either scheme, and by the keyboard alone.

import assert from "node:assert/strict";

import { LIVE, devices, open } from "./browser.mjs";
import { forcedColourProblems, headerProblems, layoutProblems, narrowProblems, problemsInBothSchemes } from "./inspect.mjs";
import { focusProblems } from "./keyboard.mjs";
import { fillIn, signedIn as within } from "./portal_session.mjs";
import { event } from "./states.mjs";
import { browser, isLong, shared, test } from "./suite.mjs";

const DOCUMENTS = ["/docs", "/docs/errors", "/docs/claims", "/docs/guides/webhooks", "/docs/reference/verification"];
const MORE_DOCUMENTS = ["/docs/errors#event_closed", "/docs/quirks", "/docs/go-live", "/docs/reference", "/docs/reference/webhooks", "/docs/search?q=event", ...["web", "qr", "app", "event", "checks", "errors", "testing", "wealth"].map((guide) => `/docs/guides/${guide}`)];
const PHONE = { width: 390, height: 844 };

const [service, strict] = await Promise.all([shared("portal"), shared("strict", { SAKSHI__LIMITS__SIGN_INS_PER_MINUTE_PER_ADDRESS: "1" })]);

// The path of every page, with lists as long as a few transactions make them, and a waiting transaction. They are opened by
// the first test that shows them: the files before this one may take longer than a transaction lives.
let pages;
const everyPage = () => pages ??= openPages();

async function openPages() {
  const made = await event(service, { name: "A name that goes on for quite a while and has Wortzusammensetzungsungetüme in it", webhook_url: `https://client.example/${"a".repeat(120)}` });
  await service.attend(made);
  const [waiting, verified, declined, app] = await Promise.all([
    service.open({ channel: "qr" }), service.open({ claims: ["name", "photo", "address"] }), service.open(), service.open({ channel: "app" }),
  ]);
  await Promise.all([service.answer(verified, "approve"), service.answer(declined, "decline")]);
  const paths = ["", "/trial", "/orders", "/deliveries", "/verifications", "/verifications?status=waiting&find=none", "/refusals", "/refusals?find=none", "/events", "/events/new", `/events/${made.event_id}`, `/events/${made.event_id}/settings`, `/events/${made.event_id}/guests`, "/webhooks", "/credits", "/status", "/checks", "/events/none",
    ...[waiting, verified, declined, app].map((opened) => `/transactions/${opened.txnId}`)];
  return { paths, waiting };
}

const signedIn = (device, more) => within(service, device, more);

async function unfold(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
}

// Returns the problems of an open page, in either scheme and in windows of every size.
async function problemsOf(page, state) {
  await unfold(page);
  const wrong = [...await problemsInBothSchemes(page), ...await forcedColourProblems(page), ...await layoutProblems(page)];
  const before = page.viewportSize();
  await page.setViewportSize(PHONE);
  wrong.push(...await layoutProblems(page), ...await narrowProblems(page));
  await page.setViewportSize(before);
  if (await page.locator("h1").count() !== 1) wrong.push("has not one heading");
  return [...wrong, ...page.troubles.splice(0)].map((words) => `${state}: ${words}`);
}

// Loads a page of a session once and checks everything.
async function problemsAt(page, path) {
  const answer = await page.goto(`${service.base}/portal${path}`);
  await unfold(page);
  const wrong = [...headerProblems(answer, { referrer: "(no-referrer|same-origin)" }), ...await focusProblems(page)];
  return [...wrong.map((words) => `${path}: ${words}`), ...await problemsOf(page, path)];
}

test("every page of the portal keeps to one pair of eyes and lets the Tab key through; no page has an accessibility violation in either scheme, breaks the policy, or is cut off, covered or too wide in any window, wide text spacing or forced colours", async () => {
  const page = await signedIn("desktop", { still: true, judged: true });
  const problems = [];
  const { paths, waiting } = await everyPage();
  for (const path of paths) problems.push(...await problemsAt(page, path));
  for (const path of isLong ? [...DOCUMENTS, ...MORE_DOCUMENTS] : DOCUMENTS) {
    await page.goto(`${service.base}${path}`);
    problems.push(...await problemsOf(page, path));
  }
  await page.goto(`${service.base}/portal/events/new`);
  await page.locator("form[action='/portal/events']").evaluate((form) => { form.noValidate = true; });
  await page.getByRole("button", { name: "Create the event" }).click();
  await page.getByText("Please correct these fields.").waitFor();
  problems.push(...await problemsOf(page, "what is wrong"));
  // No update may report normal service, also while the page is checked.
  await page.route(LIVE, (route) => route.abort());
  await page.goto(`${service.base}/portal/transactions/${waiting.txnId}`);
  await page.context().setOffline(true);
  await page.locator("#trouble:not(:empty)").waitFor();
  await page.context().setOffline(false);
  problems.push(...await problemsOf(page, "offline"));
  assert.equal(await page.locator("#trouble:not(:empty)").count(), 1, "was offline all the time");
  await page.unroute(LIVE);
  await page.context().clearCookies();
  const answer = await page.goto(`${service.base}/portal/sign-in?ended=1`);
  problems.push(...headerProblems(answer, { referrer: "same-origin" }), ...await problemsOf(page, "sign-in"));
  await fillIn(page, service, "sk_none");
  await page.getByText("do not match").waitFor();
  problems.push(...await problemsOf(page, "a wrong key"));
  do await fillIn(page, strict, "sk_none"); while (!await page.getByText("Too many attempts").count());
  problems.push(...await problemsOf(page, "too many tries"));
  assert.equal(problems.join("\n"), "");
});

test("without JavaScript every page has its heading, its ways and no dead button", async () => {
  const page = await signedIn("desktop", { javaScriptEnabled: false });
  for (const path of (await everyPage()).paths) {
    await page.goto(`${service.base}/portal${path}`);
    await page.locator("h1").waitFor();
    assert.equal(await page.locator("button[type=button]:visible").count(), 0, `${path} has a button that only a script would hear`);
    assert.ok(await page.locator("header nav a").count() === 9 || path === "/events/none", path);
  }
});

test("the keyboard reaches what there is, in the order in which it stands, and one sees where one is", async () => {
  const page = await signedIn("desktop");
  await page.goto(`${service.base}/portal/trial`);
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
});

test("on a phone what a form is for is in view from the start, and never over what has the focus", async () => {
  const page = await signedIn("android");
  await page.goto(`${service.base}/portal/trial`);
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
  await page.goto(`${service.base}/portal/trial`);
  for (const name of ["Start", "Sign out"]) {
    const box = await page.getByRole("button", { name }).boundingBox();
    assert.ok(box.height >= 40, `${name}: ${box.height}`);
  }
  const field = page.getByLabel("Android package");
  assert.equal(await field.isVisible(), false);
  await page.getByLabel("Your own app").check();
  assert.equal(await field.isVisible(), true);
  assert.ok(devices.android.hasTouch);
});
