// What is on a page: codes that a scanner reads, links for each device, and nothing that keeps
// anybody out.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";

import { accessibilityProblems, devices, launch, scan, visit } from "./browser.mjs";
import { Service } from "./service.mjs";

let service, browser;
before(async () => { [service, browser] = await Promise.all([Service.start(), launch()]); });
after(() => Promise.all([service?.stop(), browser?.close()]));

// The answer to one request too many; kept, because the next one may be in time again.
async function refusal(url) {
  for (;;) {
    const answer = await fetch(url);
    if (answer.status === 429) return { status: 429, headers: Object.fromEntries(answer.headers), body: await answer.text() };
  }
}

const jwtBody = (jwt) => JSON.parse(Buffer.from(jwt.split(".")[1], "base64url"));

test("the code on a desktop's page is its requestUrl, in both colour schemes", async () => {
  const { requestUrl } = await service.open();
  for (const colorScheme of ["light", "dark"]) {
    const page = await visit(browser, "desktop", requestUrl, { colorScheme });
    assert.equal(await scan(page, "#page-code"), requestUrl);
    await page.context().close();
  }
});

test("the code for the app's scanner holds the transaction's intent as digits", async () => {
  const { requestUrl, txnId } = await service.open();
  const page = await visit(browser, "desktop", requestUrl);
  await page.evaluate(() => document.querySelectorAll("main details").forEach((details) => { details.open = true; }));
  const digits = /\/getIntent\?value=(\d+)$/.exec(await scan(page, "#app-code"))[1];
  const hex = BigInt(digits).toString(16);
  const plain = gunzipSync(Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex"));
  assert.equal(plain.at(-1), 0xff);
  assert.equal(jwtBody(plain.subarray(0, -1).toString("latin1")).txn, txnId);
  await page.context().close();
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
    // The languages come before it, for whoever cannot read this one.
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

test("no state has an accessibility violation, a broken policy or a sideways scroll, on any device in either scheme", async () => {
  const everything = "name local_name photo dob gender age_above_18 age_above_50 age_above_60 age_above_75 nri_status care_of \
    enrolment_number enrolment_date credential_date address regional_address building locality street landmark vtc sub_district \
    district state pincode po_name mobile masked_mobile email masked_email".split(/\s+/);
  const hasty = await Service.start({ SAKSHI__OVSE__WINDOW_S: "1" });
  const limited = await Service.start({ SAKSHI__LIMITS__PAGES_PER_SECOND_PER_ADDRESS: "1" });
  try {
    const [waiting, full, verified, declined, expired] = await Promise.all([
      service.open(), service.open({ claims: everything }), service.open({ redirect_url: "https://shop.example/a" }), service.open(), hasty.open(),
    ]);
    await Promise.all([service.answer(verified, "approve"), service.answer(declined, "decline")]);
    while ((await fetch(expired.requestUrl)).status !== 410);
    const busy = `${limited.base}/v/none`;
    const states = [
      [200, "Confirm who you are", waiting.requestUrl], [200, "Confirm who you are", full.requestUrl],
      [200, "Confirm who you are", `${waiting.requestUrl}?help=1`], [200, "You are verified", verified.requestUrl],
      [200, "You declined", declined.requestUrl], [410, "This request has expired", expired.requestUrl],
      [404, "This link does not work", `${service.base}/v/none`], [429, "Too many tries", busy],
    ];
    for (const [status, heading, url] of states) {
      const kept = status === 429 ? await refusal(url) : undefined;
      for (const device of ["android", "desktop", "narrow"]) {
        for (const colorScheme of ["light", "dark"]) {
          const page = await visit(browser, device, url, { colorScheme, kept, still: true });
          const state = `${heading} on ${device}, ${colorScheme}`;
          assert.equal(page.answer.status(), status, state);
          assert.equal(await page.locator("h1").textContent(), heading, state);
          await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
          assert.deepEqual(await accessibilityProblems(page), [], state);
          assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${state} scrolls sideways`);
          assert.deepEqual(page.troubles, [], state);
          await page.context().close();
        }
      }
    }
  } finally {
    await Promise.all([hasty.stop(), limited.stop()]);
  }
});

test("the accessibility check finds what is wrong", async () => {
  const page = await visit(browser, "desktop", `${service.base}/v/none`);
  await page.evaluate(() => { document.querySelector("h1").style.color = "#eee"; document.documentElement.lang = ""; });
  const found = (await accessibilityProblems(page)).join("\n");
  assert.match(found, /color-contrast/);
  assert.match(found, /html-has-lang/);
  await page.context().close();
});
