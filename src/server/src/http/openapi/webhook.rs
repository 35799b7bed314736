//! The webhook in the document: the one request that this service makes of a client.

use serde_json::{Value, json};

use super::examples;

/// The `webhooks` of the document.
pub(super) fn describe() -> Value {
    let body = json!({ "application/json": {
        "schema": { "$ref": "#/components/schemas/OvseOutcome" },
        "examples": examples::outcomes(),
    } });
    json!({ "ovse": { "post": {
        "tags": ["OVSE"],
        "operationId": "ovse_webhook",
        "summary": "A transaction was completed.",
        "description": "Sent to the transaction's `webhook_url` exactly once: there is no second attempt, whatever becomes of the \
            first. It carries no authentication and no signature, so match `data.txn_id` with a transaction of yours and fetch the \
            result before you rely on it. Answer with any 2xx within a few seconds; the body is ignored and redirects are not \
            followed. An expired transaction sends nothing.",
        "security": [],
        "requestBody": { "required": true, "content": body },
        "responses": {
            "2XX": { "description": "Taken; the body is ignored." },
            "default": { "description": "Lost: the outcome stays available by polling, and the webhook is not sent again." },
        },
    } } })
}
