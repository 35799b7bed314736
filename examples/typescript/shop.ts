// A shop that verifies its customers: an order page, a return page, a receiver of webhooks and a reconciler. README.md says how to
// run it.

import { randomUUID } from "node:crypto";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

import express from "express";
import Fastify from "fastify";
import { Receiver, Sakshi, SakshiError } from "sakshi-client";
import type { Schemas, Verdict } from "sakshi-client";
import { webhooks } from "sakshi-client/express";
import { webhooks as fastifyWebhooks } from "sakshi-client/fastify";

const { BASE = "", KEY = "", APP = "", PORT = "0", PUBLIC_URL, ORDERS = "orders.jsonl", FRAMEWORK = "express" } = process.env;
const QUIET_MS = 10_000; // So long a webhook may take before the result is polled.
const AGAIN_MS = 2_000; // After a failure that may pass.

type Claims = Schemas["InitRequest"]["claims"];
type Order = { reference: string; key: string; claims: Claims; url: string; txn?: string; page?: string; outcome?: string };

/** The orders, in a file that is only appended to. In production a table, where the reference and the transaction are unique. */
class Orders {
  private readonly all = new Map<string, Order>();

  constructor(private readonly file: string) {
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
    for (const line of lines) this.apply(JSON.parse(line) as Order);
  }

  private apply(order: Order): void {
    this.all.set(order.reference, { ...this.all.get(order.reference), ...order });
  }

  /** Written before it counts: what was sent to the service is never forgotten. */
  keep(order: Order): void {
    appendFileSync(this.file, `${JSON.stringify(order)}\n`, { flush: true });
    this.apply(order);
  }

  /** The first outcome of an order stays. */
  settle(txn: string, outcome: string): void {
    const order = this.of(txn);
    if (!order || order.outcome !== undefined) return;
    this.keep({ ...order, outcome });
    console.log(`outcome ${order.reference} ${outcome}`);
  }

  find = (reference: string): Order | undefined => this.all.get(reference);
  of = (txn: string): Order | undefined => [...this.all.values()].find((order) => order.txn === txn);
  open = (): Order[] => [...this.all.values()].filter((order) => order.outcome === undefined);
}

const sakshi = new Sakshi({ base: BASE, key: KEY, app: APP });
const orders = new Orders(ORDERS);

const receiver = new Receiver(sakshi, {
  isOpen: (kind, id) => kind === "ovse" && orders.of(id) !== undefined && orders.of(id)?.outcome === undefined,
  onOutcome: (arrival) => void (arrival.kind === "ovse" && orders.settle(arrival.id, told(arrival.outcome))),
  onError: (error) => console.error(`webhook: ${error}`),
});

function told(verdict: Verdict): string {
  if (verdict.state === "expired") return "expired";
  return verdict.state === "passed" ? `passed: ${Object.keys(verdict.claims).sort().join(", ")}` : `not passed: ${verdict.message}`;
}

/** Opens the verification of an order. However often this happens, it is opened and paid once: the key is kept with the order. */
async function open(order: Order): Promise<Order> {
  const terms = { claims: order.claims, channel: "web" as const, client_reference_id: order.reference, redirect_url: `${order.url}/orders/${order.reference}`, webhook_url: `${order.url}/hooks/sakshi` };
  const opened = await sakshi.openVerification(terms, { idempotencyKey: order.key });
  const known = { ...order, txn: opened.txnId, page: opened.requestUrl ?? undefined };
  orders.keep(known);
  console.log(`order ${order.reference} ${opened.txnId}`);
  return known;
}

/** Finds the outcome if no webhook does: a webhook may be lost, and one that came may have been for nothing. */
async function reconcile(order: Order, quietMs: number): Promise<void> {
  await pause(quietMs);
  while (orders.find(order.reference)?.outcome === undefined) {
    try {
      const { txn } = order.txn === undefined ? await open(order) : order;
      if (txn !== undefined) orders.settle(txn, told(await sakshi.waitForResult(txn)));
    } catch (error) {
      console.error(`${order.reference}: ${error}`);
      if (error instanceof SakshiError && error.status >= 400 && error.status < 429 && error.status !== 408) return;
      await pause(AGAIN_MS);
    }
  }
}

const form = `<!doctype html><title>Shop</title><form method="post" action="/orders">
<label>Order <input name="reference" required pattern="[\\w-]+"></label> <input type="hidden" name="claims" value="name age_above_18">
<button>Verify my age</button></form>`;

function returnPage(order: Order): string {
  return `<!doctype html><title>Order ${order.reference}</title><p>Order ${order.reference}: ${order.outcome?.split(":")[0] ?? "we are waiting for your answer"}</p>`;
}

const app = express();
app.get("/", (_, response) => void response.send(form));
app.post("/orders", express.urlencoded({ extended: false }), async (request, response) => {
  const { reference, claims } = request.body as Record<string, string>;
  if (!/^[\w-]{1,64}$/.test(reference ?? "") || reference === undefined) return void response.status(400).send("an order has letters, digits and -");
  let order = orders.find(reference);
  if (!order) {
    order = { reference, key: randomUUID(), claims: (claims ?? "name").split(" ") as Claims, url };
    orders.keep(order);
  }
  try {
    if (order.page === undefined) order = await open(order);
    void reconcile(order, QUIET_MS);
    response.redirect(303, order.page ?? `/orders/${reference}`);
  } catch (error) {
    const words = error instanceof SakshiError ? `${error.status} ${error.code}: ${error.message} ${JSON.stringify(error.errors)} ${error.errorId}` : String(error);
    console.error(words);
    response.status(502).send("This did not work. Please try again.");
  }
});
app.get("/orders/:reference", (request, response) => {
  const order = orders.find(request.params.reference);
  return order ? void response.send(returnPage(order)) : void response.status(404).send("no such order");
});
/** The verified guests of an event. */
app.get("/events/:event/guests", async (request, response) => {
  const guests: unknown[] = [];
  for await (const guest of sakshi.guests(request.params.event)) guests.push(guest.verified_claims["residentName"]);
  response.json(guests);
});
app.post("/hooks/sakshi", webhooks(receiver));

const server = app.listen(Number(PORT), "127.0.0.1"); // In production behind a proxy with TLS.
await new Promise((resolve, reject) => server.once("listening", resolve).once("error", reject));
let url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
console.log(`listening ${url}`);
if (FRAMEWORK === "fastify") {
  const hooks = Fastify();
  await hooks.register(fastifyWebhooks(receiver), { prefix: "/hooks" });
  url = await hooks.listen({ host: "127.0.0.1", port: 0 });
}
console.log(`receiver ${url}/hooks/sakshi`);
url = PUBLIC_URL ?? url;
for (const order of orders.open()) void reconcile(order, 0);
