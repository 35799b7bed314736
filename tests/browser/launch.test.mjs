// The verify page opens the identity app by itself (specification, OVSE rule 1): on a phone, once in a tab.

import assert from "node:assert/strict";

import { open } from "./browser.mjs";
import { IDENTITY_APP } from "./states.mjs";
import { browser, service, shared, test } from "./suite.mjs";

// Returns the number of times that it has left the browser, once all automatic steps of its load are over.
async function launched(page) {
  await page.waitForLoadState("load");
  // The page's messages arrive in order.
  await page.evaluate(() => globalThis.launches(""));
  page.launched.splice(page.launched.indexOf(""), 1);
  return page.launched.length;
}

for (const [device, scheme] of [["android", "intent:"], ["iphone", "idauthority:"]]) {
  test(`on an ${device} the first load opens the app with what the button opens, and stays`, async () => {
    const { requestUrl } = await service.open();
    const page = await open(browser, device);
    await page.goto(requestUrl);
    assert.equal(await launched(page), 1);
    assert.ok(page.launched[0].startsWith(scheme), page.launched[0].slice(0, 40));
    assert.equal(page.launched[0], await page.locator("a.main").getAttribute("href"));
    await page.getByRole("heading", { level: 1, name: "Confirm who you are" }).waitFor();
    assert.ok(await page.locator("a.main").isVisible(), "the button is always there");
    await page.context().close();
  });
}

test("an iPad, which says that it is a Mac, gets the button that opens the app", async () => {
  const { requestUrl } = await service.open();
  const page = await open(browser, "ipad");
  await page.goto(requestUrl);
  const button = page.locator("a.main[data-opens]");
  await button.waitFor();
  assert.match(await button.getAttribute("href"), /^idauthority:/);
  assert.equal(await launched(page), 1, "and opens it by itself, once");
  await page.reload();
  assert.equal(await launched(page), 1);
  const mac = await open(browser, "ipad", { hasTouch: false });
  await mac.goto(requestUrl);
  await mac.locator("#page-code").waitFor();
  assert.equal(await mac.locator("a.main[data-opens]").count(), 0, "a Mac has a code for a phone");
  await mac.context().close();
  await page.context().close();
});

test("a page that is loaded again, come back to or shown in another language leaves it to the button", async () => {
  const { requestUrl } = await service.open();
  const page = await open(browser, "android");
  await page.goto(requestUrl);
  assert.equal(await launched(page), 1);
  await page.reload();
  assert.equal(await launched(page), 1, "loaded again");
  await page.goto(`${service.base}/v/none`);
  await page.goBack();
  assert.equal(await launched(page), 1, "come back to");
  await page.goto(requestUrl);
  assert.equal(await launched(page), 1, "opened again");
  await page.locator(".languages summary").click();
  await page.getByRole("link", { name: "தமிழ்" }).click();
  await page.getByRole("heading", { level: 1, name: "உங்கள் அடையாளத்தை உறுதிப்படுத்துங்கள்" }).waitFor();
  assert.equal(await launched(page), 1, "another language");
  await page.locator("a.main").click();
  await page.waitForFunction(() => document.querySelector("#help").open);
  assert.equal(page.launched.length, 2, "and the button still opens it");
});

test("a phone on which the app did not open is led to its own store, and a desktop to both", async () => {
  const named = await shared("named", IDENTITY_APP);
  const { requestUrl } = await named.open();
  for (const [device, store] of [["android", "https://android.example/app"], ["iphone", "https://ios.example/app"]]) {
    const page = await open(browser, device);
    await page.goto(`${requestUrl}?help=1`);
    const offer = page.locator("#install");
    assert.equal(await offer.isVisible(), false, "nothing was tried");
    await page.getByRole("link", { name: "Open the identity app National Identity App" }).click();
    assert.equal(await offer.innerText(), "App didn’t open? Install it");
    assert.equal(await offer.getByRole("link").getAttribute("href"), store);
    assert.ok(await page.locator("a.main img").evaluate((icon) => icon.complete && icon.naturalWidth > 0), "the icon is shown");
    await page.context().close();
  }
  const page = await open(browser, "desktop");
  await page.goto(requestUrl);
  await page.locator("#help > summary").click();
  assert.deepEqual(await page.getByRole("link", { name: /^Install it/ }).allInnerTexts(), ["Install it (Android)", "Install it (iPhone, iPad)"]);
  await page.context().close();
});

test("the page that is shown because the app did not open does not try again", async () => {
  const { requestUrl } = await service.open();
  const page = await open(browser, "android");
  await page.goto(`${requestUrl}?help=1`);
  assert.equal(await launched(page), 0);
});

test("each tab and each transaction has one try", async () => {
  const [first, second] = await Promise.all([service.open(), service.open()]);
  const page = await open(browser, "android");
  await page.goto(first.requestUrl);
  await page.goto(second.requestUrl);
  assert.equal(await launched(page), 2);
  const other = await open(browser, "android", { context: page.context() });
  await other.goto(first.requestUrl);
  assert.equal(await launched(other), 1);
});

test("a desktop and a finished transaction open nothing", async () => {
  const opened = await service.open();
  const page = await open(browser, "desktop");
  await page.goto(opened.requestUrl);
  assert.equal(await launched(page), 0);
  await service.answer(opened, "approve");
  const phone = await open(browser, "android");
  await phone.goto(opened.requestUrl);
  await phone.getByRole("heading", { level: 1, name: "You are verified" }).waitFor();
  assert.deepEqual(phone.launched, []);
});
