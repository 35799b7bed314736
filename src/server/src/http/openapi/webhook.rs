//! The webhooks in the document: the requests that this service makes of a client.

use serde_json::{Value, json};

use super::{examples, flow_examples};

/// What every webhook is like.
const MANNERS: &str = "Sent exactly once: there is no second attempt, whatever becomes of the first. It carries no authentication and \
    no signature, so match its id with a request of yours, and where there is a poll, fetch the record before you rely on it. Answer with any 2xx within a few \
    seconds; the body is ignored and redirects are not followed.";

/// The `webhooks` of the document.
pub(super) fn describe() -> Value {
    let body = json!({ "application/json": {
        "schema": { "$ref": "#/components/schemas/OvseOutcome" },
        "examples": examples::outcomes(),
    } });
    let mut webhooks = json!({ "ovse": { "post": {
        "tags": ["OVSE"],
        "operationId": "ovse_webhook",
        "summary": "A transaction was completed.",
        "description": format!("To the transaction's `webhook_url`. {MANNERS} An expired transaction sends nothing."),
        "security": [],
        "requestBody": { "required": true, "content": body },
        "responses": responses(true),
    } } });
    for hook in hooks() {
        let name = hook.name;
        webhooks[name] = hook.describe();
    }
    webhooks
}

/// The webhook of one kind of flow.
struct Hook {
    name: &'static str,
    tag: &'static str,
    summary: &'static str,
    target: &'static str,
    schema: &'static str,
    examples: Value,
    is_polled: bool,
}

fn hooks() -> [Hook; 6] {
    [
        Hook {
            name: "esign",
            tag: "eSign",
            summary: "A document was completed, rejected or has expired.",
            target: "To the `responseUrl` of its request, or else to the URL that is registered for `ESign`.",
            schema: "EsignOutcome",
            examples: flow_examples::esign_outcomes(),
            is_polled: true,
        },
        Hook {
            name: "doclocker",
            tag: "Document locker",
            summary: "Nothing is awaited from the locker any more.",
            target: "To the URL that is registered for `DocLocker`.",
            schema: "DocLockerOutcome",
            examples: flow_examples::doclocker_outcomes(),
            is_polled: true,
        },
        Hook {
            name: "estamp",
            tag: "E-stamp",
            summary: "An e-stamp was completed, rejected or has expired.",
            target: "To the URL that is registered for the `apiType` of its request.",
            schema: "EStampOutcome",
            examples: flow_examples::stamps(),
            is_polled: false,
        },
        Hook {
            name: "wealth-consent",
            tag: "Wealth data",
            summary: "A consent was accepted, rejected or revoked, expires soon, or has expired.",
            target: "To the URL for consents that the operator has set for the app, once for each of these moves.",
            schema: "WealthConsentMoved",
            examples: flow_examples::consents(),
            is_polled: false,
        },
        Hook {
            name: "wealth-data",
            tag: "Wealth data",
            summary: "Data under a consent is ready, or will not be.",
            target: "To the URL for data that the operator has set for the app: once for raw data, once for analysed data.",
            schema: "WealthDataReady",
            examples: flow_examples::data(),
            is_polled: false,
        },
        Hook {
            name: "wealth-historical",
            tag: "Wealth data",
            summary: "A historical fetch has completed.",
            target: "To the URL for historical data that the operator has set for the app.",
            schema: "WealthHistoryFetched",
            examples: flow_examples::history(),
            is_polled: false,
        },
    ]
}

impl Hook {
    fn describe(self) -> Value {
        let Self { name, tag, summary, target, schema, examples, is_polled } = self;
        json!({ "post": {
            "tags": [tag],
            "operationId": format!("{}_webhook", name.replace('-', "_")),
            "summary": summary,
            "description": format!("{target} {MANNERS}"),
            "security": [],
            "requestBody": { "required": true, "content": { "application/json": {
                "schema": { "$ref": format!("#/components/schemas/{schema}") },
                "examples": examples,
            } } },
            "responses": responses(is_polled),
        } })
    }
}

fn responses(is_polled: bool) -> Value {
    let lost = if is_polled {
        "Lost: the outcome stays available by polling, and the webhook is not sent again."
    } else {
        "Lost: the webhook is not sent again, and there is no poll for it."
    };
    json!({ "2XX": { "description": "Taken; the body is ignored." }, "default": { "description": lost } })
}
