//! The webhooks in the document: the requests that this service makes of a client.

use serde_json::{Value, json};

use super::{examples, flow_examples};

/// What every webhook is like.
const MANNERS: &str = "Sent exactly once: there is no second attempt, whatever becomes of the first. It carries no authentication and \
    no signature, so match its id with a request of yours and fetch the record before you rely on it. Answer with any 2xx within a few \
    seconds; the body is ignored and redirects are not followed.";

/// The `webhooks` of the document.
pub(super) fn describe() -> Value {
    let body = json!({ "application/json": {
        "schema": { "$ref": "#/components/schemas/OvseOutcome" },
        "examples": examples::outcomes(),
    } });
    let mut webhooks = json!({ "ovse": { "post": {
        "tags": ["Webhooks"],
        "operationId": "onOvse",
        "summary": "A transaction was completed.",
        "description": format!("To the transaction's `webhook_url`. {MANNERS} An expired transaction sends nothing."),
        "security": [],
        "requestBody": { "required": true, "content": body },
        "responses": responses(),
    } } });
    for flow in &FLOWS {
        webhooks[flow.name] = flow.describe();
    }
    webhooks
}

/// The webhook of a flow that ends upstream.
struct FlowWebhook {
    name: &'static str,
    operation: &'static str,
    summary: &'static str,
    target: &'static str,
    schema: &'static str,
    examples: fn() -> Value,
}

const FLOWS: [FlowWebhook; 6] = [
    FlowWebhook {
        name: "esign",
        operation: "onEsign",
        summary: "A document was completed, rejected or has expired.",
        target: "To the `responseUrl` of its request, or else to the URL that is registered for `ESign`.",
        schema: "EsignOutcome",
        examples: flow_examples::esign_outcomes,
    },
    FlowWebhook {
        name: "doclocker",
        operation: "onDocLocker",
        summary: "Nothing is awaited from the locker any more.",
        target: "To the URL that is registered for `DocLocker`.",
        schema: "DocLockerOutcome",
        examples: flow_examples::doclocker_outcomes,
    },
    FlowWebhook {
        name: "estamp",
        operation: "onEStamp",
        summary: "An e-stamp was completed, rejected or has expired.",
        target: "To the URL that is registered for `RegistryEStamp` or `PhysicalEStamp`, whichever it was begun as. There is no poll.",
        schema: "EStampOutcome",
        examples: flow_examples::estamp_outcomes,
    },
    FlowWebhook {
        name: "wealth_consent",
        operation: "onWealthConsent",
        summary: "A consent was accepted, rejected or revoked, will expire soon, or has expired.",
        target: "To the URL for consents that the operator has set. Sent for each status once.",
        schema: "WealthConsentChange",
        examples: flow_examples::wealth_consents,
    },
    FlowWebhook {
        name: "wealth_data",
        operation: "onWealthData",
        summary: "Financial data is ready, or could not be had.",
        target: "To the URL for data that the operator has set. Sent for raw and for analysed data.",
        schema: "WealthDataNotice",
        examples: flow_examples::wealth_data,
    },
    FlowWebhook {
        name: "wealth_historical",
        operation: "onWealthHistorical",
        summary: "A historical fetch has completed.",
        target: "To the URL for historical data that the operator has set.",
        schema: "WealthHistoricalNotice",
        examples: flow_examples::wealth_historical,
    },
];

impl FlowWebhook {
    fn describe(&self) -> Value {
        json!({ "post": {
            "tags": ["Webhooks"],
            "operationId": self.operation,
            "summary": self.summary,
            "description": format!("{} {MANNERS}", self.target),
            "security": [],
            "requestBody": { "required": true, "content": { "application/json": {
                "schema": { "$ref": format!("#/components/schemas/{}", self.schema) },
                "examples": (self.examples)(),
            } } },
            "responses": responses(),
        } })
    }
}

fn responses() -> Value {
    json!({
        "2XX": { "description": "Taken; the body is ignored." },
        "default": { "description": "Lost: the outcome stays available by polling where there is a poll, and the webhook is not sent again." },
    })
}
