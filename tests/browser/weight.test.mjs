// What pages weigh, where it comes from, and what their answers say to browsers and crawlers.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, open } from "./browser.mjs";
import { headerProblems } from "./inspect.mjs";
import { Services, event, statesIn } from "./states.mjs";

// Bytes of a page with its style and its script, as they are before any compression.
const MOST = 30_000;

let services, browser;
before(async () => { [services, browser] = await Promise.all([Services.start(), launch()]); });
after(() => Promise.all([services?.stop(), browser?.close()]));

// Opens a page and counts everything that it loads, but for the drawings of codes and what people shared.
async function weigh(page, show) {
  await page.goto("about:blank");
  let loaded = [];
  const keep = (answer) => {
    const { pathname, protocol } = new URL(answer.url());
    if (protocol === "data:" || answer.status() === 303 || /\/(events|live|status)$/.test(pathname)) return;
    // What comes before another page counts for that one.
    if (answer.request().isNavigationRequest()) loaded = [];
    const body = answer.body();
    // That of a page which has made way for another one may be gone already, and nobody misses it.
    body.catch(() => {});
    loaded.push(body);
  };
  page.on("response", keep);
  const answer = await show();
  await page.waitForLoadState("load");
  page.off("response", keep);
  const bodies = await Promise.all(loaded);
  const apart = await page.evaluate(() => [...document.querySelectorAll(".code svg, img")].reduce((sum, element) => sum + new TextEncoder().encode(element.outerHTML).length, 0));
  return { answer, bytes: bodies.reduce((sum, body) => sum + body.length, 0) - apart, files: bodies.length };
}

for (const language of ["english", "malayalam", "urdu"]) {
  test(`every page in ${language} is lighter than 30 KB without its code, and loads nothing from elsewhere`, async () => {
    const pages = { android: await open(browser, "android", { still: true }), desktop: await open(browser, "desktop", { still: true }) };
    for (const state of (await statesIn(services, language)).filter(({ name }) => !name.includes("offline"))) {
      const page = pages[state.device];
      const { bytes, files } = await weigh(page, () => state.open(page));
      assert.ok(bytes < MOST && bytes > 1_000 && files >= 2, `${state.name}: ${bytes} bytes in ${files} files`);
      assert.deepEqual(page.troubles, [], state.name);
    }
    await Promise.all(Object.values(pages).map((page) => page.context().close()));
  });
}

test("every page of the portal is lighter than 30 KB without its code, and its answers keep it to one pair of eyes", async () => {
  const { well } = services;
  const [made, waiting, verified] = await Promise.all([event(well), well.open({ channel: "qr" }), well.open({ claims: ["name", "photo", "address"] })]);
  await Promise.all([well.attend(made), well.answer(verified, "approve")]);
  const page = await open(browser, "desktop", { still: true });
  const answer = await page.goto(`${well.base}/portal/sign-in`);
  assert.deepEqual(headerProblems(answer, { referrer: "same-origin" }), []);
  await page.getByLabel("App id").fill(well.headers["X-API-APP-ID"]);
  await page.getByLabel("API key").fill(well.headers["X-API-KEY"]);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL("**/portal");
  for (const path of ["", "/verifications", "/events", "/events/new", `/events/${made.event_id}`, "/webhooks", "/credits", "/events/none",
    `/transactions/${waiting.txnId}`, `/transactions/${verified.txnId}`]) {
    const { answer, bytes } = await weigh(page, () => page.goto(`${well.base}/portal${path}`));
    // What was shared is in the body that is shown, picture included.
    const shown = await page.locator("#body").evaluateAll((all) => all.reduce((sum, element) => sum + element.innerHTML.length, 0));
    assert.ok(bytes - shown < MOST, `${path}: ${bytes} bytes`);
    assert.deepEqual(headerProblems(answer, { referrer: "(no-referrer|same-origin)" }), [], path);
  }
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});

test("no page can be put into a frame", async () => {
  const { well } = services;
  const [opened, made] = await Promise.all([well.open(), event(well)]);
  const page = await open(browser, "desktop", { mayLeave: true });
  for (const url of [opened.requestUrl, made.qr_url, `${made.qr_url}/kiosk`, `${well.base}/v/none`, `${well.base}/portal/sign-in`, `${well.base}/sandbox/app`, `${well.base}/sandbox/flows`]) {
    const refused = page.waitForEvent("console", (message) => message.text().includes("frame-ancestors"));
    await page.setContent(`<iframe src="${url}"></iframe>`);
    await refused;
    await page.waitForFunction(() => document.querySelector("iframe").contentDocument === null);
    assert.match(page.frames()[1].url(), /^chrome-error:/, url);
  }
  await page.context().close();
});
