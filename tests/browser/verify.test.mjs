// A verification as people see it: pages that advance by themselves, with and without JavaScript.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";

import { minutePasses, visit } from "./browser.mjs";
import { Service } from "./service.mjs";
import { browser, isLong, service, test } from "./suite.mjs";

// Longer than any step here, shorter than anybody's patience.
const SOON = { timeout: 20_000 };

const heading = (page, words) => page.getByRole("heading", { level: 1, name: words }).waitFor(SOON);

// Follows the sandbox button of a verify page and decides there.
async function decide(page, button) {
  await page.locator("#sandbox").click();
  await page.getByRole("button", { name: button, exact: false }).first().click();
  await page.getByRole("link", { name: "Back to the verify page" }).waitFor(SOON);
}

for (const [manner, more] of [["with JavaScript", {}], ["without JavaScript", { javaScriptEnabled: false }]]) {
  test(`a page in another tab turns to verified by itself when the person approves, ${manner}`, async () => {
    const opened = await service.open();
    const watching = await visit(browser, "desktop", opened.requestUrl, more);
    const acting = await visit(browser, "android", opened.requestUrl, more);
    await heading(watching, "Confirm who you are");
    await decide(acting, "Face matches");
    await heading(watching, "You are verified");
    await acting.getByRole("link", { name: "Back to the verify page" }).click();
    await heading(acting, "You are verified");
    const result = await service.call(`result/${opened.txnId}`);
    assert.equal(result.data.verification_passed, true);
    assert.deepEqual([watching.troubles, acting.troubles], [[], []]);
  });

  test(`a page turns to declined with the reason when the person declines, ${manner}`, async () => {
    const opened = await service.open();
    const watching = await visit(browser, "iphone", opened.requestUrl, more);
    const acting = await visit(browser, "iphone", opened.requestUrl, more);
    await decide(acting, "Decline");
    await heading(watching, "You declined");
    await watching.getByText("You declined the request in the identity app.").waitFor(SOON);
    assert.deepEqual(watching.troubles, []);
  });
}

test("a page turns to expired by itself when the time is over", async () => {
  const hasty = await Service.start({ SAKSHI__OVSE__WINDOW_S: "3" });
  try {
    const { requestUrl } = await hasty.open();
    const page = await visit(browser, "android", requestUrl);
    // It was served while the person could answer: on a slow machine it turns before its heading is seen.
    assert.equal(page.answer.status(), 200);
    await heading(page, "This request has expired");
    assert.equal((await fetch(requestUrl)).status, 410);
    await page.context().close();
  } finally {
    await hasty.stop();
  }
});

test("the countdown runs by the server's time even when the phone's clock is wrong", async () => {
  const { requestUrl } = await service.open();
  const page = await visit(browser, "android", "about:blank");
  await page.clock.install({ time: new Date("2031-01-01T00:00:00Z") });
  // The service's clock keeps running.
  for (const path of ["**/events", "**/status"]) await page.route(path, (route) => route.abort());
  await page.goto(requestUrl);
  const shown = await page.locator("#left").textContent();
  assert.match(shown, /^1[45]:\d\d$/);
  await page.clock.runFor(61_000);
  assert.match(await page.locator("#left").textContent(), /^1[34]:\d\d$/);
});

test("a page whose stream is held back asks for the state instead", async () => {
  const opened = await service.open();
  const page = await visit(browser, "android", "about:blank", { hurried: !isLong });
  await page.route("**/events", () => {});
  await page.goto(opened.requestUrl);
  if (!isLong) await minutePasses(page);
  await service.answer(opened, "approve");
  await heading(page, "You are verified");
});

test("a page whose intent ends before the transaction gets a new one, and while it has no network stays", async () => {
  const opened = await service.open();
  const page = await visit(browser, "android", "about:blank", { hurried: true });
  const body = (await (await fetch(opened.requestUrl)).text()).replace(" data-remaining", ' data-stale="40" data-remaining');
  await page.route(opened.requestUrl, (route) => route.fulfill({ contentType: "text/html; charset=utf-8", body }));
  await page.goto(opened.requestUrl);
  await page.unroute(opened.requestUrl);
  await page.evaluate(() => { globalThis.isSame = true; });
  await page.context().setOffline(true);
  await minutePasses(page);
  await page.getByText("The connection is interrupted").waitFor(SOON);
  assert.ok(await page.evaluate(() => globalThis.isSame), "the page is still there");
  await page.context().setOffline(false);
  await page.waitForFunction(() => !globalThis.isSame);
  assert.equal(await page.locator("main").getAttribute("data-stale"), null);
  await heading(page, "Confirm who you are");
});

test("a page that loses its connection says so and recovers", async () => {
  const opened = await service.open();
  const page = await visit(browser, "android", opened.requestUrl);
  await page.context().setOffline(true);
  // As on the person's return from the identity app.
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.getByText("The connection is interrupted").waitFor(SOON);
  await page.context().setOffline(false);
  await page.getByText("The connection is interrupted").waitFor({ state: "detached", ...SOON });
  await service.answer(opened, "approve");
  await heading(page, "You are verified");
});

test("a page asks an overloaded service every three seconds, or as rarely as the service says", async () => {
  const opened = await service.open();
  for (const [headers, seconds] of [[{}, 3], [{ "retry-after": "10" }, 10]]) {
    const page = await visit(browser, "android", "about:blank", { hurried: true });
    let asked = 0;
    await page.route("**/events", (route) => route.fulfill({ status: 503 }));
    await page.route("**/status", (route) => { asked += 1; return route.fulfill({ status: 503, headers }); });
    await page.goto(opened.requestUrl);
    await page.getByText("The connection is interrupted").waitFor(SOON);
    const started = await page.evaluate(() => Date.now());
    asked = 0;
    // In small steps, so that requests and timers do not fall together.
    for (let step = 0; step < 600; step += 1) await page.clock.runFor(100);
    const passed = (await page.evaluate(() => Date.now()) - started) / 1_000;
    // A stream that falls silent and one that is slow each cause a request of their own.
    assert.ok(asked > 1 && asked <= passed / seconds + 4, `${asked} in ${passed} seconds`);
    await page.unrouteAll();
    while (await page.getByText("The connection is interrupted").isVisible()) await page.clock.runFor(1_000);
    await page.context().close();
  }
});

test("a page outlives a kill and a restart of the service", async () => {
  const mortal = await Service.start();
  try {
    const opened = await mortal.open();
    const page = await visit(browser, "android", opened.requestUrl);
    await mortal.killAndRestart();
    await mortal.answer(opened, "approve");
    await heading(page, "You are verified");
    await page.context().close();
  } finally {
    await mortal.stop();
  }
});

test("afterwards the person is taken to the redirect_url, and the way back does not lead here", async () => {
  const shop = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<title>shop</title><h1>Shop</h1>"));
  await once(shop.listen(0, "127.0.0.1"), "listening");
  try {
    const back = `http://127.0.0.1:${shop.address().port}/back?order=7`;
    const opened = await service.open({ redirect_url: back });
    const page = await visit(browser, "android", `http://127.0.0.1:${shop.address().port}/`, { mayLeave: true });
    await page.goto(opened.requestUrl);
    await service.answer(opened, "approve");
    await page.getByRole("link", { name: "Continue to 127.0.0.1" }).waitFor(SOON);
    await page.waitForURL(back, SOON);
    await page.goBack();
    assert.equal(new URL(page.url()).pathname, "/");
    await page.context().close();
  } finally {
    shop.close();
    shop.closeAllConnections();
  }
});

test("who was verified may stay, and who was not is taken nowhere", async () => {
  const [verified, declined] = await Promise.all([1, 2].map(() => service.open({ redirect_url: "http://127.0.0.1:9/back" })));
  await Promise.all([service.answer(verified, "approve"), service.answer(declined, "decline")]);
  const page = await visit(browser, "android", "about:blank", { mayLeave: true });
  await page.clock.install();
  await page.goto(verified.requestUrl);
  await page.getByRole("button", { name: "Stay here" }).click();
  await page.clock.runFor(60_000);
  assert.equal(page.url(), verified.requestUrl);
  assert.equal(await page.locator("#taken").count(), 0);
  await page.goto(declined.requestUrl);
  await page.clock.runFor(60_000);
  assert.equal(page.url(), declined.requestUrl);
  assert.ok(await page.locator(".notice.quiet").isVisible(), "a choice is no error");
});

test("the language menu gives the focus back", async () => {
  const page = await visit(browser, "desktop", (await service.open()).requestUrl);
  await page.locator(".languages summary").click();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Escape");
  assert.ok(await page.locator(".languages summary").evaluate((summary) => summary === document.activeElement && !summary.parentElement.open));
});

test("the last minute is told once to those who listen", async () => {
  const page = await visit(browser, "android", "about:blank");
  await page.clock.install();
  // The service's clock keeps running.
  for (const path of ["**/events", "**/status"]) await page.route(path, (route) => route.abort());
  await page.goto((await service.open()).requestUrl);
  await page.clock.runFor(13 * 60_000);
  assert.equal(await page.locator("#ending").textContent(), "");
  await page.clock.runFor(70_000);
  assert.match(await page.locator("#ending").textContent(), /1:00/);
});

test("who chooses another language keeps it when the page turns", async () => {
  const opened = await service.open();
  const page = await visit(browser, "android", opened.requestUrl);
  await page.locator(".languages summary").click();
  await page.getByRole("link", { name: "தமிழ்" }).click();
  await heading(page, "உங்கள் அடையாளத்தை உறுதிப்படுத்துங்கள்");
  await service.answer(opened, "approve");
  await heading(page, "உங்கள் அடையாளம் சரிபார்க்கப்பட்டது");
  assert.deepEqual(page.troubles, []);
});

test("a short reference tells the whole id when it is pressed, with and without JavaScript", async () => {
  const opened = await service.open();
  for (const javaScriptEnabled of [true, false]) {
    const page = await visit(browser, "desktop", opened.requestUrl, { javaScriptEnabled });
    const whole = page.locator(".reference").getByText(opened.txnId);
    assert.ok((await page.locator(".reference summary").innerText()).endsWith(opened.txnId.split("-").at(-1)));
    assert.equal(await whole.isVisible(), false);
    await page.locator(".reference summary").click();
    assert.ok(await whole.isVisible());
    await page.context().close();
  }
});

test("a page waits for an answer once the app was opened, and until then only says when it expires", async () => {
  const opened = await service.open();
  const page = await visit(browser, "desktop", opened.requestUrl);
  await page.getByText(/^Expires in 1[45]:\d\d$/).waitFor(SOON);
  assert.equal(await page.locator(".pulse").isVisible(), false);
  await page.locator("a[data-opens]").first().evaluate((link) => {
    link.addEventListener("click", (event) => event.preventDefault());
    link.click();
  });
  await page.getByText("Waiting for your answer").waitFor(SOON);
  assert.ok(await page.locator("#waits .pulse").isVisible());
});

test("a page that was left for the app says so, and helps when the app does not come", async () => {
  const opened = await service.open();
  const page = await visit(browser, "android", opened.requestUrl);
  await page.locator("a.main").evaluate((link) => {
    link.addEventListener("click", (event) => event.preventDefault());
    link.click();
  });
  await heading(page, "Continue in the identity app");
  await page.getByRole("heading", { name: "If the app opens but refuses" }).waitFor(SOON);
  await service.answer(opened, "approve");
  await heading(page, "You are verified");
});
