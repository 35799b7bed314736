// One verification and one event through the client that openapi-typescript and openapi-fetch make of /openapi.json.
// Environment: BASE, KEY, APP. Ends with 0 and one line for each of them, or with an error.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const base = process.env.BASE!;
const headers = { "X-API-KEY": process.env.KEY!, "X-API-APP-ID": process.env.APP! };
const client = createClient<paths>({ baseUrl: base, headers });

/** The sandbox's identity app approves what an intent asks for. */
async function approve(intent: string) {
  const body = JSON.stringify({ intent, resident: "asha", action: "approve" });
  const answer = await fetch(`${base}/sandbox/app/answer`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  assert.equal(answer.status, 200);
}

const opened = await client.POST("/api/v1/nationalid-ovse/init", { body: { claims: ["name", "age_above_18"], channel: "web" } });
assert(opened.data, JSON.stringify(opened.error));
const path = { txnId: opened.data.txnId };
const waiting = await client.GET("/api/v1/nationalid-ovse/result/{txnId}", { params: { path } });
assert(waiting.data?.data.pending);
await approve(opened.data.intentJwt);
const ended = await client.GET("/api/v1/nationalid-ovse/result/{txnId}", { params: { path, query: { wait: 10 } } });
assert(ended.data && !ended.data.data.pending, "the result is there");
assert(ended.data.success);
assert.equal(ended.data.data.verified_claims?.residentName, "Asha Rao");
console.log("verification", ended.data.message);

const created = await client.POST("/api/v1/nationalid-ovse/events", {
  body: { name: "Open day", claims: ["name"], max_guests: 2, expires_at: new Date(Date.now() + 3_600_000).toISOString() },
});
assert(created.data, JSON.stringify(created.error));
const scan = await fetch(created.data.qr_url, { headers: { Accept: "application/jwt" } });
await approve(await scan.text());
const eventId = created.data.event_id;
const guests = await client.GET("/api/v1/nationalid-ovse/events/{eventId}/registrations", { params: { path: { eventId } } });
assert.equal(guests.data?.registrations.length, 1);
const refused = await client.GET("/api/v1/nationalid-ovse/events/{eventId}", { params: { path: { eventId: "none" } } });
assert.equal(refused.error?.code, "not_found");
console.log("event", guests.data.registrations[0]?.verified_at);
