// Every state of the pages that residents and guests see, in every language.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { launch, open } from "./browser.mjs";
import { forcedColourProblems, foreignWords, headerProblems, layoutProblems, problemsInBothSchemes, spacingProblems } from "./inspect.mjs";
import { LANGUAGES, Services, statesIn } from "./states.mjs";

// A phone held upright is as wide as a window of 1280 pixels at 400 %, which is as high as this.
const NARROW = { width: 320, height: 256 };

let services, browser;
before(async () => { [services, browser] = await Promise.all([Services.start(), launch()]); });
after(() => Promise.all([services?.stop(), browser?.close()]));

for (const { language, lang, dir, script } of LANGUAGES) {
  test(`every state in ${language} (${lang}) is accessible in both schemes, fits every window and speaks that language alone`, async () => {
    const states = await statesIn(services, language);
    const pages = Object.fromEntries(await Promise.all(["android", "desktop"].map(async (device) =>
      [device, await open(browser, device, { still: true, locale: lang, isMobile: false })])));
    const problems = [];
    for (const { name, device, open, status, sheet } of states) {
      const page = pages[device];
      const answer = await open(page);
      const wrong = answer.status() === status ? [] : [`answered with ${answer.status()}`];
      // The choice of languages lies over the page; it has a test of its own.
      await page.evaluate(() => document.querySelectorAll("details:not(.languages)").forEach((details) => { details.open = true; }));
      const root = await page.evaluate(() => [document.documentElement.lang, document.documentElement.dir].join(" "));
      if (root !== `${lang} ${dir}`) wrong.push(`is marked ${root}`);
      const headings = await page.locator("h1").count();
      if (headings !== 1) wrong.push(`has ${headings} headings of the first order`);
      if (language !== "english") wrong.push(...await foreignWords(page, script, ["Open day 2026 (Hall B)!"]));
      wrong.push(...await problemsInBothSchemes(page), ...await layoutProblems(page));
      if (!sheet) wrong.push(...await layoutProblems(page, NARROW), ...await forcedColourProblems(page), ...await spacingProblems(page, NARROW));
      wrong.push(...headerProblems(answer, { referrer: "(no-referrer|same-origin)" }), ...page.troubles.splice(0));
      problems.push(...wrong.map((words) => `${name}: ${words}`));
    }
    assert.equal(problems.join("\n"), "");
    await Promise.all(Object.values(pages).map((page) => page.context().close()));
  });
}
