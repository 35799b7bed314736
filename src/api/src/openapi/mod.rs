//! `GET /openapi.json`: the API's document (OpenAPI 3.1), made from the routes' own declarations.
//!
//! What every operation shares (refusals, common headers, security, examples) is added here, so
//! that a handler declares only what is its own. Tests hold the document against the route table,
//! against the specification, and every example in it against its schema.

mod checks;
mod examples;
mod flow_examples;
mod refusals;
mod webhook;

use actix_web::web::Data;
use sakshi_domain::limits::{IDEMPOTENCY_KEY_CHARS_MAX, PAGE_MAX, PAGE_SIZE_MAX};
use sakshi_web::api_document::ApiDocument;
use sakshi_web::openapi::{complete, operations, say};
use sakshi_wire::CARRIED;
use sakshi_wire::estamp::EStampOutcome;
use sakshi_wire::refusal::Refusal;
use sakshi_wire::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};
use serde_json::{Value, json};
use utoipa::OpenApi;

use crate::{credits, events, flows, intent_keys, ovse, ping, webhook_urls};

const DESCRIPTION: &str = "\
Verifies identities on behalf of a client application: open a transaction, let the person consent in the identity app, and get the \
outcome by webhook or by polling.

Request fields of more than one word are read in `snake_case` and in `camelCase`; a field in both spellings, or one that is not listed, is a 400. \
Times are RFC 3339 in UTC with milliseconds. Every answer that is neither 2xx nor 3xx has the body `Refusal`, unknown paths and malformed \
JSON included; its `code` for what is not there is `transaction_not_found` for a transaction and `not_found` for everything else, an event \
and a path among it. What is kept for an `Idempotency-Key` is the answer to the first request that succeeded; \
it is given again only to a request with the same body byte for byte.";

const REQUEST_ID: &str = "\
A correlation id of your own. It is echoed, stands in `errorId` of a refusal, and is the `request_id` of the webhook of what this request \
starts. Absent: one is made.";

const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// What the handlers declare.
#[derive(OpenApi)]
#[openapi(
    info(title = "sakshi", description = DESCRIPTION, license(name = "Apache-2.0", identifier = "Apache-2.0"), contact(name = "The operator of this service")),
    paths(
        ovse::init,
        ovse::qr_intent,
        ovse::result,
        events::create,
        events::list,
        events::show,
        events::patch,
        events::registrations::list,
        credits::balance,
        credits::statement,
        flows::esign::request,
        flows::doclocker::init,
        flows::estamp::init,
        flows::wealth::consents,
        flows::esign::status,
        flows::doclocker::details,
        webhook_urls::register,
        webhook_urls::list,
        ping::ping,
        intent_keys::list,
        document,
    ),
    components(schemas(Refusal,
        EStampOutcome,
        WealthConsentChange,
        WealthDataNotice,
        WealthHistoricalNotice,
    )),
    tags(
        (name = "OVSE", description = "Offline verification: one person, one transaction, one credit."),
        (name = "Events", description = "One printed QR code, many guests; each scan is a verification of its own."),
        (name = "eSign", description = "Documents that are signed upstream."),
        (name = "Document locker", description = "Documents that a person shares from the locker."),
        (name = "E-stamp", description = "E-stamps of the registry and on paper."),
        (name = "Wealth data", description = "A consent, and what becomes available under it."),
        (name = "Checks", description = "What a source knows of a number, answered at once: PAN, GSTIN, bank account, IFSC, voter ID."),
        (name = "Webhooks", description = "What this service sends to a client. Nothing of it is signed: fetch the result before you rely on it."),
        (name = "Webhook configuration", description = "Where the webhooks of flows other than OVSE go."),
        (name = "Credits", description = "What verifications cost."),
        (name = "Service", description = "The service itself.")
    )
)]
struct Declared;

/// The document of a service that the public reaches under this URL; `more` are routes that other edges offer to clients.
#[must_use]
pub fn document_of(public_base: &str, more: fn() -> utoipa::openapi::OpenApi) -> ApiDocument {
    let public_base = public_base.to_owned();
    ApiDocument::new(move || describe(&public_base, more()))
}

/// Answers with this document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "Service", operation_id = "getOpenApiDocument",
    responses((status = 200, body = Object, description = "This document; `/docs` shows it as a page.")), security(())
)]
pub(crate) async fn document(document: Data<ApiDocument>) -> ApiDocument {
    ApiDocument::clone(&document)
}

/// Puts the document together.
fn describe(public_base: &str, more: utoipa::openapi::OpenApi) -> Value {
    let mut declared = Declared::openapi();
    declared.merge(more);
    // The derived document is plain data; that it cannot be written as JSON is not possible.
    let mut document = serde_json::to_value(declared).unwrap_or_default();
    document["servers"] = json!([{ "url": public_base, "description": "This service." }]);
    document["webhooks"] = webhook::describe();
    let components = &mut document["components"];
    for (_, schema) in components["schemas"].as_object_mut().into_iter().flatten() {
        *schema = schema[CARRIED].take();
    }
    components["securitySchemes"] = json!({
        "api_key": { "type": "apiKey", "in": "header", "name": "X-API-KEY",
            "description": "The client's secret key, issued by the operator. For servers only, never for a browser or an app." },
        "app_id": { "type": "apiKey", "in": "header", "name": "X-API-APP-ID", "description": "The application of that client." },
    });
    components["parameters"]["IdempotencyKey"] = json!({
        "name": IDEMPOTENCY_KEY, "in": "header", "required": false,
        "description": "Repeats of the request under this key get the first answer for 24 hours; nothing is opened or debited again.",
        "schema": { "type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX, "pattern": "^[!-~]+$" },
    });
    components["headers"]["Replayed"] =
        json!({ "description": "`true` on an answer that was given before.", "schema": { "type": "string" } });
    checks::describe(&mut document);
    operations(&mut document).for_each(common);
    complete(&mut document, &refusals::SHARED, refusals::example);
    document["components"]["parameters"]["RequestId"]["description"] = json!(REQUEST_ID);
    examples::attach(&mut document);
    document
}

/// What every operation takes and gives beyond what those of other edges do.
fn common(operation: &mut Value) {
    // What a handler tells its readers about errors, the responses tell the client.
    let texts = ["summary", "description"].map(|name| operation[name].as_str().unwrap_or_default().replace('\n', " "));
    let whole = texts.join("\n\n");
    let description = whole.split("# Errors").next().unwrap_or_default().trim();
    say(operation, description);
    // An operation asks for both credentials unless it declares that it needs none.
    let needs_none = operation["security"] == json!([{}]);
    operation["security"] = if needs_none { json!([]) } else { json!([{ "api_key": [], "app_id": [] }]) };
    for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
        match parameter["name"].as_str() {
            Some("page") => parameter["schema"]["maximum"] = json!(PAGE_MAX),
            Some("page_size") => parameter["schema"]["maximum"] = json!(PAGE_SIZE_MAX),
            _ => {}
        }
    }
    let keys = operation["parameters"].as_array_mut().into_iter().flatten().filter(|parameter| parameter["name"] == IDEMPOTENCY_KEY);
    if keys.map(|parameter| *parameter = json!({ "$ref": "#/components/parameters/IdempotencyKey" })).count() > 0 {
        operation["responses"]["200"]["headers"]["Idempotency-Replayed"] = json!({ "$ref": "#/components/headers/Replayed" });
    }
    if let Some(image) = operation["responses"]["200"]["content"].get_mut("image/png") {
        image["schema"] = json!({ "type": "string", "format": "binary" });
    }
}
