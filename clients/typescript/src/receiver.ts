/**
 * What a receiver of webhooks must do. A webhook has no signature, and anybody can post to its address: so it is matched with
 * what is open, and the record is fetched with the key before anything is believed.
 */

import { record, text } from "./client.js";
import type { Sakshi, Schemas, Verdict } from "./client.js";

export type Kind = "ovse" | "esign" | "doclocker" | "estamp" | "wealth_consent" | "wealth_data" | "wealth_historical";

/** An outcome. Those of `ovse`, `esign` and `doclocker` were fetched; the others have no poll, so keep the URL of their webhooks secret. */
export type Arrival =
  | { kind: "ovse"; id: string; key: string; outcome: Verdict }
  | { kind: "esign"; id: string; key: string; outcome: Schemas["EsignStatus"] }
  | { kind: "doclocker"; id: string; key: string; outcome: Schemas["DocLockerDetails"] }
  | { kind: Exclude<Kind, "ovse" | "esign" | "doclocker">; id: string; key: string; outcome: unknown };

export type Handlers = {
  /** Whether you wait for this: an id of yours that has no outcome yet. */
  isOpen(kind: Kind, id: string): boolean | Promise<boolean>;
  /** Stores an outcome under its key. It may be called twice for one key: let the key be unique in your database. */
  onOutcome(arrival: Arrival): void | Promise<void>;
  /** What could not be fetched or stored. A poll finds it later. */
  onError?(error: unknown): void;
};

/** Kinds whose records are fetched. Their ids are UUIDs. */
const POLLED = new Set<Kind>(["ovse", "esign", "doclocker"]);
const UUID = /^[0-9a-f-]{36}$/i;

/** Where the id of what ended is, and what tells two webhooks of one flow apart. */
const RULES: [Kind, (body: Body, data: Body) => (string | undefined)[]][] = [
  ["ovse", (_, data) => [text(data["txn_id"] ?? data["txnId"])]],
  ["esign", (body) => [text(body["documentId"])]],
  ["doclocker", (_, data) => [text(data["transactionId"])]],
  ["estamp", (_, data) => [text(data["eStampId"])]],
  ["wealth_data", (body) => [text(body["uniqueIdentifier"]), text(body["txnId"]), text(body["dataType"])]],
  ["wealth_historical", (body) => ["uniqueIdentifier", "consentId", "accountId", "fromDate", "toDate"].map((name) => text(body[name]))],
  ["wealth_consent", (body) => ["uniqueIdentifier", "consentId", "status"].map((name) => text(body[name]))],
];
type Body = Record<string, unknown>;

/** Webhooks that are taken at one time. They keep their bodies, and strangers can post them too. */
const TAKEN_MAX = 100;

export class Receiver {
  /** Keys whose outcome is being fetched or stored. */
  private readonly underWay = new Set<string>();
  private taken = 0;

  constructor(
    private readonly sakshi: Sakshi,
    private readonly handlers: Handlers,
  ) {}

  /** Takes the body of a webhook in the background. Returns false, and drops the body, while 100 others are taken: answer 503 then. */
  takeLater(body: unknown): boolean {
    if (this.taken >= TAKEN_MAX) return false;
    this.taken += 1;
    void this.take(body).finally(() => {
      this.taken -= 1;
    });
    return true;
  }

  /** Takes the body of a webhook that was answered already. It never throws. */
  async take(body: unknown): Promise<void> {
    try {
      const found = recognised(body);
      if (!found) return;
      const { kind, id, key } = found;
      const name = `${kind} ${key}`;
      if (this.underWay.has(name) || !(await this.handlers.isOpen(kind, id)) || this.underWay.has(name)) return;
      this.underWay.add(name);
      try {
        const arrival = await this.fetched(kind, id, key, body);
        if (arrival) await this.handlers.onOutcome(arrival);
      } finally {
        this.underWay.delete(name);
      }
    } catch (error) {
      this.handlers.onError?.(error);
    }
  }

  /** The record as the service has it; undefined while it is pending there. */
  private async fetched(kind: Kind, id: string, key: string, body: unknown): Promise<Arrival | undefined> {
    switch (kind) {
      case "ovse": {
        const outcome = await this.sakshi.verdict(id);
        if (!outcome || outcome.txnId.toLowerCase() !== id) return undefined;
        return { kind, id: outcome.txnId, key: outcome.txnId, outcome };
      }
      case "esign": {
        const outcome = await this.sakshi.esignStatus(id);
        return outcome.pending === true ? undefined : { kind, id, key, outcome };
      }
      case "doclocker": {
        const outcome = await this.sakshi.documents(id);
        return outcome.pending === true ? undefined : { kind, id, key, outcome };
      }
      default:
        return { kind, id, key, outcome: body };
    }
  }
}

/** What a body is about: its kind, its id, and the key under which it comes once. */
export function recognised(body: unknown): { kind: Kind; id: string; key: string } | undefined {
  const whole = record(body);
  for (const [kind, parts] of RULES) {
    const found = parts(whole, record(whole["data"]));
    const [id] = found;
    if (!id || found.some((part) => !part)) continue;
    if (!POLLED.has(kind)) return { kind, id, key: found.join(" ") };
    // The sender chooses the spelling of an id: each record has one key.
    return UUID.test(id) ? { kind, id: id.toLowerCase(), key: id.toLowerCase() } : undefined;
  }
  return undefined;
}
