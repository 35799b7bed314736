// The operators' console: a support case from the question to the credits, without a script; and pages accessible at any width, in either
// scheme.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";

import { open } from "./browser.mjs";
import { forcedColourProblems, headerProblems, layoutProblems, narrowProblems, problemsInBothSchemes } from "./inspect.mjs";
import { focusProblems } from "./keyboard.mjs";
import { browser, shared, test } from "./suite.mjs";

const TOKEN = "sandbox-admin-token-never-in-production";
const PHONE = { width: 390, height: 844 };

const service = await shared("console", { SAKSHI__ADMIN__SECOND_PERSON_ABOVE: "100", SAKSHI__WEBHOOKS__ALLOW_HTTP: "true", SAKSHI__WEBHOOKS__ALLOW_PRIVATE_TARGETS: "true" });

// A receiver that fails.
const receiver = createServer((request, response) => { request.resume(); response.writeHead(500).end(); }).listen(0, "127.0.0.1");
await once(receiver, "listening");
receiver.unref();
const webhook = `http://127.0.0.1:${receiver.address().port}/hooks/of-the-shop`;

// A verification whose webhook was lost.
async function lost(reference) {
  const opened = await service.open({ webhook_url: webhook, client_reference_id: reference });
  await service.answer(opened, "approve");
  let found;
  do found = await service.operate("GET", `transactions/${opened.txnId}`); while (!found.delivery?.attempt);
  return found;
}

async function signIn(page, token = TOKEN) {
  await page.goto(`${service.internal}/console`);
  await page.getByLabel("Operator’s token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

async function signedIn(more = {}, token = TOKEN) {
  const page = await open(browser, "desktop", more);
  await signIn(page, token);
  await page.waitForURL("**/console");
  return page;
}

// Returns the problems of an open page, in either scheme and in windows of every size.
async function problemsOf(page, state) {
  const wrong = [...await problemsInBothSchemes(page), ...await forcedColourProblems(page), ...await layoutProblems(page)];
  const before = page.viewportSize();
  await page.setViewportSize(PHONE);
  wrong.push(...await layoutProblems(page), ...await narrowProblems(page));
  await page.setViewportSize(before);
  if (await page.locator("h1").count() !== 1) wrong.push("has not one heading");
  return [...wrong, ...page.troubles.splice(0)].map((words) => `${state}: ${words}`);
}

test("support finds out by its id why an order was never confirmed, and grants credits that a second person confirms and the audit log has, without a script", async () => {
  const { txn_id: txn, client_id: client } = await lost("order-42");
  const { token } = await service.operate("POST", "operators", { name: "Asha Rao", role: "owner" });
  const page = await signedIn({ javaScriptEnabled: false }, token);
  await page.getByLabel("Find by id").fill(txn);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("heading", { level: 1, name: "Transaction" }).waitFor();
  const story = await page.locator(".story").innerText();
  for (const words of ["Nobody has opened its page", "The client has not fetched the outcome", "The person was verified", "The webhook was lost: rejected, status 500", "The receiver has seen it and did not take it", "only an answer with 2xx", `/result/${txn}`]) {
    assert.ok(story.includes(words), `${words}: ${story}`);
  }
  assert.ok(!(await page.content()).includes("of-the-shop"), "the path of a receiver is not shown");
  // Also by the client's reference.
  await page.goto(`${service.internal}/console/clients/${client}/verifications`);
  await page.getByLabel("The client’s own reference").fill("order-42");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("link", { name: txn }).waitFor();
  await page.goto(`${service.internal}/console/clients/${client}/credits`);
  await page.getByLabel("Credits", { exact: true }).fill("101");
  await page.getByLabel("Your reference").fill("goodwill for order-42");
  await page.getByRole("button", { name: "Grant credits" }).click();
  await page.getByText("It waits until another operator confirms it.").waitFor();
  const other = await signedIn({ javaScriptEnabled: false });
  await other.getByRole("row", { name: "goodwill for order-42" }).getByRole("button", { name: "Confirm" }).click();
  await other.getByText("The grant was confirmed").waitFor();
  await page.goto(`${service.internal}/console/clients/${client}/credits`);
  await page.getByRole("row", { name: "goodwill for order-42" }).waitFor();
  await other.goto(`${service.internal}/console/audit-log?id=${client}&operation=grantCredits`);
  assert.ok((await other.locator("tbody").innerText()).includes("Asha Rao"));
  await other.goto(`${service.internal}/console/audit-log?operation=confirmGrant`);
  assert.ok((await other.locator("tbody").innerText()).includes("settings"));
});

test("every page of the console is free of accessibility violations in either scheme, keeps to its policy, and is not cut off or too wide in any window, wide text spacing or forced colours", async () => {
  const { txn_id: txn, client_id: client, app_id: app } = await lost("order-43");
  await service.operate("POST", `clients/${client}/credits`, { amount: 500, reference: "a large invoice" });
  const { key_id: key } = await service.operate("POST", `clients/${client}/keys`, { label: "kiosk" });
  const { event_id: event } = await service.call("events", { name: "Open day", claims: ["name"], max_guests: 10, expires_at: new Date(Date.now() + 864e5).toISOString() });
  const page = await signedIn({ still: true, judged: true });
  // A page that renews itself is checked as it was.
  await page.route("**/console/tree/live", (route) => route.abort());
  const problems = [];
  const paths = ["", "/clients", `/clients/${client}`, ...["credits", "keys", "brand", "verifications", "webhooks", "consents"].map((name) => `/clients/${client}/${name}`), `/apps/${app}`, `/events/${event}`,
    `/keys/${key}`, `/transactions/${txn}`, "/find?id=nothing", "/tree", "/operators", "/audit-log", "/audit-log/verify", "/encryption", "/erasures", "/nothing"];
  for (const path of paths) {
    const answer = await page.goto(`${service.internal}/console${path}`);
    problems.push(...[...headerProblems(answer, { referrer: "(no-referrer|same-origin)" }), ...await focusProblems(page)].map((words) => `${path}: ${words}`));
    problems.push(...await problemsOf(page, path));
  }
  await page.goto(`${service.internal}/console/erasures`);
  await page.getByLabel("Id", { exact: true }).fill("one");
  await page.getByLabel("The same id again").fill("another");
  await page.getByRole("button", { name: "Erase for good" }).click();
  await page.getByText("The two ids differ.").waitFor();
  problems.push(...await problemsOf(page, "what is wrong"));
  await page.context().clearCookies();
  await page.goto(`${service.internal}/console`);
  problems.push(...await problemsOf(page, "sign-in"));
  await signIn(page, "so_none");
  await page.getByText("wrong, revoked or expired").waitFor();
  problems.push(...await problemsOf(page, "a wrong token"));
  assert.equal(problems.join("\n"), "");
});

test("the page of the nodes is renewed while one looks, and leads to the sign-in when the operator is revoked", async () => {
  const { token, operator_id: operator } = await service.operate("POST", "operators", { name: "Ravi", role: "auditor" });
  const page = await signedIn({}, token);
  await page.goto(`${service.internal}/console/tree`);
  await page.getByText("credit-ledger").waitFor();
  const first = await page.locator("#nodes").elementHandle();
  await service.open();
  await page.waitForFunction((first) => document.getElementById("nodes") !== first, first);
  assert.equal(await page.locator(".tree .wrong").count(), 0);
  await service.operate("DELETE", `operators/${operator}`);
  await page.waitForURL("**/console/sign-in*");
});
