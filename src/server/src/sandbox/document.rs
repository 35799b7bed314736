//! `GET /sandbox/openapi.json`: the sandbox's own API, for tests that generate their client.

use actix_web::HttpResponse;
use actix_web::web::Data;
use sakshi_service::Service;
use serde_json::{Value, json};

/// Responds with the document.
pub(super) async fn show(service: Data<Service>) -> HttpResponse {
    HttpResponse::Ok().json(document(&service.authority.public_base))
}

/// Builds the document of the sandbox under this URL.
fn document(base: &str) -> Value {
    let text = json!({ "type": "string" });
    let path = |name: &str| json!({ "name": name, "in": "path", "required": true, "schema": text });
    let query = |name: &str, about: &str| {
        json!({ "name": name, "in": "query", "schema": { "type": "integer" },
        "description": about })
    };
    let body = |schema: Value, example: Value| {
        json!({ "required": true,
        "content": { "application/json": { "schema": schema, "example": example } } })
    };
    let operation =
        |id: &str, summary: &str, is_open: bool, parameters: Vec<Value>, body: Option<Value>, schema: Value| {
            let security = if is_open { json!([]) } else { json!([{ "api_key": [], "app_id": [] }]) };
            let mut operation = json!({
                "operationId": id, "summary": summary, "security": security, "parameters": parameters,
                "responses": {
                    "200": { "description": "Done.", "content": { "application/json": { "schema": schema } } },
                    "default": { "description": "Refused; the body is that of every error of the API.",
                        "content": { "application/json": { "schema": { "type": "object" } } } },
                },
            });
            if let Some(body) = body {
                operation["requestBody"] = body;
            }
            operation
        };
    let object = |properties: Value, required: &[&str]| {
        json!({ "type": "object", "properties": properties,
        "required": required })
    };
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
    let answer = object(
        json!({
            "intent": { "type": "string", "description": "The `intentJwt`, or a `qrPayload`." },
            "resident": { "type": "string", "default": "asha" },
            "action": { "type": "string", "enum": actions, "default": "approve" },
            "form": { "type": "string", "enum": ["xml", "json"], "default": "xml" },
            "key_binding": { "type": "boolean", "default": true },
            "status": { "type": "string", "enum": ["available", "unavailable"], "default": "available" },
        }),
        &["intent"],
    );
    let settings = object(
        json!({ "payload_spelling": { "type": "string", "enum": ["snake_case", "camelCase"] },
            "consent_webhook_url": text,
                "data_webhook_url": text, "historical_webhook_url": text }),
        &[],
    );
    let flow = json!({ "name": "flow", "in": "path", "required": true, "schema": { "type": "string", "enum": ["esign",
        "doclocker", "estamp", "wealth"] } });
    let outcome = json!({ "type": "string", "description": "esign: completed, rejected, expired, signed-once. \
        doclocker: fetched, partly, pending, failed (the person refuses). estamp: completed, rejected, expired, \
        pending. wealth: accepted, rejected, revoked, expiring-soon, expired, raw, analysed, data-failed, historical, \
        historical-partial, historical-failed." });
    let inbox = object(json!({ "id": text, "url": text }), &["id", "url"]);
    let any = json!({ "type": "object" });
    json!({
        "openapi": "3.1.0",
        "info": { "title": "sakshi: the sandbox", "version": env!("CARGO_PKG_VERSION"),
            "description": "What exists in the sandbox alone, for tests.", "license": { "name": "Apache-2.0" } },
        "servers": [{ "url": base }],
        "components": { "securitySchemes": {
            "api_key": { "type": "apiKey", "in": "header", "name": "X-API-KEY" },
            "app_id": { "type": "apiKey", "in": "header", "name": "X-API-APP-ID" },
        } },
        "paths": {
            "/sandbox/app/answer": { "post": operation("answerIntent", "Be the person", true, vec![], Some(body(answer,
                json!({ "intent": "eyJ…", "resident": "asha", "action": "approve" }))), any.clone()) },
            "/sandbox/residents": { "get": operation("listResidents", "List the residents", true, vec![], None,
                any.clone()) },
            "/sandbox/checks": { "get": operation("listChecks", "List the numbers that checks know", true, vec![], None,
                any.clone()) },
            "/sandbox/transactions/{txnId}/expire": { "post": operation("expireTransaction", "End the window of a \
                transaction now", true, vec![path("txnId")], None, any.clone()) },
            "/sandbox/transactions/{txnId}/delivery": { "get": operation("getDelivery", "See how the webhook of a \
                transaction went", false, vec![path("txnId")], None, any.clone()) },
            "/sandbox/transactions/{txnId}/webhook": { "post": operation("sendWebhookAgain", "Send the webhook of a \
                transaction again", false, vec![path("txnId")], None,
                object(json!({ "repeated": { "type": "boolean" }, "outcome": text, "status": { "type": ["integer",
                    "null"] } }), &["repeated", "outcome"])) },
            "/sandbox/flows/{flow}/{id}": { "post": operation("playFlow", "Play an order of a flow to an outcome", true,
                vec![flow, path("id")],
                Some(body(object(json!({ "outcome": outcome }), &["outcome"]), json!({ "outcome": "completed" }))),
                any.clone()) },
            "/sandbox/flows/{id}/deliveries": { "get": operation("listDeliveries",
                "See how the webhooks of a flow went", false, vec![path("id")], None, any.clone()) },
            "/sandbox/inboxes": { "post": operation("openInbox", "Open an inbox for webhooks", false, vec![], None,
                inbox) },
            "/sandbox/inboxes/{id}": { "get": operation("readInbox", "Read the next webhook of an inbox", false,
                vec![path("id"), query("after", "The number of the last webhook that was read."), query("wait",
                    "Seconds to wait for one, 30 at most.")], None, any.clone()) },
            "/sandbox/settings": { "patch": operation("changeSettings", "Change what the operator sets in production",
                false, vec![], Some(body(settings, json!({ "payload_spelling": "camelCase" }))), any) },
        },
    })
}
