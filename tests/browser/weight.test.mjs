// The weight of the portal's pages. Those of residents and guests are weighed with their other checks.

import assert from "node:assert/strict";

import { signedIn } from "./portal_session.mjs";
import { event } from "./states.mjs";
import { shared, test } from "./suite.mjs";
import { MOST, weigh } from "./weigh.mjs";

test("every page of the portal is lighter than 30 KB without its code", async () => {
  const service = await shared("portal");
  const [made, waiting, verified] = await Promise.all([event(service), service.open({ channel: "qr" }), service.open({ claims: ["name", "photo", "address"] })]);
  await Promise.all([service.attend(made), service.answer(verified, "approve")]);
  const page = await signedIn(service, "desktop", { still: true });
  for (const path of ["", "/verifications", "/events", "/events/new", `/events/${made.event_id}`, `/events/${made.event_id}/settings`, `/events/${made.event_id}/guests`, "/webhooks", "/credits", "/events/none",
    `/transactions/${waiting.txnId}`, `/transactions/${verified.txnId}`]) {
    const { bytes } = await weigh(page, () => page.goto(`${service.base}/portal${path}`));
    // Shared data is in the body shown, picture included.
    const shown = await page.locator("#body").evaluateAll((all) => all.reduce((sum, element) => sum + element.innerHTML.length, 0));
    assert.ok(bytes - shown < MOST, `${path}: ${bytes} bytes`);
  }
  assert.deepEqual(page.troubles, []);
});
