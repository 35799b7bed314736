// The content of pages: codes that a scanner reads, links for each device, and nothing inaccessible.

import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";

import { devices, open, scan, visit } from "./browser.mjs";
import { accessibilityProblems, forcedColourProblems, foreignWords, layoutProblems, narrowProblems } from "./inspect.mjs";
import { event } from "./states.mjs";
import { browser, service, test } from "./suite.mjs";

const jwtBody = (jwt) => JSON.parse(Buffer.from(jwt.split(".")[1], "base64url"));

test("the code for the app's scanner holds the transaction's intent as digits", async () => {
  const { requestUrl, txnId } = await service.open();
  const page = await visit(browser, "desktop", requestUrl);
  await page.evaluate(() => document.querySelectorAll("main details").forEach((details) => { details.open = true; }));
  const digits = /\/getIntent\?value=(\d+)$/.exec(await scan(page, "#app-code"))[1];
  const hex = BigInt(digits).toString(16);
  const plain = gunzipSync(Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex"));
  assert.equal(plain.at(-1), 0xff);
  assert.equal(jwtBody(plain.subarray(0, -1).toString("latin1")).txn, txnId);
});

test("a phone gets one main action, a link that needs no script, and it comes first", async () => {
  const { requestUrl, txnId } = await service.open();
  for (const [device, scheme, mark] of [["android", "intent:", "S.request="], ["iphone", "idauthority:", "req="]]) {
    const page = await visit(browser, device, requestUrl);
    const main = page.locator("a.main");
    assert.equal(await main.count(), 1);
    const href = await main.getAttribute("href");
    assert.ok(href.startsWith(scheme), href.slice(0, 40));
    assert.equal(jwtBody(href.split(mark)[1].split(";")[0]).txn, txnId);
    // The languages come before it, for readers who cannot read this one.
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => ({ main: document.activeElement.matches(".main"), outline: getComputedStyle(document.activeElement).outlineStyle }));
    assert.deepEqual(focused, { main: true, outline: "solid" });
    const box = await main.boundingBox();
    assert.ok(box.height >= 44 && box.y + box.height < devices[device].viewport.height, "the button is in view without scrolling");
    await page.context().close();
  }
});

test("the identity app that follows a scanned requestUrl gets the intent", async () => {
  const { requestUrl, txnId } = await service.open();
  const answer = await fetch(requestUrl, { headers: { Accept: "application/jwt" } });
  assert.equal(answer.headers.get("content-type"), "application/jwt");
  assert.equal(jwtBody(await answer.text()).txn, txnId);
});

test("what pages are asked for is missed when it is missing", async () => {
  const page = await visit(browser, "desktop", `${service.base}/v/none`, { locale: "hi", judged: true });
  await page.evaluate(() => { document.querySelector("h1").style.color = "#eee"; document.documentElement.lang = ""; });
  const found = (await accessibilityProblems(page)).join("\n");
  assert.match(found, /color-contrast/);
  assert.match(found, /html-has-lang/);
  assert.deepEqual(await layoutProblems(page), []);
  assert.deepEqual(await foreignWords(page, "Devanagari", []), []);
  await page.evaluate(() => {
    document.querySelector("h1").style.cssText = "height: 1em; overflow: hidden";
    document.querySelector(".brand").style.cssText = "position: absolute; inset: 0 0 auto; height: 5rem";
    document.querySelector(".card").style.minWidth = "200vw";
    document.querySelector("h1").setAttribute("aria-label", "Sorry");
  });
  const lies = (await layoutProblems(page)).join("\n");
  for (const trouble of [/cut off: <h1/, /covers/, /scrolls sideways/]) assert.match(lies, trouble);
  assert.deepEqual(await foreignWords(page, "Devanagari", []), ["Sorry"]);
  await page.goto(`${service.base}/v/none?lang=en`);
  assert.deepEqual(await forcedColourProblems(page), []);
  await page.evaluate(() => {
    document.querySelector(".languages").open = true;
    document.querySelector(".notice p").style.cssText = "white-space: nowrap; font-size: 5px; color: #666";
    document.querySelector(".card").insertAdjacentHTML("beforeend", "<button>Go</button>");
    document.querySelector(".card button").style.border = "0";
    document.querySelector(".languages a:not([aria-current])").style.outline = "1px solid";
  });
  assert.match((await accessibilityProblems(page, {}, "main")).join("\n"), /color-contrast-enhanced/);
  const forced = (await forcedColourProblems(page)).join("\n");
  for (const trouble of [/<button class=""> Go/, /<a class=""> অসমীয়া/]) assert.match(forced, trouble);
  assert.match((await narrowProblems(page)).join("\n"), /with text spacing, 320 by 256: spills over: <p/);
});

test("no page can be put into a frame", async () => {
  const [opened, made] = await Promise.all([service.open(), event(service)]);
  const page = await open(browser, "desktop", { mayLeave: true });
  for (const url of [opened.requestUrl, made.qr_url, `${made.qr_url}/kiosk`, `${service.base}/v/none`, `${service.base}/portal/sign-in`, `${service.base}/sandbox/app`, `${service.base}/sandbox/flows`]) {
    const refused = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
    await page.setContent(`<iframe src="${url}"></iframe>`);
    await refused;
    await page.waitForFunction(() => document.querySelector("iframe").contentDocument === null);
    assert.match(page.frames()[1].url(), /^chrome-error:/, url);
  }
});
