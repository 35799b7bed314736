// The pages of residents and guests by the keyboard alone, and without JavaScript.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, open } from "./browser.mjs";
import { focusProblems, lead, press } from "./keyboard.mjs";
import { Services, event, statesIn } from "./states.mjs";

const SOON = { timeout: 20_000 };

let services, browser;
before(async () => { [services, browser] = await Promise.all([Services.start(), launch()]); });
after(() => Promise.all([services?.stop(), browser?.close()]));

for (const language of ["english", "urdu"]) {
  test(`in every state in ${language} the Tab key stops at everything in order, seen, and gets out again`, async () => {
    const problems = [];
    const pages = { android: await open(browser, "android", { still: true, isMobile: false }), desktop: await open(browser, "desktop", { still: true }) };
    for (const { name, device, open } of await statesIn(services, language)) {
      const page = pages[device];
      await open(page);
      problems.push(...(await focusProblems(page)).map((words) => `${name}: ${words}`));
      // What is folded away takes part once it is open.
      if (await page.evaluate(() => document.querySelectorAll("details:not(.languages)").forEach((details) => { details.open = true; }) ?? document.querySelector("details:not(.languages)") !== null)) {
        problems.push(...(await focusProblems(page)).map((words) => `${name}, unfolded: ${words}`));
      }
    }
    assert.equal(problems.join("\n"), "");
    await Promise.all(Object.values(pages).map((page) => page.context().close()));
  });
}

test("a guest gets from an event's page to registered by the keyboard alone", async () => {
  const made = await event(services.well);
  const page = await open(browser, "android", { isMobile: false });
  await page.goto(made.qr_url);
  await lead(page, page.getByRole("button", { name: "Start" }));
  await page.getByRole("heading", { name: "Confirm who you are" }).waitFor(SOON);
  await lead(page, page.locator("#sandbox"));
  await press(page, page.getByRole("radio", { checked: true }).first(), "ArrowDown");
  await lead(page, page.getByRole("button", { name: /Face matches/ }));
  await lead(page, page.getByRole("link", { name: "Back to the verify page" }));
  await page.getByText("You are registered", { exact: true }).waitFor(SOON);
  const { registration_count: registered } = await services.well.call(`events/${made.event_id}`);
  assert.equal(registered, 1);
  await page.context().close();
});

// What a page says and offers. Clocks are left out: without a script they are the server's. Only a script leads on, so only then can one stay.
const said = (page) => page.evaluate(() => {
  const words = (selector) => [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility()).map((element) => element.innerText.trim());
  return { title: document.title, words: words("h1, h2, .card p:not(.left, .small), .groups li, .steps li, #words"), ways: words("a, button:not(#stay), summary") };
});

test("without JavaScript every page says and offers the same", async () => {
  // A tap changes the page with a script alone.
  const states = (await statesIn(services, "english")).filter(({ name, device }) => !name.includes("offline") && !(name.includes("named app") && device === "android"));
  for (const device of ["android", "desktop"]) {
    const [plain, scripted] = await Promise.all([open(browser, device, { javaScriptEnabled: false }), open(browser, device, { still: true })]);
    for (const state of states.filter((state) => state.device === device)) {
      await state.open(plain);
      await state.open(scripted);
      const [without, with_] = [await said(plain), await said(scripted)];
      assert.ok(without.words.length > 0, state.name);
      assert.deepEqual(without, with_, state.name);
    }
    await Promise.all([plain.context().close(), scripted.context().close()]);
  }
});
