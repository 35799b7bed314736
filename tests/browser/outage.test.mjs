// Screens that lose their network or their service, and recover by themselves.

import assert from "node:assert/strict";

import { minutePasses, scan, visit } from "./browser.mjs";
import { Network } from "./network.mjs";
import { signedIn } from "./portal_session.mjs";
import { Service } from "./service.mjs";
import { event } from "./states.mjs";
import { browser, isLong, test } from "./suite.mjs";

// Silence is noticed after 25 seconds at the latest.
const IN_TIME = { timeout: 60_000 };

const places = (page) => page.locator("#places").textContent();

// The kiosk's text while it is offline. A state in flight when the network failed removes it for a moment.
const offline = (page) => page.locator("#trouble", { hasText: "Offline since" }).innerText(IN_TIME);

test("a kiosk whose network is gone says so, keeps its code, and comes back with the places that are left by then", async () => {
  const service = await Service.start();
  const network = await Network.to(service);
  try {
    const made = await event(service, { max_guests: 5 });
    const page = await visit(browser, "desktop", network.at(`${made.kiosk_url}&places=1`));
    assert.equal(await places(page), "5");
    await service.attend(made);
    await page.locator("#places", { hasText: "4" }).waitFor(IN_TIME);

    await network.cut(page);
    await page.getByText("No connection").waitFor(IN_TIME);
    assert.match(await offline(page), /^Offline since \d\d:\d\d\s+No connection\. The code still works;/);
    assert.equal(await scan(page, ".code"), made.qr_url);
    assert.equal(await places(page), "4");
    await service.attend(made);
    await network.mend(page);
    await page.locator("#places", { hasText: "3" }).waitFor(IN_TIME);
    await page.getByText("No connection").waitFor({ state: "hidden", ...IN_TIME });
    await page.getByText("Open for guests").waitFor(IN_TIME);
    assert.equal(await scan(page, ".code"), made.qr_url);
    assert.deepEqual(page.troubles, []);
  } finally {
    network.stop();
    await service.stop();
  }
});

test("a kiosk whose code changes says since when it is offline, and hides the code once nobody can use it", async () => {
  const service = await Service.start();
  const network = await Network.to(service);
  try {
    const made = await event(service, { entry: "kiosk" });
    const page = await visit(browser, "desktop", network.at(made.kiosk_url), { hurried: true, timezoneId: "America/New_York" });
    const code = page.locator(".code");
    const clock = (millis) => new Intl.DateTimeFormat("en-GB", { timeZone: "Asia/Kolkata", hour: "2-digit", minute: "2-digit" }).format(millis);
    const heard = Date.now() - 30_000;
    await network.cut(page);
    const [, since, words] = /^Offline since (\d\d:\d\d)\s+(.*)/.exec(await offline(page));
    const lost = [heard, heard + 30_000, Date.now()].map(clock);
    assert.ok(lost.includes(since), `${since} is none of ${lost}`);
    assert.match(words, /The code still works/);
    assert.ok(await code.isVisible());
    const before = await page.locator(".name").boundingBox();

    await minutePasses(page);
    await page.getByText("This code is no longer valid. Please ask the people at the entrance.").waitFor(IN_TIME);
    assert.equal(await code.isVisible(), false);
    assert.deepEqual(await page.locator(".name").boundingBox(), before, "nothing has moved");

    await network.mend(page);
    await page.locator("#trouble:empty").waitFor({ state: "attached", ...IN_TIME });
    await code.waitFor(IN_TIME);
    assert.ok((await scan(page, ".code")).startsWith(`${made.qr_url}?code=`));
  } finally {
    network.stop();
    await service.stop();
  }
});

test("a kiosk and a waiting page outlive a service that is away for a while, and say so meanwhile", async () => {
  const service = await Service.start();
  try {
    const [made, opened] = await Promise.all([event(service, { max_guests: 5 }), service.open()]);
    const hurried = !isLong;
    const [kiosk, phone] = await Promise.all([visit(browser, "desktop", `${made.kiosk_url}&places=1`, { hurried }), visit(browser, "android", opened.requestUrl, { hurried })]);
    await service.attend(made);
    await kiosk.locator("#places", { hasText: "4" }).waitFor(IN_TIME);

    await service.end("SIGTERM");
    if (hurried) await Promise.all([kiosk, phone].map(minutePasses));
    await Promise.all([kiosk.getByText("No connection").waitFor(IN_TIME), phone.getByText("The connection is interrupted").waitFor(IN_TIME)]);
    assert.equal(await scan(kiosk, ".code"), made.qr_url);
    assert.equal(await phone.locator("a.main").count(), 1, "the way to the app is still there");

    await service.restart();
    await service.attend(made);
    await kiosk.locator("#places", { hasText: "3" }).waitFor(IN_TIME);
    await Promise.all([kiosk, phone].map((page) => page.locator(".trouble:not(:empty)").waitFor({ state: "detached", ...IN_TIME })));
    await service.answer(opened, "approve");
    await phone.getByRole("heading", { name: "You are verified" }).waitFor(IN_TIME);
  } finally {
    await service.stop();
  }
});

test("the page of an event outlives an overloaded service, and one that is silent, and shows the guests of meanwhile", async () => {
  const service = await Service.start();
  try {
    const made = await event(service);
    const page = await signedIn(service, "desktop", { hurried: true });
    const address = `${service.base}/portal/events/${made.event_id}`;
    const registered = (count) => page.locator("#registrations", { hasText: `${count}` }).waitFor(IN_TIME);
    let refused = 0;
    await page.route(`${address}/live`, (route) => { refused += 1; return route.fulfill({ status: 503 }); });
    await page.goto(address);
    await page.evaluate(() => { globalThis.isSame = true; });
    await page.route(address, (route) => { refused += 1; return route.fulfill({ status: 429 }); });
    while (refused < 4) await page.clock.fastForward(2_000);
    await page.unrouteAll();
    await service.attend(made);
    await page.clock.fastForward(2_000);
    await registered(1);

    service.process.kill("SIGSTOP");
    const asked = page.waitForRequest((request) => request.method() === "HEAD", IN_TIME);
    await minutePasses(page);
    await asked;
    service.process.kill("SIGCONT");
    await service.attend(made, "meena");
    await registered(2);
    assert.ok(await page.evaluate(() => globalThis.isSame), "the page was not loaded again");
    assert.deepEqual(page.troubles, []);
  } finally {
    await service.stop();
  }
});

test("a page of a waiting transaction says so when the service falls silent or the network goes, and finds back", async () => {
  const service = await Service.start();
  const network = await Network.to(service);
  try {
    const opened = await service.open();
    const phone = await visit(browser, "android", network.at(opened.requestUrl), { hurried: !isLong });
    const portal = await signedIn(service, "desktop", { hurried: !isLong });
    await portal.goto(network.at(`${service.base}/portal/transactions/${opened.txnId}`));
    const pages = [phone, portal];
    const isInterrupted = (page) => page.getByText("The connection is interrupted").waitFor(IN_TIME);
    const isWell = (page) => page.getByText("The connection is interrupted").waitFor({ state: "hidden", ...IN_TIME });

    for (const page of pages) {
      await network.cut(page);
      await isInterrupted(page);
      await network.mend(page);
      await isWell(page);
    }
    // A hanging service is no error to a browser, just silence.
    service.process.kill("SIGSTOP");
    if (!isLong) await Promise.all(pages.map(minutePasses));
    await Promise.all(pages.map(isInterrupted));
    service.process.kill("SIGCONT");
    await Promise.all(pages.map(isWell));
    await service.answer(opened, "approve");
    await phone.getByRole("heading", { name: "You are verified" }).waitFor(IN_TIME);
    await portal.getByRole("heading", { name: "Verified", exact: true }).waitFor(IN_TIME);
  } finally {
    network.stop();
    await service.stop();
  }
});
