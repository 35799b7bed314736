// What the shops of examples/ do not reach in the TypeScript client: parsers before the Express receiver, slow responses, odd ids and
// addresses, many webhooks.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";

import express from "express";
import { Receiver, Sakshi } from "sakshi-client";
import { webhooks } from "sakshi-client/express";

const TXN = "ca3d0000-0000-4000-8000-00000000000a";
const webhook = (id) => JSON.stringify({ data: { txn_id: id, pending: false } });

async function serve(handler) {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, close: () => (server.closeAllConnections(), server.close()) };
}

/** A receiver that waits for every id, and the keys under which it stores. */
function lenient(fetchedId = (id) => id) {
  const keys = [], asked = [], errors = [];
  const sakshi = { verdict: async (id) => (asked.push(id), { state: "passed", txnId: fetchedId(id), claims: {}, message: "" }) };
  const handlers = { isOpen: () => true, onOutcome: ({ key }) => void keys.push(key), onError: (error) => errors.push(error) };
  return { receiver: new Receiver(sakshi, handlers), keys, asked, errors };
}

// One key, whatever the spelling.
const { receiver, keys, asked, errors } = lenient();
for (const id of [TXN.toUpperCase(), `${TXN}#1`, `${TXN}?a`, ` ${TXN}`, "..", ""]) await receiver.take(JSON.parse(webhook(id)));
assert.deepEqual([keys, asked, errors], [[TXN], [TXN], []]);
const other = lenient(() => "00000000-0000-4000-8000-000000000000");
await other.receiver.take(JSON.parse(webhook(TXN)));
assert.deepEqual([other.keys, other.asked], [[], [TXN]], "the record of another verification");

// One key for each change of each consent.
const changes = lenient();
for (const consent of [{ consentId: "c-1" }, { consentId: "c-2" }, {}, { consentId: "" }]) {
  await changes.receiver.take({ uniqueIdentifier: "u-1", status: "Expiring Soon", ...consent });
}
assert.deepEqual([changes.keys, changes.errors], [["u-1 c-1 Expiring Soon", "u-1 c-2 Expiring Soon"], []]);

// Webhooks that wait are few.
let decide;
const decided = new Promise((resolve) => (decide = resolve));
const busy = new Receiver({}, { isOpen: () => decided, onOutcome: () => undefined });
const accepted = Array.from({ length: 101 }, () => busy.takeLater(JSON.parse(webhook(TXN))));
assert.deepEqual([accepted.filter(Boolean).length, accepted.at(-1)], [100, false]);
const full = await serve(express().post("/hook", webhooks(busy)));
const refused = await fetch(`${full.url}/hook`, { method: "POST", headers: { "Content-Type": "application/json" }, body: webhook(TXN) });
assert.equal(refused.status, 503);
full.close();
decide(false);
await new Promise(setImmediate);
assert.equal(busy.takeLater(JSON.parse(webhook(TXN))), true, "a webhook that was taken keeps its place");

// Parsers before the receiver.
const skipped = (request, _, next) => ((request.body = {}), next());
const parsers = { none: [], skipped: [skipped], json: [express.json()], raw: [express.raw({ type: "*/*" })], text: [express.text({ type: "*/*" })] };
for (const [name, before] of Object.entries(parsers)) {
  const { receiver, keys } = lenient();
  const shop = await serve(express().post("/hook", ...before, webhooks(receiver)));
  const send = (body) => fetch(`${shop.url}/hook`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  assert.equal((await send(webhook(TXN))).status, 200, name);
  for (let left = 3_000; keys.length === 0 && left > 0; left -= 1) await new Promise((done) => setTimeout(done, 20));
  assert.deepEqual(keys, [TXN], name);
  assert.equal((await send("{no JSON")).status, 400, name);
  shop.close();
}

// A response that never ends.
const slow = await serve((_, response) => {
  response.writeHead(200, { "Content-Type": "application/json" });
  const drip = setInterval(() => response.write(" "), 50);
  response.on("close", () => clearInterval(drip));
});
const settings = { base: slow.url, key: "key", app: "app", attempts: 1 };
await assert.rejects(new Sakshi({ ...settings, timeoutMs: 400 }).credits(), (error) => error.status === 0 && error.code === "no_answer");
await assert.rejects(new Sakshi(settings).result(TXN, 0, AbortSignal.timeout(400)), { name: "TimeoutError" });
slow.close();

// Ids in paths, and a base with a slash.
const paths = [];
const echo = await serve((request, response) => (paths.push(request.url), response.end("{}")));
const client = new Sakshi({ ...settings, base: `${echo.url}/` });
await client.event("a/../b?c#d é");
assert.deepEqual(paths, ["/api/v1/nationalid-ovse/events/a%2F..%2Fb%3Fc%23d%20%C3%A9"]);
echo.close();
console.log("ok       clients: units in TypeScript");
