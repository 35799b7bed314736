// Guests at an event and the screen at its entrance, in a real browser.

import assert from "node:assert/strict";

import { minutePasses, open, scan, visit } from "./browser.mjs";
import { layoutProblems, narrowProblems, problemsInBothSchemes } from "./inspect.mjs";
import { Network } from "./network.mjs";
import { Service } from "./service.mjs";
import { IN_A_WEEK, event as eventOf, poster } from "./states.mjs";
import { browser, isLong, service, test } from "./suite.mjs";

const SOON = { timeout: 20_000 };

const event = (more = {}) =>
  service.call("events", { name: "Open day", claims: ["name", "age_above_18"], max_guests: 2, expires_at: IN_A_WEEK, ...more });
const counts = async ({ event_id }) => {
  const { scan_count, registration_count } = await service.call(`events/${event_id}`);
  return [scan_count, registration_count];
};

for (const [manner, more] of [["with JavaScript", {}], ["without JavaScript", { javaScriptEnabled: false }]]) {
  test(`a guest opens the page for free, starts, leaves, continues and is registered, ${manner}`, async () => {
    const made = await event();
    const page = await visit(browser, "android", made.qr_url, more);
    assert.deepEqual(await counts(made), [0, 0]);
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByRole("heading", { name: "Confirm who you are" }).waitFor(SOON);
    const verify = page.url();
    await page.goto(made.qr_url);
    await page.getByRole("link", { name: "Continue" }).click();
    await page.waitForURL(verify, SOON);
    assert.deepEqual(await counts(made), [1, 0]);
    await page.locator("#sandbox").click();
    await page.getByRole("button", { name: "Face matches" }).first().click();
    await page.getByRole("link", { name: "Back to the verify page" }).click(SOON);
    await page.getByText("You are registered", { exact: true }).waitFor(SOON);
    assert.deepEqual(await counts(made), [1, 1]);
    await page.goto(made.qr_url);
    await page.getByText("You are registered", { exact: true }).waitFor(SOON);
    assert.equal(await page.getByRole("button", { name: "Start", exact: true }).count(), 0);
    await page.getByRole("button", { name: "Register someone else" }).click();
    await page.getByRole("heading", { name: "Confirm who you are" }).waitFor(SOON);
    await page.goto(made.qr_url);
    await page.getByText("You are registered", { exact: true }).waitFor(SOON);
    await page.getByRole("link", { name: "Continue" }).click();
    await page.waitForURL("**/v/*", SOON);
    assert.notEqual(page.url(), verify);
    assert.deepEqual(await counts(made), [2, 1]);
    assert.deepEqual(page.troubles, []);
    await page.context().close();
  });
}

test("two quick taps are one start", async () => {
  const made = await event();
  const page = await visit(browser, "android", made.qr_url);
  await page.getByRole("button", { name: "Start" }).dblclick({ noWaitAfter: true });
  await page.getByRole("heading", { name: "Confirm who you are" }).waitFor(SOON);
  assert.deepEqual(await counts(made), [1, 0]);
});

test("another site's form starts nothing", async () => {
  const made = await event();
  const page = await visit(browser, "android", "data:text/html,<p>elsewhere", { mayLeave: true });
  await page.setContent(`<form method=post action="${made.qr_url}/start"><button>Win a prize</button></form>`);
  await page.getByRole("button").click();
  await page.getByRole("heading", { name: "Please start here" }).waitFor(SOON);
  assert.deepEqual(await counts(made), [0, 0]);
});

test("the kiosk follows the event, says when its network is lost, and comes back by itself", async () => {
  const service = await Service.start();
  const network = await Network.to(service);
  try {
    const made = await eventOf(service, { max_guests: 2 });
    const page = await visit(browser, "desktop", network.at(`${made.kiosk_url}&places=1`), { hurried: !isLong });
    assert.equal(await scan(page, ".code"), made.qr_url);
    await service.patch(made, { max_guests: 7, name: "Open evening" });
    await page.locator("#places", { hasText: "7" }).waitFor(SOON);
    await page.getByRole("heading", { name: "Open evening" }).waitFor(SOON);

    await network.cut(page);
    await page.getByText("No connection").waitFor({ timeout: 40_000 });
    await service.patch(made, { is_active: false });
    await network.mend(page);
    await page.getByText("Registration has closed").waitFor({ timeout: 40_000 });
    await page.getByText("No connection").waitFor({ state: "hidden", ...SOON });

    // A closed event has no code that works. A hanging service looks like a network that drops everything: no error, just silence.
    service.process.kill("SIGSTOP");
    if (!isLong) await minutePasses(page);
    await page.getByText("Offline since").waitFor({ timeout: 60_000 });
    service.process.kill("SIGCONT");
    await page.getByText("Offline since").waitFor({ state: "hidden", timeout: 40_000 });

    await service.killAndRestart();
    await service.patch(made, { is_active: true });
    await page.getByText("Open for guests").waitFor({ timeout: 40_000 });
  } finally {
    network.stop();
    await service.stop();
  }
});

test("the kiosk follows the event without JavaScript", async () => {
  const made = await event();
  const page = await visit(browser, "desktop", `${made.qr_url}/kiosk`, { javaScriptEnabled: false });
  await page.getByText("Open for guests").waitFor(SOON);
  await service.patch(made, { is_active: false });
  await page.getByText("Registration has closed").waitFor(SOON);
});

test("the whole of a kiosk is seen without scrolling, on screens of every usual shape", async () => {
  for (const language of isLong ? ["english", "tamil", "urdu"] : ["tamil"]) {
    const { qr_url: address, kiosk_url: kiosk } = await event({ language });
    const page = await open(browser, "desktop");
    for (const [width, height] of [[1_024, 768], [1_280, 720], [1_366, 768], [1_920, 1_080], [768, 1_024], [800, 1_280], [1_080, 1_920]]) {
      await page.setViewportSize({ width, height });
      await page.goto(`${kiosk}&places=1`);
      const shape = `${language} on ${width} by ${height}`;
      assert.ok(await page.evaluate(() => document.scrollingElement.scrollHeight <= innerHeight), `${shape} fits`);
      assert.equal(await scan(page, ".code"), address, shape);
    }
    await page.context().close();
  }
});

test("the poster of an event with a long name is read by a scanner and prints on one page of A4", async () => {
  const made = await event({ name: "Annual general meeting of the housing cooperative, with elections, followed by dinner for all" });
  const page = await open(browser, "desktop");
  await poster(page, service, made);
  assert.equal(await scan(page, ".code"), made.qr_url);
  const pdf = (await page.pdf({ preferCSSPageSize: true })).toString("latin1");
  assert.equal(pdf.match(/\/Type\s*\/Page\b(?!s)/g).length, 1);
  const [, , , width, height] = /\/MediaBox\s*\[\s*(\S+) (\S+) (\S+) (\S+?)\s*\]/.exec(pdf).map(Number);
  assert.ok(Math.abs(width - 595) < 2 && Math.abs(height - 842) < 2, `${width} by ${height} points`);
});

test("a guest without a network is told so before the page is lost", async () => {
  const made = await event();
  const page = await visit(browser, "android", made.qr_url);
  await page.context().setOffline(true);
  await page.getByText("The connection is interrupted").waitFor(SOON);
  await page.context().setOffline(false);
  await page.getByText("The connection is interrupted").waitFor({ state: "detached", ...SOON });
});

test("a kiosk shows why instead of a code that nobody can use, and says when a guest was registered", async () => {
  const made = await event({ max_guests: 1 });
  const page = await open(browser, "desktop", { hurried: !isLong });
  // It shows guests from then on.
  const stream = page.waitForResponse((response) => response.url().includes("/kiosk/events"), SOON);
  await page.goto(`${made.qr_url}/kiosk`);
  await stream;
  await service.attend(made);
  await page.getByText("A guest was just registered").waitFor(SOON);
  await page.getByText("This event is full").waitFor(SOON);
  for (const part of [".code", ".steps", ".call"]) assert.equal(await page.locator(part).isVisible(), false, part);
  if (!isLong) await page.clock.fastForward(6_000);
  await page.getByText("A guest was just registered").waitFor({ state: "hidden", ...SOON });
  await service.patch(made, { max_guests: 2 });
  await page.locator(".code").waitFor(SOON);
  assert.equal(await scan(page, ".code"), made.qr_url);
});

test("a greeting and a lost network move nothing on a kiosk and leave the code free", async () => {
  const made = await event();
  const page = await open(browser, "desktop");
  // The next state would remove the notice.
  await page.route("**/kiosk/events**", (route) => route.abort());
  for (const [width, height] of [[1_280, 720], [1_024, 768], [800, 1_280], [1_920, 1_080]]) {
    await page.setViewportSize({ width, height });
    await page.goto(`${made.kiosk_url}&places=1`);
    const places = () => page.evaluate(() => [".name", ".steps", ".call", ".code"].map((part) => {
      const { top, left } = document.querySelector(part).getBoundingClientRect();
      return [Math.round(top), Math.round(left)];
    }));
    const before = await places();
    await page.evaluate(() => ["registered", "trouble"].forEach((id) => {
      const notice = document.getElementById(id);
      notice.textContent = notice.dataset.words;
    }));
    assert.deepEqual(await places(), before, `${width} by ${height}`);
    assert.ok(await page.locator("#registered").isVisible() && await page.locator("#trouble").isVisible());
    assert.equal(await scan(page, ".code"), made.qr_url);
    assert.ok(await page.evaluate(() => document.scrollingElement.scrollHeight <= innerHeight), `${width} by ${height} fits`);
  }
});

test("on an Urdu poster the organiser's letters are whole", async () => {
  const made = await event({ language: "urdu", organiser: "دہلی کے عجائب گھر", purpose: "مہمانوں کی فہرست کے لیے" });
  const page = await open(browser, "desktop");
  await poster(page, service, made);
  const { overflow, line, size } = await page.locator(".organiser").evaluate((element) => {
    const style = getComputedStyle(element);
    return { overflow: style.overflow, line: parseFloat(style.lineHeight), size: parseFloat(style.fontSize) };
  });
  assert.ok(overflow === "visible" && line >= 1.8 * size, `${overflow}, ${line} for letters of ${size}`);
});

test("the type of a kiosk grows with its screen", async () => {
  const made = await event();
  const page = await open(browser, "desktop");
  const sizes = [];
  for (const [width, height] of [[1_280, 720], [1_920, 1_080], [3_840, 2_160]]) {
    await page.setViewportSize({ width, height });
    await page.goto(`${made.kiosk_url}&places=1`);
    const sized = await page.evaluate(() => [".name", ".steps"].map((part) => parseFloat(getComputedStyle(document.querySelector(part)).fontSize)));
    assert.ok(sized[0] > 1.5 * sized[1], `the headline is larger than the steps: ${sized}`);
    assert.ok(await page.evaluate(() => document.scrollingElement.scrollHeight <= innerHeight), `${width} by ${height} fits`);
    sizes.push(sized[1]);
  }
  assert.ok(sizes[2] >= 1.9 * sizes[1] && sizes[1] > sizes[0], `${sizes}`);
});

test("the page of an event shows the picture that an operator has set, and fits every window with it", async () => {
  const made = await event({ name: "Open day with a picture" });
  const drawing = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 256"><rect width="640" height="256" fill="#7a1f3d"/></svg>';
  await service.operate("PATCH", `events/${made.event_id}/brand`, { picture: Buffer.from(drawing).toString("base64") });
  const page = await open(browser, "android", { still: true, isMobile: false, judged: true });
  // Other nodes, and this one's cache, are up to date within five seconds.
  const until = Date.now() + 20_000;
  do await page.goto(made.qr_url); while (await page.locator("img.picture").count() === 0 && Date.now() < until);
  const { width, height } = await page.locator("img.picture").boundingBox();
  assert.ok(Math.abs(width / height - 2.5) < 0.02, `${width} by ${height}`);
  assert.ok(await page.locator("img.picture").evaluate((image) => image.decode().then(() => true)));
  assert.deepEqual([...await problemsInBothSchemes(page), ...await layoutProblems(page), ...await narrowProblems(page), ...page.troubles], []);
});
