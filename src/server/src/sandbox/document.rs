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
                operation("listResidents", "List the residents", Access::Open, NO_PARAMETERS, NO_BODY,
                    &any_object()) },
            "/sandbox/checks": { "get":
                operation("listChecks", "List the numbers that checks know", Access::Open, NO_PARAMETERS, NO_BODY,
                    &any_object()) },
            "/sandbox/transactions/{txnId}/expire": { "post": operation("expireTransaction",
                "End the window of a transaction now", Access::Open, &[path_parameter("txnId")], NO_BODY,
                &any_object()) },
            "/sandbox/transactions/{txnId}/delivery": { "get": operation("getDelivery",
                "Get the delivery of a transaction's webhook", Access::App, &[path_parameter("txnId")], NO_BODY,
                &any_object()) },
            "/sandbox/transactions/{txnId}/webhook": { "post": operation("sendWebhookAgain",
                "Send the webhook of a transaction again", Access::App, &[path_parameter("txnId")], NO_BODY,
                &object_schema(&json!({ "repeated": { "type": "boolean" }, "outcome": string_schema(),
                    "status": { "type": ["integer", "null"] } }), &["repeated", "outcome"])) },
            "/sandbox/flows/{flow}/{id}": { "post": play_flow() },
            "/sandbox/flows/{id}/deliveries": { "get": operation("listDeliveries",
                "List the deliveries of a flow's webhooks", Access::App, &[path_parameter("id")], NO_BODY,
                &any_object()) },
            "/sandbox/inboxes": { "post": operation("openInbox", "Open an inbox for webhooks", Access::App,
                NO_PARAMETERS, NO_BODY,
                &object_schema(&json!({ "id": string_schema(), "url": string_schema() }), &["id", "url"])) },
            "/sandbox/inboxes/{id}": { "get": operation("readInbox", "Read the next webhook of an inbox", Access::App,
                &[path_parameter("id"), query_parameter("after", "Number of the last webhook read."),
                    query_parameter("wait", "Seconds to wait for a webhook, 30 at most.")], NO_BODY, &any_object()) },
            "/sandbox/settings": { "patch": change_settings() },
        },
    })
}

/// Builds the operation that answers an intent as the simulated person.
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
    let schema = object_schema(
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
    let body = json_body(&schema, &json!({ "intent": "eyJ…", "resident": "asha", "action": "approve" }));
    operation("answerIntent", "Answer an intent as the person", Access::Open, NO_PARAMETERS, Some(body), &any_object())
}

/// Builds the operation that plays an outcome of a flow's upstream.
fn play_flow() -> Value {
    let flow = json!({ "name": "flow", "in": "path", "required": true, "schema": { "type": "string",
        "enum": ["esign", "doclocker", "estamp", "wealth"] } });
    let outcome = json!({ "type": "string", "description": "esign: completed, rejected, expired, signed-once. \
        doclocker: fetched, partly, pending, failed (the person refuses). estamp: completed, rejected, expired, \
        pending. wealth: accepted, rejected, revoked, expiring-soon, expired, raw, analysed, data-failed, historical, \
        historical-partial, historical-failed." });
    let body =
        json_body(&object_schema(&json!({ "outcome": outcome }), &["outcome"]), &json!({ "outcome": "completed" }));
    operation(
        "playFlow",
        "Play an order of a flow to an outcome",
        Access::Open,
        &[flow, path_parameter("id")],
        Some(body),
        &any_object(),
    )
}

/// Builds the operation that changes the settings of an app.
fn change_settings() -> Value {
    let schema = object_schema(
        &json!({ "payload_spelling": { "type": "string", "enum": ["snake_case", "camelCase"] },
            "consent_webhook_url": string_schema(), "data_webhook_url": string_schema(),
            "historical_webhook_url": string_schema() }),
        &[],
    );
    let body = json_body(&schema, &json!({ "payload_spelling": "camelCase" }));
    let summary = "Change the settings that an operator changes in production";
    operation("changeSettings", summary, Access::App, NO_PARAMETERS, Some(body), &any_object())
}

/// Parameters of an operation without any.
const NO_PARAMETERS: &[Value] = &[];
/// Body of a request without one.
const NO_BODY: Option<Value> = None;

/// Credentials that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Open,
    /// An API key and an app id.
    App,
}

/// Builds an operation. `response` is the schema of a successful response.
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

fn path_parameter(name: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": string_schema() })
}

/// Builds an optional parameter of the query, a number.
fn query_parameter(name: &str, description: &str) -> Value {
    json!({ "name": name, "in": "query", "schema": { "type": "integer" }, "description": description })
}

fn json_body(schema: &Value, example: &Value) -> Value {
    json!({ "required": true, "content": { "application/json": { "schema": schema, "example": example } } })
}

fn object_schema(properties: &Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn string_schema() -> Value {
    json!({ "type": "string" })
}

fn any_object() -> Value {
    json!({ "type": "object" })
}
