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
        "tags": ["OVSE"],
        "operationId": "ovse_webhook",
        "summary": "A transaction was completed.",
        "description": format!("To the transaction's `webhook_url`. {MANNERS} An expired transaction sends nothing."),
        "security": [],
        "requestBody": { "required": true, "content": body },
        "responses": responses(),
    } } });
    webhooks["esign"] = of_flow(
        "eSign",
        "A document was completed, rejected or has expired.",
        "To the `responseUrl` of its request, or else to the URL that is registered for `ESign`.",
        "EsignOutcome",
        &flow_examples::esign_outcomes(),
    );
    webhooks["doclocker"] = of_flow(
        "Document locker",
        "Nothing is awaited from the locker any more.",
        "To the URL that is registered for `DocLocker`.",
        "DocLockerOutcome",
        &flow_examples::doclocker_outcomes(),
    );
    webhooks
}

fn of_flow(tag: &str, summary: &str, target: &str, schema: &str, examples: &Value) -> Value {
    json!({ "post": {
        "tags": [tag],
        "operationId": format!("{}_webhook", tag.to_lowercase().replace(' ', "_")),
        "summary": summary,
        "description": format!("{target} {MANNERS}"),
        "security": [],
        "requestBody": { "required": true, "content": { "application/json": {
            "schema": { "$ref": format!("#/components/schemas/{schema}") },
            "examples": examples,
        } } },
        "responses": responses(),
    } })
}

fn responses() -> Value {
    json!({
        "2XX": { "description": "Taken; the body is ignored." },
        "default": { "description": "Lost: the outcome stays available by polling, and the webhook is not sent again." },
    })
}
