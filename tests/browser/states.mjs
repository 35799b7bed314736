// Every state that residents and guests can see, produced in a chosen language.

import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { LIVE } from "./browser.mjs";
import { statusOf } from "./service.mjs";
import { service, shared } from "./suite.mjs";

// The API's name of each language, else its code.
const source = (path) => new URL(`../../src/${path}`, import.meta.url);
const rows = readFileSync(source("domain/src/language.rs"), "utf8").matchAll(/(named|coded)\("(\w+)", "(\w+)"\),/g);
const ASKED_FOR = new Map([...rows].map(([, by, name, lang], at) => [lang, by === "named" ? name : at + 1]));

// The languages that have texts, with the script that each is written in.
export const LANGUAGES = readdirSync(source("pages/src/text/")).flatMap((file) => {
  const words = readFileSync(source(`pages/src/text/${file}`), "utf8");
  // A long text is broken in its source by a backslash at the end of a line.
  const field = (name) => words.match(new RegExp(`^    ${name}:\\s+"([^"]*)",$`, "m"))?.[1].replace(/\\\n\s*/g, "");
  const [lang, dir, fonts] = ["tag", "direction", "fonts"].map(field);
  if (!fonts) return [];
  if (!ASKED_FOR.has(lang)) throw new Error(`no name of ${lang} for the API`);
  const script = dir === "rtl" ? "Arabic" : fonts.match(/'Noto Sans (\w+)'/)?.[1] ?? "Latin";
  return [{ language: ASKED_FOR.get(lang), lang, script, dir }];
});

export const IN_A_WEEK = new Date(Date.now() + 7 * 86_400_000).toISOString();
const IN_TWO_DAYS = new Date(Date.now() + 2 * 86_400_000).toISOString();
export const SHOP = "https://shop.example/a";

const EVERYTHING = "name local_name photo dob gender age_above_18 age_above_50 age_above_60 age_above_75 nri_status care_of \
  enrolment_number enrolment_date credential_date address regional_address building locality street landmark vtc sub_district \
  district state pincode po_name mobile masked_mobile email masked_email".split(/\s+/);

// The operator's name for the identity app.
export const IDENTITY_APP = {
  SAKSHI__PAGES__APP_NAME: "National Identity App", SAKSHI__PAGES__APP_ICON_PATH: fileURLToPath(new URL("icon.svg", import.meta.url)),
  SAKSHI__PAGES__APP_STORE_ANDROID: "https://android.example/app", SAKSHI__PAGES__APP_STORE_IOS: "https://ios.example/app",
  SAKSHI__PAGES__PRIVACY_URL: "https://bank.example/privacy",
};

// One service for normal states, and one for each fault.
async function start() {
  const services = {
    well: service, hasty: shared("hasty", { SAKSHI__OVSE__WINDOW_S: "1" }), broke: shared("broke"), named: shared("named", IDENTITY_APP),
    limited: shared("limited", { SAKSHI__LIMITS__PAGES_PER_SECOND_PER_ADDRESS: "1" }),
    crowded: shared("crowded", { SAKSHI__LIMITS__EVENT_STARTS_PER_SECOND_PER_ADDRESS: "1" }),
  };
  for (const name of Object.keys(services)) services[name] = await services[name];
  await services.broke.leaveNoCredits();
  await brand(services.named);
  return services;
}

// A client that looks like a bank.
export async function brand(service, more = {}) {
  const [{ client_id: client }] = (await service.operate("GET", "clients")).clients;
  const logo = readFileSync(new URL("icon.svg", import.meta.url)).toString("base64");
  await service.operate("PATCH", `clients/${client}/brand`, {
    name: "Meridian Bank", logo, colour: "#7a1f3d", support: "help@meridian.example", privacy_url: "https://meridian.example/privacy", ...more,
  });
}

let services;

export const event = (service, more = {}) =>
  service.call("events", { name: "Open day 2026 (Hall B)!", claims: ["name", "age_above_18"], max_guests: 250, expires_at: IN_A_WEEK, ...more });

// An event that ends as soon as it can; a busy machine takes longer than a second to create one.
async function shortEvent(service, language, seconds = 1) {
  try {
    return await event(service, { language, expires_at: new Date(Date.now() + seconds * 1_000).toISOString() });
  } catch (refusal) {
    if (seconds > 60 || !/expires_at/.test(refusal)) throw refusal;
    return shortEvent(service, language, seconds * 2);
  }
}

async function fullEvent(service, language) {
  const made = await event(service, { language, max_guests: 1 });
  await service.attend(made);
  return made;
}

// A state before may have cut the page off.
const at = (open) => async (page) => {
  await page.unroute(LIVE);
  return typeof open === "string" ? page.goto(open) : open(page);
};
const phone = (name, open, status = 200) => ({ name, device: "android", open: at(open), status });
const desktop = (name, open, more = {}) => ({ name, device: "desktop", open: at(open), status: 200, ...more });

// Each state has a name, the device that it is for, and a way to open it on a page; `status` where it is not 200.
export async function statesIn(language) {
  services ??= start();
  const { well, hasty, broke, limited, crowded, named } = await services;
  const open = (more) => well.open({ language, ...more });
  const [waiting, everything, verified, onwards, declined, mismatch, expired, made, over, closed, full, unfunded, busy, withApp, branded] = await Promise.all([
    open(), open({ claims: EVERYTHING, redirect_url: SHOP }), open(), open({ redirect_url: SHOP }), open(), open({ redirect_url: SHOP }),
    hasty.open({ language }), event(well, { language }), shortEvent(well, language), event(well, { language }), fullEvent(well, language),
    event(broke, { language }), event(crowded, { language }), named.open({ language, redirect_url: SHOP }),
    event(named, { language, starts_at: IN_TWO_DAYS, place: "Innovation Hub, 5th floor, Outer Ring Road, Bengaluru" }),
  ]);
  await Promise.all([
    well.answer(verified, "approve"), well.answer(onwards, "approve"), well.answer(declined, "decline"), well.answer(mismatch, "fail_match"),
    well.patch(closed, { is_active: false }), ends(expired.requestUrl), ends(over.qr_url),
  ]);
  return [
    phone("waiting", waiting.requestUrl),
    phone("waiting, with help, for every claim", `${everything.requestUrl}?help=1`),
    phone("waiting, offline", (page) => offline(page, waiting.requestUrl)),
    phone("waiting, with a named app", (page) => tapped(page, withApp.requestUrl)),
    phone("verified", verified.requestUrl),
    phone("verified, with a way on", onwards.requestUrl),
    phone("declined", declined.requestUrl),
    phone("not verified, with a way on", mismatch.requestUrl),
    phone("expired", expired.requestUrl, 410),
    phone("unknown link", `${well.base}/v/none`, 404),
    phone("service busy", (page) => refused(() => statusOf(`${limited.base}/v/none`), () => page.goto(`${limited.base}/v/none`)), 429),
    phone("event", made.qr_url),
    phone("event, started", (page) => started(page, made.qr_url)),
    phone("event, registered", (page) => registered(page, well, made)),
    phone("event of a brand", branded.qr_url),
    phone("event of a brand, registered", (page) => registered(page, named, branded)),
    phone("event full", full.qr_url, 409),
    phone("event ended", over.qr_url, 410),
    phone("event disabled", closed.qr_url, 410),
    phone("event unavailable", unfunded.qr_url),
    phone("event unknown", `${well.base}/e/none`, 404),
    phone("event, sent from elsewhere", (page) => elsewhere(page, made.qr_url), 403),
    phone("event, too many tries", (page) => refused(() => statusOf(`${busy.qr_url}/start`, { method: "POST", redirect: "manual" }), () => pressStart(page, busy.qr_url)), 429),
    desktop("waiting", everything.requestUrl),
    desktop("waiting, with help", `${waiting.requestUrl}?help=1`),
    desktop("waiting, with a named app", withApp.requestUrl),
    desktop("kiosk", `${made.kiosk_url}&places=1`),
    desktop("kiosk of a brand", branded.kiosk_url),
    desktop("kiosk, offline before", (page) => backOnline(page, `${made.kiosk_url}&places=1`)),
    desktop("kiosk of a full event", `${full.kiosk_url}&places=1`),
    desktop("kiosk of an ended event", `${over.qr_url}/kiosk`),
    desktop("kiosk of a disabled event", `${closed.qr_url}/kiosk`),
    desktop("kiosk of an unavailable event", `${unfunded.qr_url}/kiosk`),
    desktop("poster", (page) => poster(page, well, made), { sheet: true }),
    desktop("poster of a brand", (page) => poster(page, named, branded), { sheet: true }),
  ];
}

// The state with the most text.
export async function longestState(language) {
  const { requestUrl } = await service.open({ language, claims: EVERYTHING, redirect_url: SHOP });
  return phone("waiting, with help, for every claim", `${requestUrl}?help=1`);
}

async function ends(url) {
  while (await statusOf(url) !== 410);
}

async function offline(page, url) {
  // No update may report normal service, also while the page is checked.
  await page.route(LIVE, (route) => route.abort());
  const answer = await page.goto(url);
  await page.context().setOffline(true);
  // As on the person's return to the page.
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.locator(".trouble:not(:empty)").waitFor();
  await page.context().setOffline(false);
  return answer;
}

// A kiosk's notice lies over the foot, so the whole is checked when it has gone again; kiosk.test.mjs checks the notice.
async function backOnline(page, url) {
  const answer = await offline(page, url);
  await page.unroute(LIVE);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.locator("#trouble:empty").waitFor({ state: "attached" });
  return answer;
}

// Tries to open the app as the person.
async function tapped(page, url) {
  const answer = await page.goto(url);
  await page.locator("a.main").click();
  return answer;
}

// Sends requests until the service refuses. Others do so too, because a browser on a slow machine is too slow.
async function refused(others, ask) {
  let isOver = false;
  const asking = (async () => { while (!isOver) await others(); })();
  try {
    for (;;) {
      const answer = await ask();
      if (answer.status() === 429) return answer;
    }
  } finally {
    isOver = true;
    await asking;
  }
}

async function pressStart(page, url) {
  await page.context().clearCookies();
  await page.goto(url);
  return follow(page, () => page.locator("button.main").click());
}

async function started(page, url) {
  await page.goto(url);
  await follow(page, () => page.locator("button.main").click());
  return page.goto(url);
}

// Opens the page of the waiting guest, and then that of the event, with a button for another guest.
async function registered(page, service, made) {
  await page.context().clearCookies();
  await page.goto(await service.attend(made));
  return page.goto(made.qr_url);
}

async function elsewhere(page, url) {
  await page.goto("about:blank");
  await page.setContent(`<form method=post action="${url}/start"><button>Go</button></form>`);
  return follow(page, () => page.getByRole("button").click());
}

// Does a step that leads to another page, and returns that page's answer.
async function follow(page, act) {
  const arrived = page.waitForResponse((answer) => answer.request().isNavigationRequest() && answer.status() !== 303);
  await act();
  const answer = await arrived;
  await page.waitForLoadState("load");
  return answer;
}

export async function poster(page, service, { event_id }, size = "A4") {
  const url = `${service.base}/api/v1/nationalid-ovse/events/${event_id}/poster?size=${size}`;
  await page.context().setExtraHTTPHeaders(service.headers);
  try {
    return await page.goto(url);
  } finally {
    await page.context().setExtraHTTPHeaders({});
  }
}
