// The pages in languages that are not English: direction, width, and codes that a scanner still reads.

import assert from "node:assert/strict";

import { open, scan, visit } from "./browser.mjs";
import { layoutProblems, problemsInBothSchemes } from "./inspect.mjs";
import { press } from "./keyboard.mjs";
import { LANGUAGES as WRITTEN } from "./states.mjs";
import { browser, service, test } from "./suite.mjs";

const IN_A_WEEK = new Date(Date.now() + 7 * 86_400_000).toISOString();
const NAME = "Open day 2026 (Hall B)!";
const LANGUAGES = [
  { language: "hindi", lang: "hi", dir: "ltr" },
  { language: "urdu", lang: "ur", dir: "rtl" },
];

const event = (language) => service.call("events",
  { name: NAME, language, claims: ["name", "age_above_18", "regional_address", "masked_mobile"], max_guests: 250, expires_at: IN_A_WEEK });

async function print({ event_id }, file) {
  const url = `${service.base}/api/v1/nationalid-ovse/events/${event_id}/${file}`;
  const answer = await fetch(url, { headers: service.headers });
  assert.equal(answer.status, 200);
  return answer.text();
}

// Returns an element's horizontal position, from 0 at the left of the screen to 1 at its right.
async function across(page, selector) {
  const { x, width } = await page.locator(selector).first().boundingBox();
  return (x + width / 2) / page.viewportSize().width;
}

for (const { language, lang, dir } of LANGUAGES) {
  test(`codes on pages and posters in ${language} are read by a scanner`, async () => {
    const [made, opened] = await Promise.all([event(language), service.open({ language })]);
    const svg = await print(made, "poster.svg");
    assert.match(svg, new RegExp(`xml:lang="${lang}"[^>]*direction="${dir}"`));
    const html = { contentType: "text/html; charset=utf-8" };
    for (const [url, selector, code, kept] of [
      [opened.requestUrl, "#page-code", opened.requestUrl],
      [`${made.qr_url}/kiosk`, ".code", made.qr_url],
      [made.qr_url, ".code", made.qr_url, { ...html, body: await print(made, "poster") }],
      [made.qr_url, "svg", made.qr_url, { ...html, body: `<!doctype html><title>poster</title>${svg}` }],
    ]) {
      const page = await visit(browser, "desktop", url, { kept });
      assert.equal(await scan(page, selector), code, `${url} ${selector}`);
      await page.context().close();
    }
  });
}

test("a page in Urdu is the mirror of one in Hindi", async () => {
  for (const [language, mirrored] of [["hindi", false], ["urdu", true]]) {
    const [made, opened] = await Promise.all([event(language), service.open({ language })]);
    const seen = (at) => mirrored ? 1 - at : at;
    const verify = await visit(browser, "desktop", opened.requestUrl);
    assert.ok(seen(await across(verify, ".brand")) < 0.4 && seen(await across(verify, ".languages")) > 0.6, language);
    assert.ok(seen(await across(verify, ".ask h1")) < seen(await across(verify, "#page-code")), language);
    await verify.context().close();

    const svg = await visit(browser, "desktop", made.qr_url,
      { kept: { contentType: "text/html; charset=utf-8", body: `<!doctype html><title>poster</title>${await print(made, "poster.svg")}` } });
    const steps = await svg.locator("circle").evaluateAll((circles) => circles.map((circle) => circle.getBoundingClientRect().x));
    assert.deepEqual(steps, [...steps].sort((a, b) => mirrored ? b - a : a - b), language);
    // Every line of text stays on the sheet, and text in another script keeps its own order.
    const lines = await svg.locator("text").evaluateAll((all) => all.map((text) => {
      const { left, right } = text.getBoundingClientRect(), sheet = text.ownerSVGElement.getBoundingClientRect();
      return { text: text.textContent, fits: left >= sheet.left && right <= sheet.right };
    }));
    assert.deepEqual(lines.filter((line) => !line.fits), []);
    const name = svg.locator("text", { hasText: "Hall" });
    assert.equal(await name.evaluate((text) => getComputedStyle(text).direction), "ltr");
    await svg.context().close();
  }
});

test("an end is told in words of the language, by the clock of the event, the time in its own order", async () => {
  for (const [language, month] of [["hindi", "जनवरी"], ["urdu", "جنوری"]]) {
    const tomorrow = new Date(Date.now() + 86_400_000);
    const expires_at = `${tomorrow.getUTCFullYear()}-12-31T18:30:00Z`;
    const made = await service.call("events", { name: NAME, language, claims: ["name"], max_guests: 1, expires_at });
    const page = await visit(browser, "android", made.qr_url, { timezoneId: "America/New_York", locale: "en" });
    const told = await page.locator("time").evaluate((time) => ({ text: time.textContent, isolated: getComputedStyle(time).unicodeBidi }));
    assert.match(told.text, new RegExp(`^1 ${month} \\d{4}[,،] \\u2066?00:00 IST\\u2069?$`, "u"));
    assert.equal(told.isolated, "isolate");
    await page.context().close();
  }
});

test("the way on names its site, with a space on either side that needs one", async () => {
  for (const [language, action, words] of [
    ["english", "approve", "Continue to shop.example"], ["hindi", "approve", "shop.example पर जाएँ"], ["urdu", "approve", "shop.example پر جائیں"],
    ["english", "decline", "Back to shop.example"], ["hindi", "decline", "shop.example पर वापस जाएँ"], ["urdu", "decline", "shop.example پر واپس جائیں"],
  ]) {
    const opened = await service.open({ language, redirect_url: "https://shop.example/a" });
    await service.answer(opened, action);
    const page = await visit(browser, "android", opened.requestUrl, { still: true });
    assert.equal(await page.locator("a.main").innerText(), words);
    await page.context().close();
  }
});

test("a refusal without a transaction or an event speaks the browser's language", async () => {
  for (const [locale, heading] of [["ur-PK", "یہ لنک کام نہیں کرتا"], ["hi-IN", "यह लिंक काम नहीं करता"], ["de-DE", "This link does not work"]]) {
    const page = await visit(browser, "android", `${service.base}/v/none`, { locale });
    assert.equal(await page.locator("h1").textContent(), heading);
    await page.context().close();
  }
});

test("the choice of languages opens over the page by the keyboard, in the window, and leads to each of them", async () => {
  const { requestUrl } = await service.open();
  for (const [device, size] of [["desktop", { width: 320, height: 640 }], ["android"], ["desktop"]]) {
    const page = await open(browser, device, { still: true, judged: true });
    if (size) await page.setViewportSize(size);
    for (const lang of ["en", "ur"]) {
      await page.goto(`${requestUrl}?lang=${lang}`);
      const choice = page.locator(".languages");
      await press(page, choice.locator("summary"), "Enter");
      const links = await choice.getByRole("link").evaluateAll((all) => all.map((link) => {
        const { left, right, top, bottom, height } = link.getBoundingClientRect();
        return { name: link.textContent, fits: left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight && height >= 44 };
      }));
      assert.equal(links.length, WRITTEN.length, device);
      assert.deepEqual(links.filter(({ fits }) => !fits), [], `${lang}, ${device}`);
      assert.deepEqual(await problemsInBothSchemes(page, ".languages"), [], `${lang}, ${device}`);
      await page.keyboard.press("Escape");
      assert.equal(await choice.evaluate((element) => element.open), false);
      await press(page, choice.locator("summary"), "Enter");
      await choice.getByRole("link", { name: "தமிழ்" }).click();
      await page.waitForURL("**?lang=ta");
      assert.equal(await page.locator("html").getAttribute("lang"), "ta");
    }
    await page.context().close();
  }
});

test("a page in a language that has no texts is in English and says so", async () => {
  const words = "This page is not available in Santali (ᱥᱟᱱᱛᱟᱲᱤ); it is shown in English.";
  const [made, opened] = await Promise.all([event(18), service.open({ language: 18 })]);
  for (const url of [opened.requestUrl, made.qr_url, `${made.qr_url}/kiosk`]) {
    const page = await visit(browser, "android", url, { judged: true });
    assert.equal(await page.locator(".unwritten").innerText(), words);
    assert.deepEqual([...await problemsInBothSchemes(page), ...await layoutProblems(page)], [], url);
    await page.locator(".languages summary").click();
    await page.getByRole("link", { name: "हिन्दी" }).click();
    await page.locator("html[lang=hi]").waitFor();
    assert.equal(await page.locator(".unwritten").count(), 0);
    await page.context().close();
  }
});
