// Codes on screens and on paper: read by a scanner, dark on white in either scheme, large enough in print.

import assert from "node:assert/strict";

import { greys, open, scan, scanPrint } from "./browser.mjs";
import { signedIn } from "./portal_session.mjs";
import { event, poster } from "./states.mjs";
import { browser, isLong, service, test } from "./suite.mjs";

const MM = 96 / 25.4;
const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 800 };

for (const [colorScheme, sizes] of isLong ? [["light", [PHONE, DESKTOP]], ["dark", [PHONE, DESKTOP]]] : [["light", [DESKTOP]], ["dark", [PHONE]]]) {
  test(`every code is read from a screen, dark on white within its quiet zone, in ${colorScheme}`, async () => {
    const page = await signedIn(service, "desktop", { colorScheme, deviceScaleFactor: 2 });
    const [waiting, tried, made] = await Promise.all([service.open(), service.open({ channel: "qr" }), event(service)]);
    const shown = [
      [waiting.requestUrl, "#page-code", waiting.requestUrl],
      [`${made.qr_url}/kiosk`, ".code", made.qr_url],
      [`${service.base}/portal/transactions/${tried.txnId}`, "#page-code", tried.requestUrl],
      [`${service.base}/portal/events/${made.event_id}`, ".code", made.qr_url],
      [`${service.base}/portal/events/${made.event_id}/poster`, ".code", made.qr_url],
    ];
    for (const [url, selector, value] of shown) {
      await page.goto(url);
      for (const size of sizes) {
        await page.setViewportSize(size);
        const state = `${new URL(url).pathname} ${size.width} wide`;
        assert.equal(await scan(page, selector), value, state);
        const { darkest, lightest, quiet } = await greys(page, selector);
        assert.ok(darkest < 40 && lightest === 255 && quiet === 255, `${state}: ${JSON.stringify({ darkest, lightest, quiet })}`);
      }
    }
    await page.context().close();
  });
}

for (const colorScheme of isLong ? ["light", "dark"] : ["dark"]) {
  test(`a printed page has its code, 30 mm wide or more, and nothing to press, where the screen is ${colorScheme}`, async () => {
    const page = await open(browser, "desktop", { colorScheme });
    const [opened, made] = await Promise.all([service.open({ language: "urdu" }), event(service, { language: "tamil" })]);
    for (const [name, show, value] of [
      ["verify page", () => page.goto(opened.requestUrl), opened.requestUrl],
      ["kiosk", () => page.goto(`${made.qr_url}/kiosk`), made.qr_url],
      ["poster", () => poster(page, service, made), made.qr_url],
    ]) {
      await show();
      await page.emulateMedia({ media: "print" });
      const pressed = await page.locator("nav, a, button, summary, input").evaluateAll((all) => all.filter((element) => element.checkVisibility()).map((element) => element.textContent));
      assert.deepEqual(pressed, [], name);
      assert.equal(await page.locator(".sandbox:visible").count(), 0, `${name}: no word of the sandbox`);
      // The sheet of A4 without Chromium's own margins of 10 mm; it shrinks nothing that fits.
      await page.setViewportSize({ width: Math.floor(190 * MM), height: Math.floor(277 * MM) });
      const { width } = await page.locator(".code svg").first().boundingBox();
      const modules = await page.locator(".code svg").first().evaluate((svg) => svg.viewBox.baseVal.width);
      assert.ok(width / MM * (modules - 8) / modules >= 30, `${name}: ${width / MM} mm with its quiet zone`);
      const pdf = await page.pdf({ preferCSSPageSize: true, format: "A4", printBackground: name === "poster", margin: name === "poster" ? {} : { top: "10mm", right: "10mm", bottom: "10mm", left: "10mm" } });
      assert.equal(pdf.toString("latin1").match(/\/Type\s*\/Page\b(?!s)/g).length, 1, `${name} is one sheet`);
      assert.equal(await scanPrint(pdf), value, name);
      await page.emulateMedia({ media: null });
      await page.setViewportSize(DESKTOP);
    }
    await page.context().close();
  });
}

test("an event's page and an outcome print on one sheet, in dark words, where the screen is dark", async () => {
  const page = await open(browser, "desktop", { colorScheme: "dark" });
  const claims = "name local_name photo dob gender age_above_18 address mobile email pincode state district".split(" ");
  const [opened, made] = await Promise.all([service.open({ language: "urdu" }), event(service, { language: "tamil", claims })]);
  await service.answer(opened, "fail_match");
  for (const url of [made.qr_url, opened.requestUrl]) {
    await page.goto(url);
    await page.emulateMedia({ media: "print" });
    const ink = await page.locator("h1").evaluate((heading) => Math.max(...getComputedStyle(heading).color.match(/\d+/g).map(Number)));
    assert.ok(ink < 80, `${url}: ${ink}`);
    if (url === opened.requestUrl) assert.ok(await page.locator(".reference").getByText(opened.txnId).isVisible(), "the whole reference");
    const pdf = await page.pdf({ format: "A4", margin: { top: "10mm", right: "10mm", bottom: "10mm", left: "10mm" } });
    assert.equal(pdf.toString("latin1").match(/\/Type\s*\/Page\b(?!s)/g).length, 1, url);
    await page.emulateMedia({ media: null });
  }
});

test("a poster on A3 is one sheet, and its code is read and larger than on A4", async () => {
  const page = await open(browser, "desktop");
  const made = await event(service, { language: "tamil" });
  const widths = {};
  for (const [size, width, height] of [["A4", 210, 297], ["A3", 297, 420]]) {
    await poster(page, service, made, size);
    await page.emulateMedia({ media: "print" });
    widths[size] = (await page.locator(".code svg").boundingBox()).width / MM;
    const pdf = await page.pdf({ preferCSSPageSize: true, printBackground: true });
    const sheets = [...pdf.toString("latin1").matchAll(/\/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]/g)].map(([, ...points]) => points.map((point) => Math.round(point / 72 * 25.4)));
    assert.equal(sheets.length, 1, size);
    assert.ok(Math.abs(sheets[0][0] - width) <= 1 && Math.abs(sheets[0][1] - height) <= 1, `${size}: ${sheets[0]}`);
    assert.equal(await scanPrint(pdf), made.qr_url, size);
  }
  assert.ok(widths.A3 > 1.4 * widths.A4, JSON.stringify(widths));
});
