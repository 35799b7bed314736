// The pages of guests by the keyboard alone.

import assert from "node:assert/strict";

import { open } from "./browser.mjs";
import { lead, press } from "./keyboard.mjs";
import { event } from "./states.mjs";
import { browser, service, test } from "./suite.mjs";

const SOON = { timeout: 20_000 };

test("a guest gets from an event's page to registered by the keyboard alone", async () => {
  const made = await event(service);
  const page = await open(browser, "android", { isMobile: false });
  await page.goto(made.qr_url);
  await lead(page, page.getByRole("button", { name: "Start" }));
  await page.getByRole("heading", { name: "Confirm who you are" }).waitFor(SOON);
  await lead(page, page.locator("#sandbox"));
  await press(page, page.getByRole("radio", { checked: true }).first(), "ArrowDown");
  await lead(page, page.getByRole("button", { name: /Face matches/ }));
  await lead(page, page.getByRole("link", { name: "Back to the verify page" }));
  await page.getByText("You are registered", { exact: true }).waitFor(SOON);
  const { registration_count: registered } = await service.call(`events/${made.event_id}`);
  assert.equal(registered, 1);
});
