// The people at an entrance: their phones, with a camera, without one, and without a network.

import assert from "node:assert/strict";

import { open, read, scan, visit } from "./browser.mjs";
import { forcedColourProblems, headerProblems, layoutProblems, narrowProblems, problemsInBothSchemes } from "./inspect.mjs";
import { focusProblems } from "./keyboard.mjs";
import { event } from "./states.mjs";
import { browser, service, test } from "./suite.mjs";
import { MOST, weigh } from "./weigh.mjs";

const SOON = { timeout: 20_000 };
const guests = async ({ event_id: id }) => (await service.call(`events/${id}/registrations`)).registrations;
const counts = async ({ event_id: id }) => {
  const { registration_count: registered, checked_in_count: inside } = await service.call(`events/${id}`);
  return [registered, inside];
};

async function crowd(residents) {
  const made = await event(service, { claims: ["name", "photo"] });
  const tickets = [];
  for (const resident of residents) tickets.push(await service.attend(made, resident));
  return { made, tickets };
}

// A phone at a door whose PIN was entered, and which has read the guests: those of the counts came with the page.
async function door(made, gate, more = {}) {
  const opened = await service.call(`events/${made.event_id}/doors`, { name: gate });
  const page = await open(browser, "android", more);
  await page.goto(opened.door_url);
  await page.getByLabel("PIN of this door").fill(opened.pin);
  const listed = page.waitForResponse((answer) => answer.url().includes("/guests?"), SOON);
  await page.getByRole("button", { name: "Open the door page" }).click();
  await page.locator(".counts").waitFor(SOON);
  await (await listed).finished();
  return page;
}

const heading = (page) => page.locator("#result .heading").textContent();

async function find(page, name) {
  await page.getByLabel("Name or code").fill(name);
  await page.locator("#found").getByRole("button").first().click();
}

// In this Chromium no system reads codes, and there is no camera: the picture of `globalThis.shown` is what the camera sees, and a
// scanner outside reads the frames.
async function withCamera(page) {
  await page.exposeFunction("readCode", (png) => read(Buffer.from(png.split(",")[1], "base64")).catch(() => ""));
  await page.addInitScript(() => {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: 600, height: 600 });
    const ticket = new Image();
    const draw = () => {
      const paper = canvas.getContext("2d");
      paper.fillStyle = "#fff";
      paper.fillRect(0, 0, 600, 600);
      if (globalThis.shown && ticket.src !== globalThis.shown) ticket.src = globalThis.shown;
      if (ticket.complete && ticket.naturalWidth) paper.drawImage(ticket, 50, 50, 500, 500);
      setTimeout(draw, 100);
    };
    navigator.mediaDevices ??= {};
    navigator.mediaDevices.getUserMedia = async () => { draw(); return canvas.captureStream(10); };
    globalThis.BarcodeDetector = class {
      static getSupportedFormats = async () => ["qr_code"];
      detect = async (video) => {
        const frame = document.createElement("canvas");
        Object.assign(frame, { width: video.videoWidth, height: video.videoHeight });
        if (!frame.width) return [];
        frame.getContext("2d").drawImage(video, 0, 0);
        const rawValue = await globalThis.readCode(frame.toDataURL("image/png"));
        return rawValue ? [{ rawValue }] : [];
      };
    };
  });
}

test("the camera of a phone opens a ticket at its door, and elsewhere only says what it is", async () => {
  const { made, tickets: [ticket] } = await crowd(["asha"]);
  const guest = await visit(browser, "android", ticket);
  const address = await scan(guest, ".pass .code");
  assert.match(address, new RegExp(`^${service.base}/d/t/[2-9A-Z]{6}\\.[\\w-]{24}$`));
  const stranger = await visit(browser, "android", address);
  await stranger.getByRole("heading", { name: "This is a guest’s ticket" }).waitFor(SOON);
  const page = await door(made, "North");
  await page.goto(address);
  assert.equal(await heading(page), "Not checked in yet");
  assert.match(await page.locator(".who").textContent(), /^Asha Rao/);
  assert.ok(await page.locator(".result img").evaluate((image) => image.decode().then(() => image.naturalWidth)) > 100, "the photo is large");
  await page.getByRole("button", { name: "Check in" }).click();
  await page.locator(".result.good").waitFor(SOON);
  assert.match(await heading(page), /^Checked in at \d\d:\d\d, North$/);
  await page.goto(address);
  assert.match(await heading(page), /^Already in at \d\d:\d\d, North$/);
  assert.deepEqual(await counts(made), [1, 1]);
  assert.deepEqual([...guest.troubles, ...page.troubles], []);
});

test("a ticket has another code after a while, a clock that runs, and says when its code is old", async () => {
  const { tickets: [ticket] } = await crowd(["asha"]);
  const guest = await visit(browser, "android", ticket, { hurried: true });
  const path = () => guest.locator(".pass .code path[stroke]").getAttribute("d");
  const [first, clock] = [await path(), await guest.locator(".live").textContent()];
  assert.match(clock, /^\d\d:\d\d:\d\d$/);
  // The page asks again; the service has another code every 30 seconds.
  const until = Date.now() + 60_000;
  while (await path() === first && Date.now() < until) await guest.clock.fastForward(15_000);
  assert.notEqual(await path(), first);
  assert.notEqual(await guest.locator(".live").textContent(), clock);
  await guest.context().setOffline(true);
  await guest.clock.fastForward(30_000);
  await guest.clock.fastForward(30_000);
  await guest.getByText("Say your code at the entrance").waitFor(SOON);
  await guest.locator(".pass.old").waitFor(SOON);
  await guest.context().setOffline(false);
  await guest.clock.fastForward(15_000);
  await guest.locator(".pass:not(.old)").waitFor(SOON);
});

test("a door scans tickets one after the other, and tells who is in already", async () => {
  const { made, tickets } = await crowd(["asha", "meena"]);
  const opened = await service.call(`events/${made.event_id}/doors`, { name: "Gate B" });
  const page = await open(browser, "android", {});
  await withCamera(page);
  await page.goto(opened.door_url);
  await page.getByLabel("PIN of this door").fill(opened.pin);
  await page.getByRole("button", { name: "Open the door page" }).click();
  await page.getByRole("button", { name: "Scan tickets" }).click();
  const show = async (ticket) => {
    const guest = await visit(browser, "android", ticket);
    const picture = (await guest.locator(".pass .code").screenshot()).toString("base64");
    await page.evaluate((png) => { globalThis.shown = png; }, `data:image/png;base64,${picture}`);
    await guest.context().close();
  };
  for (const [ticket, name] of [[tickets[0], "Asha Rao"], [tickets[1], "Meena Mathiri"]]) {
    await show(ticket);
    await page.locator(".result.good .who", { hasText: name }).waitFor(SOON);
  }
  assert.deepEqual(await counts(made), [2, 2]);
  // A list that was read before the last check-in may arrive after it.
  await page.locator("#inside", { hasText: "2" }).waitFor(SOON);
  await show(tickets[0]);
  await page.locator(".result.warn", { hasText: "Already in at" }).waitFor(SOON);
});

test("a door goes on for a minute without a network, then catches up, and nobody is in twice", async () => {
  const { made } = await crowd(["asha", "meena", "vikram", "kabir"]);
  const [north, south] = [await door(made, "North", { hurried: true }), await door(made, "South")];
  await north.locator("#registered", { hasText: "4" }).waitFor(SOON);
  await north.context().setOffline(true);
  const note = async (name) => {
    await find(north, name);
    await north.getByRole("button", { name: "Check in" }).click();
    await north.locator(".result.good", { hasText: "Noted at" }).waitFor(SOON);
  };
  await note("asha");
  await find(north, "asha");
  assert.match(await heading(north), /^Already in/, "this phone knows");
  await note("meena");
  await north.getByText("2 check-ins will be sent when the network is back.").waitFor(SOON);
  await find(south, "meena");
  await south.getByRole("button", { name: "Check in" }).click();
  await south.locator(".result.good").waitFor(SOON);
  for (let second = 0; second < 60; second += 10) await north.clock.fastForward(10_000);
  assert.deepEqual(await counts(made), [4, 1]);

  await north.context().setOffline(false);
  await north.clock.fastForward(10_000);
  const told = north.locator("#notes li");
  assert.match(await told.textContent(), /^Scanned at \d\d:\d\d: Meena Mathiri was in already, at \d\d:\d\d, South/);
  assert.equal(await north.locator(".result").count(), 0, "what was noted is not shown as good any more");
  await told.getByRole("button", { name: "Done" }).click();
  await told.waitFor({ ...SOON, state: "detached" });
  await north.locator("#trouble:empty").waitFor({ ...SOON, state: "attached" });
  assert.deepEqual(await counts(made), [4, 2]);
  assert.deepEqual((await guests(made)).map(({ gate }) => gate), ["North", "South", null, null]);
  assert.equal(await north.evaluate(() => Object.values(localStorage).join("")), "", "nothing is left on the phone");
});

test("what a door keeps without a network outlives the page, and holds no name", async () => {
  const { made } = await crowd(["asha"]);
  const page = await door(made, "North", { hurried: true });
  await page.locator("#registered", { hasText: "1" }).waitFor(SOON);
  await page.context().setOffline(true);
  await find(page, "asha");
  await page.getByRole("button", { name: "Check in" }).click();
  await page.locator(".result.good", { hasText: "Noted at" }).waitFor(SOON);
  const kept = await page.evaluate(() => Object.values(localStorage).join(""));
  assert.ok(kept.includes((await guests(made))[0].registration_code) && !/asha|rao/i.test(kept), kept);
  const address = page.url();
  await page.context().setOffline(false);
  await page.goto(address);
  while ((await counts(made))[1] !== 1) await page.clock.fastForward(3_000);
});

test("what the service does not take is dropped and told, and nothing waits behind it", async () => {
  const { made } = await crowd(["asha", "meena"]);
  const page = await door(made, "North");
  const [asha, meena] = await guests(made);
  const day = 25 * 3_600_000, now = Date.now();
  await page.evaluate(([old, fresh]) => { localStorage[`waiting ${location.pathname}`] = JSON.stringify([old, fresh]); },
    [{ code: asha.registration_code, at: now - day, id: "1" }, { code: meena.registration_code, at: now - 1_000, id: "2" }]);
  await page.reload();
  await page.locator("#trouble:empty").waitFor({ ...SOON, state: "attached" });
  await page.locator("#notes li", { hasText: "Asha Rao is not checked in" }).waitFor(SOON);
  while ((await counts(made))[1] !== 1);
  assert.deepEqual((await guests(made)).map(({ gate }) => gate), [null, "North"]);
});

test("what waits outlives answers of a network, of a busy service, and of a phone that was at another door", async () => {
  const { made } = await crowd(["asha"]);
  const page = await door(made, "North", { hurried: true });
  await page.locator("#registered", { hasText: "1" }).waitFor(SOON);
  const [{ registration_code: code }] = await guests(made);
  await page.context().setOffline(true);
  await find(page, "asha");
  await page.getByRole("button", { name: "Check in" }).click();
  await page.locator(".result.good", { hasText: "Noted at" }).waitFor(SOON);
  const kept = () => page.evaluate(() => Object.entries(localStorage).join(""));
  for (const status of [403, 404, 408, 429, 503]) {
    let asked = 0;
    await page.route("**/check-ins", (route) => { asked += 1; return route.fulfill({ status, body: "<html>" }); });
    await page.context().setOffline(false);
    while (asked === 0) await page.clock.fastForward(3_000);
    await page.getByText("The service cannot answer now.").waitFor(SOON);
    assert.ok((await kept()).includes(code), `${status}`);
    // In this order, because no retry may reach the service in between.
    await page.context().setOffline(true);
    await page.unroute("**/check-ins");
  }
  await page.context().clearCookies();
  await page.context().setOffline(false);
  while (await page.getByLabel("PIN of this door").count() === 0) await page.clock.fastForward(3_000);
  assert.ok((await kept()).includes(code), "the PIN is asked for again, and nothing is lost");
});

test("a success whose body breaks off loses no check-in, and does not stop the door", async () => {
  const { made } = await crowd(["asha"]);
  const page = await door(made, "North", { hurried: true });
  await page.locator("#registered", { hasText: "1" }).waitFor(SOON);
  await find(page, "asha");
  const asked = { guests: 0, "check-ins": 0 }, sent = [];
  for (const path of Object.keys(asked)) {
    await page.route(new RegExp(`/${path}(\\?|$)`), (route) => {
      asked[path] += 1;
      return route.fulfill({ contentType: "application/json", body: '{"state":"in","now":17' });
    });
  }
  page.on("request", (request) => { if (request.url().endsWith("/check-ins")) sent.push(new URLSearchParams(request.postData())); });
  while (asked.guests === 0) await page.clock.fastForward(10_000);
  await page.getByText("No network.").waitFor(SOON);
  await page.getByRole("button", { name: "Check in" }).click();
  await page.locator(".result.good", { hasText: "Noted at" }).waitFor(SOON);
  // Once the third request is sent, the second one has failed too.
  while (asked["check-ins"] < 3) await page.clock.fastForward(3_000);
  const [kept] = await page.evaluate(() => JSON.parse(localStorage[`waiting ${location.pathname}`]));
  assert.ok(kept.at > Date.now() - 3_600_000, `${kept.at}`);
  assert.deepEqual(await counts(made), [1, 0]);

  await page.unrouteAll();
  while ((await counts(made))[1] !== 1) await page.clock.fastForward(3_000);
  await page.locator(".result.good", { hasText: "Checked in at" }).waitFor(SOON);
  await page.locator("#trouble:empty").waitFor({ ...SOON, state: "attached" });
  assert.ok(sent.every((form) => form.get("at") === `${kept.at}` && form.get("id") === kept.id), sent.join(" "));
  assert.equal(await page.evaluate(() => Object.values(localStorage).join("")), "", "nothing is left on the phone");
  assert.equal(await page.locator("#notes li").count(), 0);
  assert.deepEqual(page.troubles, []);
});

test("a check-in whose response is lost stays one, also when the list has it before", async () => {
  const { made } = await crowd(["asha"]);
  const page = await door(made, "North", { hurried: true });
  await find(page, "asha");
  await page.evaluate(() => {
    const { fetch } = globalThis;
    globalThis.fetch = async (url, options) => {
      const answer = await fetch(url, options);
      if (!url.endsWith("/check-ins") || globalThis.lose) return answer;
      await new Promise((lose) => { globalThis.lose = lose; });
      throw new TypeError("lost");
    };
  });
  await page.getByRole("button", { name: "Check in" }).click();
  await page.waitForFunction(() => globalThis.lose);
  await page.evaluate(() => dispatchEvent(new Event("online")));
  await page.locator("#inside", { hasText: "1" }).waitFor(SOON);
  await page.evaluate(() => globalThis.lose());
  await page.locator(".result.good").waitFor(SOON);
  while (await page.locator(".result.good", { hasText: "Checked in at" }).count() === 0) await page.clock.fastForward(3_000);
  assert.deepEqual(await counts(made), [1, 1]);
  assert.equal(await page.locator("#notes li").count(), 0);
  assert.equal(await page.evaluate(() => Object.values(localStorage).join("")), "", "nothing is left on the phone");
  assert.deepEqual(page.troubles, []);
});

test("a door that noted a guest whom the service then refused reads again who is in, also when the numbers agree", async () => {
  const { made } = await crowd(["asha", "meena"]);
  const [asha, meena] = (await guests(made)).map(({ registration_code: code }) => code);
  const page = await door(made, "North", { hurried: true });
  let status = 503;
  // A scan whose code was old by then.
  const refusal = { state: "old", code: asha, name: "Asha Rao", when: null, photo: null, registered: 2, inside: 1 };
  await page.route("**/check-ins", (route) => route.fulfill(status === 503 ? { status } : { json: refusal }));
  await page.route(/\/guests\?/, (route) => status === 503 ? route.fulfill({ status }) : route.continue());
  await find(page, "asha");
  await page.getByRole("button", { name: "Check in" }).click();
  await page.locator(".result.good", { hasText: "Noted at" }).waitFor(SOON);
  await service.call(`events/${made.event_id}/check-ins`, { code: meena });
  status = 200;
  // The check-in is sent before the list is read.
  while (await page.locator("#notes li", { hasText: "the code was old" }).count() === 0) await page.clock.fastForward(3_000);
  const isIn = async (name) => {
    await page.getByLabel("Name or code").fill(name);
    return await page.locator("#found .when").count() === 1;
  };
  const until = Date.now() + SOON.timeout;
  while (!await isIn("meena") && Date.now() < until) await page.clock.fastForward(10_000);
  assert.deepEqual([await isIn("meena"), await isIn("asha")], [true, false]);
});

test("a search that is quicker than the list finds its guest once the list is there", async () => {
  const { made } = await crowd(["asha"]);
  const page = await door(made, "North");
  let read;
  const isRead = new Promise((resolve) => { read = resolve; });
  await page.route(/\/guests\?/, async (route) => { await isRead; await route.continue(); });
  await page.reload();
  await page.getByLabel("Name or code").fill("asha");
  await page.getByText("No guest has this name or code.").waitFor(SOON);
  read();
  await page.locator("#found").getByRole("button", { name: "Asha Rao" }).waitFor(SOON);
  await page.getByText("1 guest", { exact: true }).waitFor(SOON);
});

test("a check-in that was stored without a time is sent, and a note of an unknown state does not stop the door", async () => {
  const { made } = await crowd(["asha", "meena"]);
  const page = await door(made, "North");
  const [asha, meena] = (await guests(made)).map(({ registration_code: code }) => code);
  await page.evaluate(([waits, noted]) => {
    localStorage[`notes ${location.pathname}`] = JSON.stringify([{ id: "2", code: noted, at: Date.now(), state: "later" }]);
    localStorage[`waiting ${location.pathname}`] = JSON.stringify([{ code: waits, at: null, id: "1" }]);
  }, [asha, meena]);
  await page.reload();
  await page.locator("#inside", { hasText: "1" }).waitFor(SOON);
  await page.locator("#notes li", { hasText: "Meena Mathiri" }).waitFor(SOON);
  await page.locator("#trouble:empty").waitFor({ ...SOON, state: "attached" });
  assert.deepEqual((await guests(made)).map(({ gate }) => gate), ["North", null]);
  assert.deepEqual(page.troubles, []);
});

test("a phone at two doors stays at both, and its camera is at the one that was entered last", async () => {
  const { made, tickets: [ticket] } = await crowd(["asha"]);
  const page = await door(made, "North");
  const north = page.url();
  const opened = await service.call(`events/${made.event_id}/doors`, { name: "South" });
  await page.goto(opened.door_url);
  await page.getByLabel("PIN of this door").fill(opened.pin);
  await page.getByRole("button", { name: "Open the door page" }).click();
  await page.locator(".counts").waitFor(SOON);
  await page.goto(north);
  await page.locator(".counts").waitFor(SOON);
  const guest = await visit(browser, "android", ticket);
  await page.goto(await scan(guest, ".pass .code"));
  assert.ok(page.url().startsWith(opened.door_url), page.url());
});

test("a list that is asked for twice at once has every guest once", async () => {
  const { made } = await crowd(["asha", "meena"]);
  const page = await door(made, "North", { hurried: true });
  await page.locator("#registered", { hasText: "2" }).waitFor(SOON);
  await service.attend(made, "vikram");
  await page.evaluate(() => { for (let time = 0; time < 3; time += 1) dispatchEvent(new Event("online")); });
  await page.clock.fastForward(10_000);
  await page.locator("#registered", { hasText: "3" }).waitFor(SOON);
  await service.attend(made, "kabir");
  while (await page.locator("#registered", { hasText: "4" }).count() === 0) await page.clock.fastForward(10_000);
  const found = [];
  for (const name of ["asha", "meena", "vikram", "kabir"]) {
    await page.getByLabel("Name or code").fill(name);
    found.push(await page.locator("#found").getByRole("button").count());
  }
  assert.deepEqual(found, [1, 1, 1, 1]);
});

test("pages of doors are accessible in both schemes and by the Tab key, light, and fit every window", async () => {
  const { made } = await crowd(["asha", "meena"]);
  const opened = await service.call(`events/${made.event_id}/doors`, { name: "Gate B" });
  const [{ registration_code: code }] = await guests(made);
  const page = await open(browser, "android", { still: true, isMobile: false, judged: true });
  const problems = [];
  const judge = async (state, address) => {
    const { answer, bytes } = await weigh(page, () => page.goto(address));
    const wrong = [...headerProblems(answer, { referrer: "(no-referrer|same-origin)" }), ...await focusProblems(page)];
    if (bytes > MOST) wrong.push(`weighs ${bytes} bytes`);
    wrong.push(...await problemsInBothSchemes(page), ...await layoutProblems(page), ...await forcedColourProblems(page), ...await narrowProblems(page));
    problems.push(...[...wrong, ...page.troubles.splice(0)].map((words) => `${state}: ${words}`));
  };
  await judge("PIN", opened.door_url);
  // It answers 403 with this page.
  await judge("ticket of a stranger", `${service.base}/d/t/222222.none`);
  await page.getByRole("heading", { name: "This is a guest’s ticket" }).waitFor(SOON);
  await page.goto(opened.door_url);
  await page.getByLabel("PIN of this door").fill(opened.pin);
  await page.getByRole("button", { name: "Open the door page" }).click();
  await page.locator(".counts").waitFor(SOON);
  await judge("door", opened.door_url);
  await judge("found", `${opened.door_url}?q=a`);
  await judge("guest", `${opened.door_url}?guest=${code}`);
  await service.call(`events/${made.event_id}/check-ins`, { code, gate: "A" });
  await judge("guest who is in", `${opened.door_url}?guest=${code}`);
  await judge("no guest", `${opened.door_url}?state=unknown`);
  assert.equal(problems.join("\n"), "");
});
