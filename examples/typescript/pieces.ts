// The pieces of code in the documentation, between their marks. tests/clients/run.sh runs all of them against a sandbox.

// code: credits
import { Sakshi } from "sakshi-client";

const { BASE = "", KEY = "", APP = "" } = process.env;
const sakshi = new Sakshi({ base: BASE, key: KEY, app: APP });
console.log((await sakshi.credits()).balance);
// end

const FILE = "JVBERi0xLjQKJSVFT0YK";

async function web(): Promise<string> {
  // code: open-web
  const opened = await sakshi.openVerification({
    claims: ["name", "age_above_18"],
    channel: "web",
    client_reference_id: "order-42",
    redirect_url: "https://shop.example/return?order=42",
    webhook_url: "https://shop.example/hooks/sakshi",
  });
  console.log(opened.txnId, opened.requestUrl);
  // end
  return opened.txnId;
}

async function result(txnId: string): Promise<void> {
  // code: result
  const verdict = await sakshi.waitForResult(txnId);
  if (verdict.state === "passed") console.log("hello", verdict.claims["residentName"]);
  else console.log(verdict.state, verdict.errorCode, verdict.message);
  // end
}

async function qr(): Promise<void> {
  // code: open-qr
  const opened = await sakshi.openVerification({ claims: ["name"], channel: "qr" });
  console.log((await sakshi.qrIntent(opened.txnId)).qrPayload);
  // end
}

async function event(): Promise<string> {
  // code: create-event
  const end = new Date(Date.now() + 8 * 3_600_000).toISOString();
  const event = await sakshi.createEvent(
    { name: "Open day", claims: ["name"], max_guests: 200, expires_at: end, webhook_url: "https://shop.example/hooks/sakshi" },
    { idempotencyKey: `open-day-${end}` },
  );
  console.log(event.qr_url);
  // end
  return event.event_id;
}

async function guests(eventId: string): Promise<void> {
  // code: list-guests
  for await (const guest of sakshi.guests(eventId)) {
    console.log(guest.verified_at, guest.verified_claims["residentName"]);
  }
  // end
}

async function check(): Promise<void> {
  // code: check
  const { data } = await sakshi.check("bank-account", {
    account_number: "123456789012",
    ifsc: "EXMP0001234",
    name: "Asha Rao",
    consent: "Y",
    consent_text: "I agree.",
  });
  console.log(data.status, data.name_match);
  // end
}

async function repeat(): Promise<void> {
  // code: repeat
  const terms = { claims: ["name" as const], channel: "web" as const };
  const first = await sakshi.openVerification(terms, { idempotencyKey: "order-77-1" });
  const again = await sakshi.openVerification(terms, { idempotencyKey: "order-77-1" });
  console.log(first.txnId === again.txnId);
  // end
}

async function esign(): Promise<string> {
  // code: order-esign
  const ordered = await sakshi.orderEsign({
    documentInfo: { name: "Loan agreement", content: FILE },
    signerInfo: [{ signerName: "Asha Rao", signerRefId: "borrower" }],
    documentReferenceId: "loan-agreement-7",
    responseUrl: "https://shop.example/hooks/sakshi",
  });
  for (const signer of ordered.signerInfo) console.log(signer.signerRefId, signer.signingUrl);
  // end
  return ordered.documentId;
}

async function signed(documentId: string): Promise<void> {
  // code: poll-esign
  const status = await sakshi.esignStatus(documentId);
  console.log(status.pending ? "waiting" : status.documentStatus);
  // end
}

async function documents(): Promise<void> {
  // code: order-documents
  const ordered = await sakshi.requestDocuments({
    docs: ["driving_licence"],
    consent: "Y",
    consent_text: "I agree that Example Bank fetches this document from my locker.",
  });
  console.log(ordered.requestUrl);
  // end
}

async function estamp(): Promise<void> {
  // code: order-estamp
  const ordered = await sakshi.orderEStamp({
    apiType: "RegistryEStamp",
    document: { documentName: "lease.pdf", base64FileData: FILE },
    signatoriesInfo: [{ name: "Asha Rao", emailID: "asha@example.com", signType: "electronic" }],
  });
  console.log(ordered.eStampId);
  // end
}

async function wealth(): Promise<void> {
  // code: ask-wealth
  const ordered = await sakshi.requestWealthConsent({
    consent: "Y",
    consent_text: "I agree that Example Bank asks for my account statements.",
  });
  console.log(ordered.uniqueIdentifier, ordered.requestUrl);
  // end
}

async function receive(): Promise<unknown> {
  // code: receive
  const { default: express } = await import("express");
  const { Receiver } = await import("sakshi-client");
  const { webhooks } = await import("sakshi-client/express");

  const orders = new Map<string, unknown>(); // By transaction, undefined while it is open. In production a table.
  const receiver = new Receiver(sakshi, {
    isOpen: (_kind, id) => orders.has(id) && orders.get(id) === undefined,
    onOutcome: (arrival) => void orders.set(arrival.id, arrival.outcome),
  });
  const app = express();
  app.post("/hooks/sakshi", webhooks(receiver));
  // end
  return app;
}

console.log("txn", await web());
await qr();
await guests(await event());
await check();
await repeat();
await signed(await esign());
await documents();
await estamp();
await wealth();
await receive();
const ended = process.env["ENDED"];
if (ended !== undefined) await result(ended);
