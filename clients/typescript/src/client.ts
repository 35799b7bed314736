/** Requests to a sakshi service: what each operation is called, and how a request is repeated. */

import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import type { components } from "./api.js";

/** The bodies of the API, as its OpenAPI document has them. */
export type Schemas = components["schemas"];

export type Settings = {
  /** Where the service is, such as `https://verify.example`. */
  base: string;
  /** The API key. */
  key: string;
  /** The app id. */
  app: string;
  /** How often a request is sent at most, where repeating it is safe. Default: 5. */
  attempts?: number;
  /** Milliseconds that one attempt may take, beside what the service is asked to wait. Default: 30,000. */
  timeoutMs?: number;
};

export type Options = {
  /** Names what is wanted once; a repeated request with the same key and body is carried out once. Default: a random one. */
  idempotencyKey?: string;
  /** A correlation id of your own. It comes back in errors, results and webhooks. */
  requestId?: string;
};

/** What is sent, beside method and path. */
type Sent = Options & {
  body?: unknown;
  /** A POST that changes nothing. */
  isSafe?: boolean;
  /** Seconds that the service may wait with its answer. */
  waitS?: number;
  signal?: AbortSignal | undefined;
};

/** How a verification ended, whatever spelling the app is set to. */
export type Verdict = {
  state: "passed" | "failed" | "expired";
  txnId: string;
  /** What the person shared; empty unless the verification passed. */
  claims: Readonly<Record<string, unknown>>;
  /** Why it failed: a code of the authority or of the service. */
  errorCode?: string;
  /** The same in words, for developers. */
  message: string;
};

/** The kinds of checks, and what each is asked and answers. */
export type Check = {
  pan: [Schemas["PanRequest"], Schemas["PanAnswer"]];
  gst: [Schemas["GstRequest"], Schemas["GstAnswer"]];
  "bank-account": [Schemas["BankAccountRequest"], Schemas["BankAccountAnswer"]];
  ifsc: [Schemas["IfscRequest"], Schemas["IfscAnswer"]];
  "voter-id": [Schemas["VoterIdRequest"], Schemas["VoterIdAnswer"]];
};

/** The service refused a request, or (status 0) gave no answer. */
export class SakshiError extends Error {
  constructor(
    readonly status: number,
    /** The stable code of the refusal; `no_answer` when there was none. */
    readonly code: string,
    message: string,
    /** What is wrong with each field. */
    readonly errors: readonly { field: string; message: string }[],
    /** By this the operator finds the request. */
    readonly errorId?: string,
  ) {
    super(message);
    this.name = "SakshiError";
  }
}

const OVSE = "/api/v1/nationalid-ovse";
const REPEATABLE = new Set([0, 408, 429, 500, 502, 503, 504]);
const POLL_S = 25;
/** Retries that a client may save up, and the part of one that each request adds. They bound the load of an outage. */
const RETRIES_MAX = 50;
const RETRIES_PER_REQUEST = 0.1;

export class Sakshi {
  private retries = RETRIES_MAX;

  constructor(private readonly settings: Settings) {}

  /** Opens a verification. It costs one credit. Send the person to `requestUrl`. */
  openVerification(terms: Schemas["InitRequest"], options: Options = {}): Promise<Schemas["InitResponse"]> {
    return this.post(`${OVSE}/init`, terms, options);
  }

  /** The value of a QR code for the identity app's scanner. */
  qrIntent(txnId: string): Promise<Schemas["QrIntentResponse"]> {
    return this.call("POST", `${OVSE}/qr-intent`, { body: { txnId }, isSafe: true });
  }

  /** The result as it is now, or within `waitS` seconds (30 at most). */
  result(txnId: string, waitS = 0, signal?: AbortSignal): Promise<Schemas["OvseResult"]> {
    return this.call("GET", `${OVSE}/result/${encodeURIComponent(txnId)}?wait=${waitS}`, { waitS, signal });
  }

  /** How a verification ended, or undefined while it is pending. */
  async verdict(txnId: string, waitS = 0, signal?: AbortSignal): Promise<Verdict | undefined> {
    try {
      return verdictOf(txnId, await this.result(txnId, waitS, signal));
    } catch (error) {
      if (!(error instanceof SakshiError && error.status === 410)) throw error;
      return { state: "expired", txnId, claims: {}, message: error.message };
    }
  }

  /** Waits until a verification has ended. */
  async waitForResult(txnId: string, signal?: AbortSignal): Promise<Verdict> {
    for (;;) {
      const verdict = await this.verdict(txnId, POLL_S, signal);
      if (verdict) return verdict;
    }
  }

  createEvent(terms: Schemas["CreateEventRequest"], options: Options = {}): Promise<Schemas["CreateEventResponse"]> {
    return this.post(`${OVSE}/events`, terms, options);
  }

  event(eventId: string): Promise<Schemas["EventResponse"]> {
    return this.call("GET", `${OVSE}/events/${encodeURIComponent(eventId)}`);
  }

  changeEvent(eventId: string, changes: Schemas["PatchEventRequest"]): Promise<Schemas["EventResponse"]> {
    return this.call("PATCH", `${OVSE}/events/${encodeURIComponent(eventId)}`, { body: changes });
  }

  /** All verified guests of an event, oldest first. */
  async *guests(eventId: string): AsyncGenerator<Schemas["RegistrationRow"]> {
    for (let page: string | undefined = `${OVSE}/events/${encodeURIComponent(eventId)}/registrations?page_size=100`; page; ) {
      const list: Schemas["RegistrationsPage"] = await this.call("GET", page);
      yield* list.registrations;
      page = list.next ?? undefined;
    }
  }

  /** Verifies a number while you wait. It costs no credit. */
  check<K extends keyof Check>(kind: K, request: Check[K][0]): Promise<Check[K][1]> {
    return this.call("POST", `/api/v1/${encodeURIComponent(kind)}/verify`, { body: request, isSafe: true });
  }

  orderEsign(order: Schemas["EsignRequest"], options: Options = {}): Promise<Schemas["EsignResponse"]> {
    return this.post("/api/v1/esign/request", order, options);
  }

  esignStatus(documentId: string): Promise<Schemas["EsignStatus"]> {
    return this.call("POST", "/api/v1/esign/status", { body: { documentId }, isSafe: true });
  }

  requestDocuments(order: Schemas["DocLockerInitRequest"], options: Options = {}): Promise<Schemas["DocLockerResponse"]> {
    return this.post("/api/v1/doclocker/init", order, options);
  }

  documents(transactionId: string): Promise<Schemas["DocLockerDetails"]> {
    return this.call("GET", `/api/v1/doclocker/details/${encodeURIComponent(transactionId)}`);
  }

  orderEStamp(order: Schemas["EStampInitRequest"], options: Options = {}): Promise<Schemas["EStampResponse"]> {
    return this.post("/api/v1/estamp/init", order, options);
  }

  requestWealthConsent(order: Schemas["WealthConsentRequest"], options: Options = {}): Promise<Schemas["WealthConsentResponse"]> {
    return this.post("/api/v1/wealth/consents", order, options);
  }

  credits(): Promise<Schemas["Balance"]> {
    return this.call("GET", "/api/v1/credits");
  }

  /** Sets the webhook URL of a flow, or removes it. */
  setWebhookUrl(apiType: Schemas["RegisterWebhookRequest"]["apiType"], webhookUrl: string | null): Promise<unknown> {
    return this.call("PUT", "/api/v1/user/webhook", { body: { apiType, webhookUrl } });
  }

  private post<T>(path: string, body: unknown, options: Options): Promise<T> {
    return this.call("POST", path, { ...options, body, idempotencyKey: options.idempotencyKey ?? randomUUID() });
  }

  /** Any operation. A POST without an idempotency key is sent once, unless it changes nothing. */
  async call<T>(method: string, path: string, sent: Sent = {}): Promise<T> {
    const { base, key, app, attempts = 5, timeoutMs = 30_000 } = this.settings;
    const headers = new Headers({ "X-API-KEY": key, "X-API-APP-ID": app });
    if (sent.body !== undefined) headers.set("Content-Type", "application/json");
    if (sent.idempotencyKey !== undefined) headers.set("Idempotency-Key", sent.idempotencyKey);
    if (sent.requestId !== undefined) headers.set("X-Request-ID", sent.requestId);
    const body = sent.body === undefined ? null : JSON.stringify(sent.body);
    const mayRepeat = method !== "POST" || sent.isSafe === true || sent.idempotencyKey !== undefined;
    this.retries = Math.min(this.retries + RETRIES_PER_REQUEST, RETRIES_MAX);
    for (let attempt = 1; ; attempt += 1) {
      const patienceMs = timeoutMs + 1000 * (sent.waitS ?? 0);
      const [answer, retryAfter] = await attempted(base.replace(/\/+$/, "") + path, { method, headers, body }, patienceMs, sent.signal);
      if (!(answer instanceof SakshiError)) return answer as T;
      sent.signal?.throwIfAborted();
      if (!mayRepeat || attempt >= attempts || !REPEATABLE.has(answer.status) || this.retries < 1) throw answer;
      this.retries -= 1;
      // Clients that were refused at the same moment come back at different ones.
      const jitter = 1 + Math.random() / 2;
      await pause(1000 * jitter * (retryAfter ?? 2 ** (attempt - 1)), undefined, { signal: sent.signal });
    }
  }
}

/** One attempt: the body of the answer or the failure, and the seconds that the service asks to wait. */
async function attempted(url: string, request: RequestInit, timeoutMs: number, caller?: AbortSignal): Promise<[unknown, number | undefined]> {
  const controller = new AbortController();
  const abort = () => controller.abort(caller?.reason);
  const timer = setTimeout(() => controller.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
  caller?.addEventListener("abort", abort, { once: true });
  try {
    caller?.throwIfAborted();
    // A redirect is not followed: the key goes nowhere else.
    const answer = await fetch(url, { ...request, signal: controller.signal, redirect: "manual" });
    const words = await textOf(answer, controller.signal);
    if (answer.ok) return [JSON.parse(words) as unknown, undefined];
    const retryAfter = answer.headers.get("Retry-After") ?? "";
    const refused = record(parsed(words));
    const errors = Array.isArray(refused["errors"]) ? refused["errors"] : [];
    const failure = new SakshiError(
      answer.status,
      text(refused["code"]) ?? "unknown",
      text(refused["message"]) ?? `status ${answer.status}`,
      errors.map(record).map((wrong) => ({ field: text(wrong["field"]) ?? "", message: text(wrong["message"]) ?? "" })),
      text(refused["errorId"]),
    );
    return [failure, /^\d{1,5}$/.test(retryAfter) ? Number(retryAfter) : undefined];
  } catch (error) {
    const words = error instanceof Error ? `${error.message} ${error.cause ?? ""}`.trim() : String(error);
    return [new SakshiError(0, "no_answer", words, []), undefined];
  } finally {
    clearTimeout(timer);
    caller?.removeEventListener("abort", abort);
  }
}

/** Reads a body until the signal. `fetch` may forget its signal once the headers have come. */
async function textOf(answer: Response, signal: AbortSignal): Promise<string> {
  const reader = answer.body?.getReader();
  if (!reader) return "";
  const cancel = () => void reader.cancel().catch(() => undefined);
  signal.addEventListener("abort", cancel, { once: true });
  const decoder = new TextDecoder();
  let words = "";
  for (;;) {
    signal.throwIfAborted();
    const { done, value } = await reader.read();
    if (done) break;
    words += decoder.decode(value, { stream: true });
  }
  signal.throwIfAborted(); // A cancelled body ends like a whole one.
  return words + decoder.decode();
}

/** The body of a refusal; undefined if it is a proxy's page. */
function parsed(words: string): unknown {
  try {
    return JSON.parse(words);
  } catch {
    return undefined;
  }
}

/** A setting of the app chooses between `verification_passed` and `verificationPassed`. */
function verdictOf(txnId: string, result: Schemas["OvseResult"]): Verdict | undefined {
  const body = record(result);
  const data = record(body["data"]);
  if (data["pending"] !== false) return undefined;
  const passed = (data["verification_passed"] ?? data["verificationPassed"]) === true;
  const errorCode = text(data["error_code"] ?? data["errorCode"]);
  return {
    state: passed ? "passed" : "failed",
    txnId: text(data["txn_id"] ?? data["txnId"]) ?? txnId,
    claims: record(data["verified_claims"] ?? data["verifiedClaims"]),
    message: text(data["message"]) ?? text(body["message"]) ?? "",
    ...(errorCode === undefined ? {} : { errorCode }),
  };
}

export function record(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
