// The content of the portal's pages, with JavaScript and without.

import assert from "node:assert/strict";

import { signedIn as within } from "./portal_session.mjs";
import { event } from "./states.mjs";
import { browser, service, test } from "./suite.mjs";

const signedIn = (more) => within(service, "desktop", more);
// A day in summer time, within the year for which an event may last: a first of June or of July.
const DAY_MS = 86_400_000, THIS_YEAR = new Date().getUTCFullYear();
const inDays = (month) => (Date.parse(`${month}-01`) - Date.now()) / DAY_MS;
const SUMMER = [`${THIS_YEAR}-07`, `${THIS_YEAR + 1}-07`, `${THIS_YEAR + 1}-06`].find((month) => inDays(month) > 3 && inDays(month) < 360);
const [YEAR, NAME] = [SUMMER.slice(0, 4), SUMMER.endsWith("07") ? "July" : "June"];
const SHORT = NAME.slice(0, 3);
const end = async (made) => (await service.call(`events/${made.event_id}`)).expires_at;

test("times are the reader's own, those of an event are by its clock, and without JavaScript they are UTC", async () => {
  const made = await event(service, { expires_at: `${SUMMER}-01T20:30:00Z`, time_zone: "Asia/Kolkata" });
  for (const [more, own, title] of [
    [{ timezoneId: "America/New_York", locale: "en-US" }, /^\w+ \d+, \d{4}, \d+:\d\d\s[AP]M$/, new RegExp(`^${SHORT} 1, ${YEAR}, 4:30\\sPM, your time$`)],
    [{ timezoneId: "Asia/Kolkata", locale: "en-GB" }, /^\d+ \w+ \d{4}, \d\d:\d\d$/, new RegExp(`^2 ${SHORT} ${YEAR}, 02:00, your time$`)],
    [{ timezoneId: "Asia/Kolkata", javaScriptEnabled: false }, /^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/, /^$/],
  ]) {
    const page = await signedIn(more);
    for (const place of ["events", `events/${made.event_id}`]) {
      await page.goto(`${service.base}/portal/${place}`);
      const time = page.locator(`time[datetime='${SUMMER}-01T20:30:00.000Z']`).first();
      assert.equal(await time.textContent(), `2 ${NAME} ${YEAR}, 02:00 IST`, place);
      assert.match(await time.getAttribute("title") ?? "", title, place);
    }
    await page.goto(`${service.base}/portal/credits`);
    const granted = page.locator("time").last();
    assert.match(await granted.textContent(), own);
    assert.match(await granted.getAttribute("title") ?? "", more.javaScriptEnabled === false ? /^$/ : / UTC$/);
    assert.deepEqual(page.troubles, []);
    await page.context().close();
  }
});

test("the end of an event is entered in the reader's own time, and in UTC without JavaScript", async () => {
  for (const [more, label, before, entered, after] of [
    [{ timezoneId: "Asia/Kolkata" }, "Ends at, your time", `${SUMMER}-02T02:00`, `${SUMMER}-03T05:45`, `${SUMMER}-03T00:15:00.000Z`],
    [{ timezoneId: "Asia/Kolkata", javaScriptEnabled: false }, "Ends at, in UTC", `${SUMMER}-01T20:30`, `${SUMMER}-03T05:45`, `${SUMMER}-03T05:45:00.000Z`],
  ]) {
    const made = await event(service, { expires_at: `${SUMMER}-01T20:30:00Z` });
    const page = await signedIn(more);
    await page.goto(`${service.base}/portal/events/${made.event_id}/settings`);
    const input = page.getByLabel(label);
    assert.equal(await input.inputValue(), before);
    await input.fill("2020-01-01T10:00");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Please correct these fields.").waitFor();
    assert.equal(await input.inputValue(), "2020-01-01T10:00", "what was entered stays");
    await input.fill(entered);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    assert.equal(await end(made), after);
    await page.context().close();
  }
});

test("guests who come once a page is shown, also before its stream begins, come in at the top, on other pages behind a link, and the scans add up", async () => {
  const made = await event(service, { max_guests: 40 });
  for (let guest = 0; guest < 10; guest += 1) await service.attend(made);
  const page = await signedIn();
  let begin;
  const hasCome = new Promise((resolve) => { begin = resolve; });
  await page.route("**/live", async (route) => { await hasCome; await route.continue(); });
  await page.goto(`${service.base}/portal/events/${made.event_id}`);
  const shown = (await service.attend(made, "meena")).split("/").pop();
  begin();
  await page.locator(`tbody tr:first-child a[href$="/${shown}"]`).waitFor();
  assert.match(await page.locator("tbody tr").first().locator("time").getAttribute("title"), /your time$/, "what came in later is written like the rest");
  assert.equal(await page.locator("#recent").textContent(), "11");
  await page.goto(`${service.base}/portal/events/${made.event_id}?page=2`);
  await service.attend(made, "vikram");
  await page.getByRole("link", { name: "Show them" }).click();
  await page.getByText("Vikram Namuna").waitFor();
  await page.getByLabel("Name or code").fill("mee");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("Meena Mathiri").waitFor();
  assert.equal(await page.locator("tbody tr").count(), 1);
  await page.goto(`${service.base}/portal/events/${made.event_id}`);
  const number = async (id) => Number(await page.locator(`#${id}`).textContent());
  assert.equal(await number("scans"), await number("registrations") + await number("pending") + await number("others") + await number("abandoned"));
  assert.equal(await page.locator("#unfunded").isVisible(), false);
  await page.context().close();
});

test("a list of guests that the service does not give now is asked for again", async () => {
  const made = await event(service);
  const page = await signedIn({ hurried: true });
  const address = `${service.base}/portal/events/${made.event_id}`;
  await page.goto(address);
  let refused = 0;
  await page.route(address, (route) => { refused += 1; return route.fulfill({ status: 503 }); });
  const guest = (await service.attend(made)).split("/").pop();
  await page.locator("#registrations", { hasText: "1" }).waitFor();
  while (refused === 0) await page.clock.fastForward(3_000);
  await page.unroute(address);
  // Long before the list is due for its age.
  await page.clock.fastForward(3_000);
  await page.locator(`tbody tr:first-child a[href$="/${guest}"]`).waitFor({ timeout: 20_000 });
  await page.context().close();
});

test("a refused form has the focus on what is wrong, and its entries lead to the fields", async () => {
  for (const more of [{}, { javaScriptEnabled: false }]) {
    const page = await signedIn(more);
    await page.goto(`${service.base}/portal/events/new`);
    await page.locator("form[action='/portal/events']").evaluate((form) => { form.noValidate = true; });
    await page.getByLabel("Places").fill("0");
    await page.getByRole("button", { name: "Create the event" }).click();
    await page.getByText("Please correct these fields.").waitFor();
    assert.match(await page.title(), /^Error: New event/);
    assert.ok(await page.locator(".alert").evaluate((alert) => alert === document.activeElement), "the summary has the focus");
    await page.locator(".alert a[href='#max_guests']").click();
    assert.equal(new URL(page.url()).hash, "#max_guests");
    await page.keyboard.press("Tab");
    await page.context().close();
  }
});

test("names in tables of the documents and the portal are whole on a phone, a tablet and a desktop", async () => {
  const page = await signedIn();
  for (const path of ["/docs", "/docs/errors", "/docs/guides/event", "/docs/reference/events", "/portal/credits", "/portal/verifications", "/portal/deliveries"]) {
    await page.goto(`${service.base}${path}`);
    await page.evaluate(() => document.querySelectorAll("details").forEach((details) => { details.open = true; }));
    for (const width of [360, 800, 1_280]) {
      await page.setViewportSize({ width, height: 800 });
      const broken = await page.evaluate(() => [...document.querySelectorAll("table :is(th, td) > code, table th > a > code, table thead th, td.what")]
        .filter((name) => /^[\w-]{1,24}$/.test(name.textContent) && name.getClientRects().length > 0)
        .filter((name) => {
          const range = document.createRange();
          range.selectNodeContents(name);
          return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1;
        }).map((name) => name.textContent));
      assert.deepEqual(broken, [], `${path} at ${width}`);
      const unlabelled = await page.evaluate(() => [...document.querySelectorAll("table:not(.ledger, .days) tbody td")].filter((cell) => !cell.dataset.label).length);
      assert.equal(unlabelled, 0, path);
    }
  }
  await page.context().close();
});

test("names of events have the families of their scripts in the portal too", async () => {
  const page = await signedIn();
  const families = await page.evaluate(() => getComputedStyle(document.body).fontFamily);
  for (const script of ["Tamil", "Devanagari", "Naskh Arabic"]) assert.ok(families.includes(script), families);
  await page.context().close();
});

test("guests are a table by name, and a sheet that a browser downloads", async () => {
  const made = await event(service, { claims: ["name", "photo", "dob"] });
  const unnamed = await event(service, { claims: ["dob"] });
  await Promise.all([service.attend(made), service.attend(unnamed)]);
  const page = await signedIn();
  await page.goto(`${service.base}/portal/events/${unnamed.event_id}`);
  assert.match(await page.getByRole("rowheader").textContent(), /^[2-9A-Z]{6}$/, "a reference stands for a name that was not shared");
  await page.goto(`${service.base}/portal/events/${made.event_id}`);
  const [name, reference] = (await page.getByRole("rowheader").textContent()).split(/ (?=\S+$)/);
  assert.equal(name, "Asha Rao");
  assert.equal(await page.getByRole("row", { name: "Asha Rao" }).locator("img").count(), 1);
  const download = page.waitForEvent("download");
  await page.getByRole("link", { name: "All as CSV" }).click();
  const sheet = await download;
  assert.equal(sheet.suggestedFilename(), `guests-${made.event_id}.csv`);
  const { readFile } = await import("node:fs/promises");
  const [head, line, end] = (await readFile(await sheet.path(), "utf8")).split("\r\n");
  assert.equal(head, "\ufefftxn_id,registration_code,verified_at,possible_duplicate_of,checked_in_at,gate,name,dob");
  assert.match(line, new RegExp(`^[0-9a-f-]{36},"'?${reference}",20\\S+Z,,,"","Asha Rao","1990-02-14"$`));
  assert.equal(end, "");
  assert.deepEqual(page.troubles, []);
});

for (const javaScriptEnabled of [true, false]) {
  test(`a body is indented first and as it was sent on demand, ${javaScriptEnabled ? "copied as it was sent" : "without JavaScript too"}`, async () => {
    const opened = await service.open({ claims: ["name", "photo"] });
    await service.answer(opened, "approve");
    const sent = await (await fetch(`${service.base}/api/v1/nationalid-ovse/result/${opened.txnId}`, { headers: service.headers })).text();
    const page = await signedIn({ javaScriptEnabled });
    await page.goto(`${service.base}/portal/transactions/${opened.txnId}`);
    await page.getByRole("button", { name: "Show the details" }).click();
    const [pretty, raw] = [page.locator(".json .pretty"), page.locator(".json .raw")];
    assert.match(await pretty.textContent(), /\n {6}"residentName": "Asha Rao"/);
    assert.deepEqual([await pretty.isVisible(), await raw.isVisible()], [true, false]);
    if (javaScriptEnabled) {
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"], { origin: service.base });
      await page.getByRole("button", { name: "Copy the whole body" }).click();
      await page.getByText("Copied").first().waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), sent);
    }
    await page.getByLabel("As sent").check();
    assert.deepEqual([await pretty.isVisible(), await raw.isVisible()], [false, true]);
    assert.equal(await raw.textContent(), sent);
    await page.context().close();
  });
}

test("the chart of credits has a scale, says a day's number under the pointer, and is a table without one", async () => {
  for (let opened = 0; opened < 3; opened += 1) await service.open();
  const page = await signedIn();
  await page.goto(`${service.base}/portal/credits`);
  const today = new Date().toISOString().slice(0, 10);
  const used = await page.locator(".days tr").last().getByRole("cell", { includeHidden: true }).textContent();
  assert.ok(Number(used) >= 3);
  const [top, half, zero] = await page.locator(".scale span").allTextContents();
  assert.deepEqual([Number(top) >= Number(used), Number(half), zero], [true, Number(top) / 2, "0"]);
  const { x, y, width, height } = await page.locator(".chart").boundingBox();
  await page.mouse.move(x + width - 3, y + 3);
  assert.equal(await page.locator("#reading").textContent(), `${today}: ${used}`);
  await page.mouse.move(x + 3, y + height - 3);
  assert.match(await page.locator("#reading").textContent(), /^\d{4}-\d\d-\d\d: 0$/);
  await page.getByText("As a table").click();
  assert.equal(await page.getByRole("row", { name: today }).getByRole("cell").textContent(), used);
  assert.equal(await page.locator("#lasts").count(), 0, "a first afternoon says nothing about a week");
});

test("the page of a waiting transaction asks an overloaded service as rarely as it says, also at 0:00, and is loaded again when the transaction is gone", async () => {
  const { txnId } = await service.open();
  const page = await signedIn({ hurried: true });
  const address = `${service.base}/portal/transactions/${txnId}`;
  let asked = 0, loaded = 0, status = 503;
  await page.route("**/v/*/events", (route) => route.fulfill({ status: 503 }));
  await page.route("**/v/*/status", (route) => { asked += 1; return route.fulfill({ status, headers: { "retry-after": "10" } }); });
  page.on("request", (request) => { if (request.url() === address) loaded += 1; });
  await page.goto(address);
  await page.getByText("The connection is interrupted").waitFor();
  await page.clock.fastForward("15:00");
  await page.locator("#left", { hasText: /^0:00$/ }).waitFor();
  const started = await page.evaluate(() => Date.now());
  asked = 0;
  // In small steps, so that requests and timers do not fall together.
  for (let step = 0; step < 300; step += 1) await page.clock.runFor(100);
  const passed = (await page.evaluate(() => Date.now()) - started) / 1_000;
  assert.ok(asked > 1 && asked <= passed / 10 + 2, `${asked} in ${passed} seconds`);
  assert.equal(loaded, 1);
  status = 404;
  while (loaded < 2) await page.clock.runFor(1_000);
  await page.context().close();
});

test("the documentation asks for an API key in a sandbox alone, and its search outlives a refusal", async () => {
  const page = await signedIn();
  const address = `${service.base}/docs`, key = page.getByLabel("API key of the sandbox");
  await page.goto(address);
  assert.equal(await key.count(), 1);
  const body = (await (await fetch(address)).text()).replace('class="badge">Sandbox', 'class="badge plain-badge">Production');
  await page.route(address, (route) => route.fulfill({ contentType: "text/html; charset=utf-8", body }));
  await page.route("**/docs/search.json", (route) => route.fulfill({ status: 429, json: { success: false } }), { times: 1 });
  const refused = page.waitForResponse("**/docs/search.json");
  await page.goto(address);
  assert.equal(await page.getByLabel("App id").count(), 1);
  assert.equal(await key.count(), 0);
  await page.getByLabel("Search the docs").fill("web");
  await refused;
  await page.getByLabel("Search the docs").fill("webhooks");
  await page.getByRole("list", { name: "Found" }).getByRole("link").first().waitFor();
  assert.deepEqual(page.troubles, []);
  await page.context().close();
});
