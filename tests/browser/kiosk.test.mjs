// The screen at the entrance of an event: upright, in several languages, closed.

import assert from "node:assert/strict";

import { open, scan, visit } from "./browser.mjs";
import { layoutProblems, problemsInBothSchemes } from "./inspect.mjs";
import { IDENTITY_APP, brand, event } from "./states.mjs";
import { browser, isLong, service, shared, test } from "./suite.mjs";

const SOON = { timeout: 20_000 };
const UPRIGHT = [[720, 1_280], [1_080, 1_920]];
const LONG = {
  english: "Annual general meeting of the housing cooperative with elections and a report of the auditors ",
  tamil: "வீட்டுவசதி கூட்டுறவுச் சங்கத்தின் ஆண்டுப் பொதுக்கூட்டமும் நிர்வாகிகள் தேர்தலும் ",
  malayalam: "ഭവന സഹകരണ സംഘത്തിന്റെ വാർഷിക പൊതുയോഗവും ഭാരവാഹികളുടെ തിരഞ്ഞെടുപ്പും ",
  urdu: "ہاؤسنگ سوسائٹی کا سالانہ اجلاسِ عام، انتخابات اور آڈیٹروں کی رپورٹ ",
};
const longName = (language) => [...LONG[language].repeat(4)].slice(0, 199).join("").trim();

const fits = (page) => page.evaluate(() => document.scrollingElement.scrollHeight <= innerHeight && document.scrollingElement.scrollWidth <= innerWidth);
const sizes = (page, ...parts) => page.evaluate((parts) => parts.map((part) => parseFloat(getComputedStyle(document.querySelector(part)).fontSize)), parts);
const box = (page, part) => page.locator(part).first().boundingBox();

test("an upright kiosk is read from afar: the call is larger than the steps, and the code is in the middle", async () => {
  const made = await event(service, { organiser: "Meridian Bank", purpose: "Building security needs to know who enters." });
  const page = await open(browser, "desktop");
  for (const [width, height] of UPRIGHT) {
    await page.setViewportSize({ width, height });
    await page.goto(`${made.kiosk_url}&places=1`);
    const [name, call, steps, organiser] = (await sizes(page, ".name", ".call", ".steps", ".organiser")).map((size) => size / width * 1_080);
    assert.ok(call >= 58 && steps >= 37 && organiser >= 25 && name > call, JSON.stringify({ name, call, steps, organiser }));
    const code = await box(page, ".code");
    const middle = (code.y + code.height / 2) / height;
    assert.ok(middle > 0.4 && middle < 0.54, `the middle of the code is at ${middle}`);
    assert.ok(code.width >= 0.5 * width && Math.abs(code.width - code.height) < 1, JSON.stringify(code));
    const tops = [];
    for (const part of [".name", ".organiser", ".call", ".code", ".steps", ".status"]) tops.push((await box(page, part)).y);
    assert.deepEqual(tops, [...tops].sort((a, b) => a - b), "in this order");
    assert.ok(await fits(page));
    assert.deepEqual(await layoutProblems(page), []);
  }
});

test("an upright kiosk fits with a long name, a logo, a place, a greeting and no network, and none of them moves anything", async () => {
  const branded = await shared("named", IDENTITY_APP);
  await brand(branded);
  for (const language of isLong ? ["english", "tamil", "malayalam", "urdu"] : ["tamil", "urdu"]) {
    const made = await event(branded, { language, name: longName(language), organiser: LONG[language].slice(0, 60), purpose: longName(language),
      starts_at: new Date(Date.now() + 86_400_000).toISOString(), place: "Innovation Hub, 5th floor, Outer Ring Road, Bengaluru" });
    const page = await open(browser, "desktop");
    await page.route("**/kiosk/events**", (route) => route.abort());
    for (const [width, height] of [...UPRIGHT, [768, 1_024], [1_366, 768], [1_920, 1_080], [3_840, 2_160]]) {
      const shape = `${language} on ${width} by ${height}`;
      await page.setViewportSize({ width, height });
      await page.goto(`${made.kiosk_url}&places=1`);
      const places = async () => JSON.stringify(await Promise.all([".name", ".call", ".code", ".steps", ".status"].map((part) => box(page, part))));
      const before = await places();
      assert.ok(await fits(page), `${shape} fits`);
      assert.equal(await scan(page, ".code"), made.qr_url, shape);
      await page.evaluate(() => {
        const registered = document.getElementById("registered");
        registered.textContent = registered.dataset.words;
        dispatchEvent(new Event("offline"));
      });
      await page.locator("#trouble b").waitFor(SOON);
      assert.equal(await places(), before, shape);
      assert.ok(await fits(page), `${shape} fits with its notices`);
      assert.equal(await scan(page, ".code"), made.qr_url, shape);
    }
    await page.context().close();
  }
});

test("a kiosk that is closed says what to do, in large letters", async () => {
  for (const language of ["english", "urdu"]) {
    const made = await event(service, { language, name: longName(language) });
    await service.patch(made, { is_active: false });
    const page = await open(browser, "desktop", { judged: true });
    for (const [width, height] of [...UPRIGHT, [1_366, 768], [3_840, 2_160]]) {
      await page.setViewportSize({ width, height });
      await page.goto(made.kiosk_url);
      if (language === "english") await page.getByText("Please ask the people at the entrance.").waitFor(SOON);
      const [status, ask] = await sizes(page, ".status", ".ask");
      const unit = Math.min(width, height) / 100;
      assert.ok(ask >= 2.4 * unit && status >= 3 * unit, `${status} and ${ask} pixels on ${width} by ${height}`);
      assert.ok(await page.locator(".mark").isVisible() && await fits(page));
      assert.deepEqual(await layoutProblems(page), []);
    }
    assert.deepEqual(await problemsInBothSchemes(page), []);
    await page.context().close();
  }
});

test("a kiosk alternates the languages of its address in one place, each in its own direction, and hides the others", async () => {
  const made = await event(service, { language: "tamil" });
  const address = `${made.kiosk_url}&places=1&languages=urdu,english`;
  const shown = (page) => page.evaluate(() => [".call > *", ".steps", "#words > *"].map((part) => [...document.querySelectorAll(part)]
    .filter((element) => element.checkVisibility({ visibilityProperty: true })).map(({ lang, dir }) => `${lang} ${dir}`).join()));
  for (const [width, height] of [[1_366, 768], [1_080, 1_920]]) {
    const page = await open(browser, "desktop", { hurried: true, judged: true, reducedMotion: "reduce", viewport: { width, height } });
    await page.goto(address);
    assert.equal(await page.locator("html").getAttribute("lang"), "ur");
    const places = () => page.evaluate(() => [".name", ".call", ".code", ".status"].map((part) => JSON.stringify(document.querySelector(part).getBoundingClientRect())));
    const before = await places();
    for (const turn of ["ur rtl", "en ltr", "ur rtl"]) {
      // The clock runs on: while a slow machine checks a page, further turns may pass.
      let seen = await shown(page);
      for (let second = 0; second < 20 && seen.some((part) => part !== turn); second += 1) {
        await page.clock.fastForward(1_000);
        seen = await shown(page);
      }
      assert.deepEqual(seen, [turn, turn, turn]);
      assert.deepEqual(await places(), before, `nothing moves on ${width} by ${height}`);
      assert.deepEqual([...await problemsInBothSchemes(page), ...await layoutProblems(page)], []);
    }
    await service.patch(made, { is_active: false });
    await page.getByText("Registration has closed").waitFor({ state: "attached", ...SOON });
    await service.patch(made, { is_active: true });
    await page.getByText("Open for guests").waitFor({ state: "attached", ...SOON });
    assert.equal(await page.evaluate(() => document.getAnimations().length), 0);
    await page.context().close();
  }
  const plain = await visit(browser, "desktop", address, { javaScriptEnabled: false });
  for (const [part, words] of [[".call", 1], [".steps", 1], ["#words > *", 1]]) assert.equal(await plain.locator(`${part}:visible`).count(), words, part);
});
