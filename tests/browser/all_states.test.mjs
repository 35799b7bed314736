// Every state of the residents' and guests' pages, in every language.

import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

import { open } from "./browser.mjs";
import { forcedColourProblems, foreignWords, headerProblems, layoutProblems, narrowProblems, problemsInBothSchemes } from "./inspect.mjs";
import { focusProblems } from "./keyboard.mjs";
import { LANGUAGES, longestState, statesIn } from "./states.mjs";
import { browser, isLong, test } from "./suite.mjs";
import { MOST, weigh } from "./weigh.mjs";

const EVENT = "Open day 2026 (Hall B)!";
// A language of each direction.
const SHORT_FORM = ["english", "urdu"];
const WEIGHED = ["english", "malayalam", "urdu"];

// Opens everything folded, except the choice of languages: it covers the page and has its own test.
function unfold() {
  const folded = [...document.querySelectorAll("details:not(.languages)")];
  folded.forEach((details) => { details.open = true; });
  return folded.length > 0;
}

// Runs in the page: undoes the effects of the Tab key.
function leave() {
  document.activeElement.blur();
  scrollTo(0, 0);
}

async function load(page, { name, open, status }, language) {
  if (name.includes("offline")) return { answer: await open(page), wrong: [] };
  const { answer, bytes, files } = await weigh(page, () => open(page));
  const isLight = bytes < MOST || !WEIGHED.includes(language);
  const wrong = isLight && bytes > 1_000 && files >= 2 ? [] : [`weighs ${bytes} bytes in ${files} files`];
  if (answer.status() !== status) wrong.push(`answered with ${answer.status()}`);
  return { answer, wrong };
}

async function keyboardProblems(page) {
  const wrong = await focusProblems(page);
  if (await page.evaluate(unfold)) wrong.push(...(await focusProblems(page)).map((words) => `unfolded, ${words}`));
  await page.evaluate(leave);
  return wrong;
}

// Returns the texts and controls of a page. Clocks are left out: without a script they are the server's. So are minutes, because two
// guests register one after the other. Only a script leads on, so only then can one stay.
const said = (page) => page.evaluate(() => {
  const words = (selector) => [...document.querySelectorAll(selector)].filter((element) => element.checkVisibility()).map((element) => element.innerText.trim().replace(/\d+ \p{L}+ \d{4}, \d\d:\d\d/gu, "then"));
  return { title: document.title, words: words("h1, h2, .card p:not(.left, .small, #waits p), .groups li, .steps li, #words"), ways: words("a, button:not(#stay), summary") };
});

// Texts and controls with JavaScript only, or without only. A tap changes the page with a script alone.
async function scriptProblems(plain, page, { name, device, open }) {
  if (name.includes("offline") || (name.includes("named app") && device === "android")) return [];
  // Without a script a page reloads itself repeatedly, also while another is opened; so each is a new one.
  const fresh = await plain.context().newPage();
  await open(fresh);
  const [without, with_] = await Promise.all([said(fresh), said(page)]);
  await fresh.close();
  assert.ok(without.words.length > 0, name);
  return isDeepStrictEqual(without, with_) ? [] : [`without JavaScript: ${JSON.stringify(without)}, with it: ${JSON.stringify(with_)}`];
}

// Opens a state once and checks everything; on a `plain` page it is opened without JavaScript as well.
async function problemsOf(page, state, { language, lang, dir, script }, plain) {
  const { answer, wrong } = await load(page, state, language);
  if (plain) wrong.push(...await scriptProblems(plain, page, state));
  wrong.push(...headerProblems(answer, { referrer: "(no-referrer|same-origin)" }), ...await keyboardProblems(page));
  const [root, headings] = await page.evaluate(() => [[document.documentElement.lang, document.documentElement.dir].join(" "), document.querySelectorAll("h1").length]);
  if (root !== `${lang} ${dir}`) wrong.push(`is marked ${root}`);
  if (headings !== 1) wrong.push(`has ${headings} headings of the first order`);
  if (language !== "english") wrong.push(...await foreignWords(page, script, [EVENT]));
  wrong.push(...await problemsInBothSchemes(page), ...await layoutProblems(page));
  if (!state.sheet) wrong.push(...await forcedColourProblems(page), ...await narrowProblems(page));
  if (state.name.endsWith("offline") && await page.locator(".trouble:not(:empty)").count() === 0) wrong.push("was not offline all the time");
  wrong.push(...page.troubles.splice(0));
  return wrong.map((words) => `${state.name}: ${words}`);
}

const manner = { still: true, isMobile: false };
const openBoth = async (written, more) => {
  const [android, desktop] = await Promise.all(["android", "desktop"].map((device) => open(browser, device, { ...manner, locale: written.lang, ...more })));
  return { android, desktop };
};

const ASKED = "are accessible in both schemes and by the Tab key, fit every window and speak that language alone";
const whole = isLong ? LANGUAGES : LANGUAGES.filter(({ language }) => SHORT_FORM.includes(language));

for (const written of whole) {
  const isEnglish = written.language === "english";
  test(`all states in ${written.language} (${written.lang}) ${ASKED}${WEIGHED.includes(written.language) ? ", are light" : ""}${isEnglish ? ", and say and offer the same without JavaScript" : ""}`, async () => {
    const pages = await openBoth(written, { judged: true });
    const plain = isEnglish ? await openBoth(written, { javaScriptEnabled: false }) : {};
    const problems = [];
    for (const state of await statesIn(written.language)) problems.push(...await problemsOf(pages[state.device], state, written, plain[state.device]));
    assert.equal(problems.join("\n"), "");
  });
}

if (!isLong) test("the longest page in every other language is accessible, fits every window and speaks that language alone", async () => {
  const page = await open(browser, "android", { ...manner, judged: true });
  const others = LANGUAGES.filter((written) => !whole.includes(written));
  assert.ok(others.length > 0);
  const problems = [];
  for (const written of others) problems.push(...(await problemsOf(page, await longestState(written.language), written)).map((words) => `${written.language}: ${words}`));
  assert.equal(problems.join("\n"), "");
});
