// The sandbox's pages: the identity app and the desks of the upstreams, which work without any script.

import assert from "node:assert/strict";

import { open } from "./browser.mjs";
import { headerProblems, layoutProblems, narrowProblems, problemsInBothSchemes } from "./inspect.mjs";
import { focusProblems, lead, press } from "./keyboard.mjs";
import { statusOf } from "./service.mjs";
import { browser, service, shared, test } from "./suite.mjs";

const PDF = Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").toString("base64");
const CONSENT = { consent: "Y", consent_text: "I agree that these documents are fetched, and that this is looked at afterwards." };

const app = ({ intentJwt }, base = service.base) => `${base}/sandbox/app?req=${intentJwt}`;
const choose = (page, button) => lead(page, page.getByRole("button", { name: button, exact: true }));

// Opens one order of each kind; resolves to the pages where they are decided.
async function orders() {
  const signers = ["Asha Rao", "Imran Khan"].map((signerName) => ({ signerName }));
  const [esign, locker, stamp, wealth] = await Promise.all([
    service.ask("esign/request", { documentInfo: { name: "Loan agreement", content: PDF }, signerInfo: signers }),
    service.ask("doclocker/init", { docs: ["driving_licence", "degree_certificate"], ...CONSENT }),
    service.ask("estamp/init", { apiType: "RegistryEStamp", document: { documentName: "lease.pdf", base64FileData: PDF },
      signatoriesInfo: [{ name: "Asha Rao", emailID: "asha@example.com", signType: "electronic" }] }),
    service.ask("wealth/consents", CONSENT),
  ]);
  return { signers: esign.signerInfo.map((signer) => signer.signingUrl), locker: locker.requestUrl,
    stamp: `${service.base}/sandbox/estamp/${stamp.eStampId}`, wealth: wealth.requestUrl };
}

test("no page of the sandbox has an accessibility violation in either scheme, is cut off at any width, or traps the keyboard", async () => {
  const page = await open(browser, "android", { isMobile: false, judged: true });
  const problems = [];
  const check = async (name, answer) => {
    await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
    const wrong = [...await problemsInBothSchemes(page), ...await focusProblems(page), ...await layoutProblems(page), ...await narrowProblems(page)];
    if (await page.locator("h1").count() !== 1) wrong.push("has not one heading");
    wrong.push(...page.troubles.splice(0), ...(answer ? headerProblems(answer) : []));
    problems.push(...wrong.map((words) => `${name}: ${words}`));
  };
  const show = async (name, url) => check(name, await page.goto(url));
  const [made, hasty] = await Promise.all([orders(), shared("hasty", { SAKSHI__OVSE__WINDOW_S: "1" })]);
  const [asked, approved, declined, left, plain, late] = await Promise.all([
    service.open({ claims: ["name", "photo", "care_of", "email", "nri_status"] }), service.open(), service.open(), service.open(), service.open({ face_auth: false }), hasty.open(),
  ]);
  while (await statusOf(late.requestUrl) !== 410);

  await show("the app without a request", `${service.base}/sandbox/app`);
  await show("the app with something that is no request", `${service.base}/sandbox/app?req=nothing`);
  await show("consent", app(asked));
  await show("consent without a face scan", app(plain));
  await show("consent, too late", app(late, hasty.base));
  for (const [name, opened, button] of [["shared", approved, /Face matches/], ["declined", declined, "Decline"], ["walked away", left, "Walk away"], ["not taken", approved, /Face matches/]]) {
    await page.goto(app(opened));
    await page.locator("details").first().evaluate((details) => { details.open = true; });
    await Promise.all([page.waitForEvent("load"), page.getByRole("button", { name: button }).click()]);
    await check(name);
  }

  await show("the orders", `${service.base}/sandbox/flows`);
  await show("the first signer", made.signers[0]);
  await show("a signer whose turn it is not", made.signers[1]);
  await show("the locker", made.locker);
  await show("the stamp desk", made.stamp);
  await show("wealth data", made.wealth);
  await show("an order that is not there", `${service.base}/sandbox/estamp/none`);
  for (const [name, url, button] of [["the first signer, done", made.signers[0], "Sign"], ["the locker, done", made.locker, "Share every document"],
    ["the stamp desk, done", made.stamp, "Stamp it"], ["wealth data, agreed", made.wealth, "Agree"]]) {
    await page.goto(url);
    await page.getByRole("button", { name: button }).first().click();
    await page.getByRole("heading", { name: "Reported to the service" }).waitFor();
    await check(name);
  }
  await show("the orders, some over", `${service.base}/sandbox/flows`);
  assert.equal(problems.join("\n"), "");
});

test("every desk is led to its end by the keyboard alone", async () => {
  const page = await open(browser, "desktop", { javaScriptEnabled: false });
  const made = await orders();
  const done = page.getByText("Nothing is left to decide").first();
  for (const url of made.signers) {
    await page.goto(url);
    await press(page, page.getByRole("radio", { checked: true }), "ArrowDown");
    await choose(page, "Sign");
    await page.getByRole("heading", { name: "Reported to the service" }).waitFor();
  }
  await done.waitFor();
  await page.goto(made.locker);
  await choose(page, "Share every document");
  await done.waitFor();
  await page.goto(made.stamp);
  await press(page, page.getByLabel("Remarks"), "x");
  await choose(page, "Refuse");
  await done.waitFor();
  await page.goto(made.wealth);
  await choose(page, "Agree, for both accounts");
  await choose(page, "Raw data is ready");
  await choose(page, "Revoke it");
  await done.waitFor();
  assert.deepEqual(page.troubles, []);
});
