// A client's backend: `verify` verifies a person by QR code, `event` registers guests. README.md says how to run it.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

const { BASE = "", KEY = "", APP = "", PORT = "0", PUBLIC_URL } = process.env;
const OVSE = "/api/v1/nationalid-ovse";
const ATTEMPTS = 5; // Of one request, where repeating it can help.
const REPEATABLE = [0, 429, 500, 502, 503, 504]; // 0: no answer.
const [QUIET_MS, WAIT_S] = [10_000, 20]; // So long a webhook may take before the result is polled, and a poll.
const GRACE_MS = 60_000; // After expiresAt, for the service to say how it ended.
const WEBHOOK_CHARS_MAX = 10_000_000; // A photo makes a webhook large.

type Json = Readonly<Record<string, unknown>>;
type Kinds = { string: string; boolean: boolean; number: number };

function object(value: unknown): Json {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("not a JSON object");
  return value as Json;
}

/** A member of an object, by the first of these names that it has. */
function read<K extends keyof Kinds>(body: Json, kind: K, ...names: string[]): Kinds[K] {
  const value = names.map((name) => body[name]).find((found) => found !== undefined);
  if (typeof value !== kind) throw new TypeError(`an answer without ${names[0]}`);
  return value as Kinds[K];
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? value : [value]).map(object);

/** The service refused a request, or (status 0) did not answer. */
class Failure extends Error {
  constructor(request: string, readonly status: number, body: Json) {
    const fields = list(body["errors"] ?? []).map((wrong) => `\n  ${wrong["field"]} ${wrong["message"]}`).join("");
    const told = `${status} ${body["code"]}: ${body["message"]}${fields}\n  errorId ${body["errorId"]}`;
    super(`${request}: ${status === 0 ? `no answer, ${body["message"]}` : told}`);
  }
}

type Options = { body?: object; key?: string; waitS?: number };

/** Repeats what may succeed later. The idempotency key is for what costs a credit: however often it is sent, it is carried
 * out and charged once. The other requests of this program do no harm when they are sent twice. */
async function call(method: string, path: string, { body, key, waitS = 0 }: Options = {}): Promise<Json> {
  const headers = new Headers({ "X-API-KEY": KEY, "X-API-APP-ID": APP, "Content-Type": "application/json" });
  if (key !== undefined) headers.set("Idempotency-Key", key);
  for (let attempt = 0; ; attempt += 1) {
    let [status, retryAfter, answer]: [number, string, Json] = [0, "", {}];
    try {
      const limits = { signal: AbortSignal.timeout((waitS + 10) * 1000), redirect: "error" } as const; // The key goes nowhere else.
      const got = await fetch(BASE + path, { method, headers, body: body ? JSON.stringify(body) : null, ...limits });
      [answer, status, retryAfter] = [object(await got.json()), got.status, got.headers.get("Retry-After") ?? ""];
    } catch (error) {
      answer = { message: error instanceof Error ? `${error.message} ${error.cause ?? ""}` : error };
    }
    if (status >= 200 && status < 300) return answer;
    if (!REPEATABLE.includes(status) || attempt + 1 === ATTEMPTS) throw new Failure(`${method} ${path}`, status, answer);
    await pause(1000 * (/^\d+$/.test(retryAfter) ? Number(retryAfter) : 2 ** attempt));
  }
}

/** Anybody can post here. So a webhook is only a hint that the result of its transaction is worth fetching. */
function receiver(hint: (txn: string) => void) {
  return createServer({ requestTimeout: 10_000 }, async (request, response) => {
    try {
      let text = "";
      for await (const part of request.setEncoding("utf8"))
        if ((text += part).length > WEBHOOK_CHARS_MAX) return void request.socket.destroy();
      response.end();
      hint(read(object(object(JSON.parse(text))["data"]), "string", "txn_id", "txnId"));
    } catch {} // Cut off, or not a webhook of the service.
  });
}

/** What became of a transaction, as the service says when it is asked with our key. Undefined: nothing yet. */
async function outcome(txn: string, waitS: number): Promise<string | undefined> {
  try {
    const data = object((await call("GET", `${OVSE}/result/${txn}?wait=${waitS}`, { waitS }))["data"]);
    if (read(data, "boolean", "pending")) return undefined;
    const passed = read(data, "boolean", "verification_passed", "verificationPassed"); // A setting of the app says which.
    const claims = object(data["verified_claims"] ?? data["verifiedClaims"]);
    return passed ? `passed: ${Object.keys(claims).sort().join(", ")}` : `not passed: ${read(data, "string", "message")}`;
  } catch (error) {
    if (error instanceof Failure && error.status === 410) return "expired";
    if (!(error instanceof Failure && REPEATABLE.includes(error.status))) throw error;
    return void console.error(error.message);
  }
}

async function verify(reference: string, claims: string[]): Promise<void> {
  const hints = new Map<string, () => void>(); // By transaction. In production a table, which takes one outcome for each.
  const server = receiver((txn) => hints.get(txn)?.()).listen(Number(PORT), "127.0.0.1"); // In production behind a proxy with TLS.
  await once(server, "listening");
  const here = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const body = { claims, channel: "qr", client_reference_id: reference, webhook_url: `${PUBLIC_URL ?? here}/hook` };
  const opened = await call("POST", `${OVSE}/init`, { body, key: randomUUID() });
  const [txn, end] = [read(opened, "string", "txnId"), Date.parse(read(opened, "string", "expiresAt")) + GRACE_MS];
  let hint = new AbortController();
  hints.set(txn, () => hint.abort());
  console.log(`receiver ${here}/hook\ntxn ${txn}`);
  console.log(`qr ${read(await call("POST", `${OVSE}/qr-intent`, { body: { txnId: txn } }), "string", "qrPayload")}`);
  let found: string | undefined;
  while (found === undefined && Date.now() < end) {
    const hinted = await pause(QUIET_MS, false, { signal: hint.signal }).catch(() => true);
    hint = new AbortController();
    found = await outcome(txn, hinted ? 0 : WAIT_S);
  }
  server.close().closeAllConnections();
  if (found === undefined) throw new Error(`${reference}: no outcome yet; fetch the result of ${txn} later`);
  console.log(`outcome ${reference} ${found}`);
}

async function event(name: string, places: number, guests: number): Promise<void> {
  const body = { name, claims: ["name"], max_guests: places, expires_at: new Date(Date.now() + 8 * 3_600_000) };
  const created = await call("POST", `${OVSE}/events`, { body, key: randomUUID() });
  const path = `${OVSE}/events/${read(created, "string", "event_id")}`;
  console.log(`event ${created["event_id"]}\nqr_url ${read(created, "string", "qr_url")}`);
  for (let now = await call("GET", path); now["status"] === "active"; now = await call("GET", path)) {
    if (read(now, "number", "registration_count") >= guests) break;
    await pause(2000);
  }
  await call("PATCH", path, { body: { is_active: false } }); // Before the list, so that it is complete.
  let page: unknown = `${path}/registrations?page_size=100`;
  while (typeof page === "string") {
    const listed = await call("GET", page);
    for (const guest of list(listed["registrations"])) {
      console.log(`guest ${read(guest, "string", "verified_at")} ${read(object(guest["verified_claims"]), "string", "residentName")}`);
    }
    page = listed["next"]; // Absent on the last page.
  }
}

try {
  const [command, name = "", ...others] = process.argv.slice(2);
  const [places = 0, guests = 0] = others.map(Number);
  if (!BASE || !KEY || !APP) throw new Error("set BASE, KEY and APP");
  if (command === "verify" && others.length > 0) await verify(name, others);
  else if (command === "event" && places > 0 && guests > 0) await event(name, places, guests);
  else throw new Error("usage: backend verify REFERENCE CLAIM... | event NAME PLACES GUESTS");
} catch (error) {
  console.error(`stopped: ${error instanceof Error ? error.message : error}`);
  process.exit(1);
}
