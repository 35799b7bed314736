//! `GET /sandbox/openapi.json`: the sandbox's own API, for tests that generate their client.

use actix_web::HttpResponse;
use actix_web::web::Data;
use sakshi_service::Service;
use serde_json::{Value, json};

/// Responds with the document.
pub(super) async fn show(service: Data<Service>) -> HttpResponse {
    HttpResponse::Ok().json(document(&service.authority.public_base))
}

/// Builds the document of the sandbox at this URL.
fn document(base: &str) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "sakshi: the sandbox", "version": env!("CARGO_PKG_VERSION"),
            "description": "Additional operations of the sandbox, for tests.", "license": { "name": "Apache-2.0" } },
        "servers": [{ "url": base }],
        "components": { "securitySchemes": {
            "api_key": { "type": "apiKey", "in": "header", "name": "X-API-KEY" },
            "app_id": { "type": "apiKey", "in": "header", "name": "X-API-APP-ID" },
        } },
        "paths": {
            "/sandbox/app/answer": { "post": answer_intent() },
            "/sandbox/residents": { "get":
                operation("listResidents", "List the residents", Access::Open, &[], None, &any()) },
            "/sandbox/checks": { "get":
                operation("listChecks", "List the numbers that checks know", Access::Open, &[], None, &any()) },
            "/sandbox/transactions/{txnId}/expire": { "post": operation("expireTransaction",
                "End the window of a transaction now", Access::Open, &[path("txnId")], None, &any()) },
            "/sandbox/transactions/{txnId}/delivery": { "get": operation("getDelivery",
                "Get the delivery of a transaction's webhook", Access::App, &[path("txnId")], None, &any()) },
            "/sandbox/transactions/{txnId}/webhook": { "post": operation("sendWebhookAgain",
                "Send the webhook of a transaction again", Access::App, &[path("txnId")], None,
                &object(&json!({ "repeated": { "type": "boolean" }, "outcome": text(),
                    "status": { "type": ["integer", "null"] } }), &["repeated", "outcome"])) },
            "/sandbox/flows/{flow}/{id}": { "post": play_flow() },
            "/sandbox/flows/{id}/deliveries": { "get": operation("listDeliveries",
                "List the deliveries of a flow's webhooks", Access::App, &[path("id")], None, &any()) },
            "/sandbox/inboxes": { "post": operation("openInbox", "Open an inbox for webhooks", Access::App, &[],
                None, &object(&json!({ "id": text(), "url": text() }), &["id", "url"])) },
            "/sandbox/inboxes/{id}": { "get": operation("readInbox", "Read the next webhook of an inbox", Access::App,
                &[path("id"), query("after", "Number of the last webhook read."),
                    query("wait", "Seconds to wait for a webhook, 30 at most.")], None, &any()) },
            "/sandbox/settings": { "patch": change_settings() },
        },
    })
}

fn answer_intent() -> Value {
    let actions = [
        "approve",
        "decline",
        "abort",
        "fail_liveness",
        "fail_match",
        "biometrics_locked",
        "service_down",
        "http_error",
        "retry_later",
        "malformed_claims",
        "walk_away",
    ];
    let schema = object(
        &json!({
            "intent": { "type": "string", "description": "The `intentJwt`, or a `qrPayload`." },
            "resident": { "type": "string", "default": "asha" },
            "action": { "type": "string", "enum": actions, "default": "approve" },
            "form": { "type": "string", "enum": ["xml", "json"], "default": "xml" },
            "key_binding": { "type": "boolean", "default": true },
            "status": { "type": "string", "enum": ["available", "unavailable"], "default": "available" },
        }),
        &["intent"],
    );
    let body = body(&schema, &json!({ "intent": "eyJ…", "resident": "asha", "action": "approve" }));
    operation("answerIntent", "Answer an intent as the person", Access::Open, &[], Some(body), &any())
}

fn play_flow() -> Value {
    let flow = json!({ "name": "flow", "in": "path", "required": true, "schema": { "type": "string",
        "enum": ["esign", "doclocker", "estamp", "wealth"] } });
    let outcome = json!({ "type": "string", "description": "esign: completed, rejected, expired, signed-once. \
        doclocker: fetched, partly, pending, failed (the person refuses). estamp: completed, rejected, expired, \
        pending. wealth: accepted, rejected, revoked, expiring-soon, expired, raw, analysed, data-failed, historical, \
        historical-partial, historical-failed." });
    let body = body(&object(&json!({ "outcome": outcome }), &["outcome"]), &json!({ "outcome": "completed" }));
    operation(
        "playFlow",
        "Play an order of a flow to an outcome",
        Access::Open,
        &[flow, path("id")],
        Some(body),
        &any(),
    )
}

fn change_settings() -> Value {
    let schema = object(
        &json!({ "payload_spelling": { "type": "string", "enum": ["snake_case", "camelCase"] },
            "consent_webhook_url": text(), "data_webhook_url": text(), "historical_webhook_url": text() }),
        &[],
    );
    let body = body(&schema, &json!({ "payload_spelling": "camelCase" }));
    let summary = "Change the settings that an operator changes in production";
    operation("changeSettings", summary, Access::App, &[], Some(body), &any())
}

/// Credentials that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Open,
    /// An API key and an app id.
    App,
}

fn operation(
    id: &str,
    summary: &str,
    access: Access,
    parameters: &[Value],
    body: Option<Value>,
    response: &Value,
) -> Value {
    let security = if access == Access::Open { json!([]) } else { json!([{ "api_key": [], "app_id": [] }]) };
    let mut operation = json!({
        "operationId": id, "summary": summary, "security": security, "parameters": parameters,
        "responses": {
            "200": { "description": "Success.", "content": { "application/json": { "schema": response } } },
            "default": { "description": "Refused, with the error body of the API.",
                "content": { "application/json": { "schema": { "type": "object" } } } },
        },
    });
    if let Some(body) = body {
        operation["requestBody"] = body;
    }
    operation
}

fn path(name: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": text() })
}

fn query(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "query", "schema": { "type": "integer" }, "description": description })
}

fn body(schema: &Value, example: &Value) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": schema, "example": example } } })
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn any() -> Value {
    json!({ "type": "object" })
}
