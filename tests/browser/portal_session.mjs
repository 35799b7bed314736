// Windows of a developer who has signed in to the portal.

import { open } from "./browser.mjs";
import { browser } from "./suite.mjs";

export async function fillIn(page, { base, headers }, key = headers["X-API-KEY"]) {
  await page.goto(`${base}/portal/sign-in`);
  await page.getByLabel("App id").fill(headers["X-API-APP-ID"]);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
}

const sessions = new Map();

async function start(service) {
  const page = await open(browser, "desktop");
  await fillIn(page, service);
  await page.waitForURL("**/portal");
  return page.context().cookies();
}

// A page within the session that tests of this service share; it shows the portal.
export async function signedIn(service, device = "desktop", more = {}) {
  if (!sessions.has(service)) sessions.set(service, start(service));
  const page = await open(browser, device, more);
  await page.context().addCookies(await sessions.get(service));
  await page.goto(`${service.base}/portal`);
  return page;
}
