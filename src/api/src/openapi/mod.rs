//! `GET /openapi.json`: the OpenAPI 3.1 document of the API, generated from the declarations of the handlers.
//!
//! A handler declares only its own parts. This module adds the shared parts: errors, headers, security and examples.
//! Tests compare the document with the route table and the specification, and every example with its schema.

mod checks;
mod enums;
mod examples;
mod flow_examples;
mod refusals;
mod webhook;

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, Responder as _};
use sakshi_domain::limits::{IDEMPOTENCY_KEY_CHARS_MAX, PAGE_MAX, PAGE_SIZE_MAX};
use sakshi_domain::tenancy::KeyCase;
use sakshi_domain::transaction::TransactionStatus;
use sakshi_web::api_document::{ApiDocument, open_to_every_origin};
use sakshi_web::error::ApiError;
use sakshi_web::openapi::{complete, operations};
use sakshi_web::query::Query;
use sakshi_wire::estamp::EStampOutcome;
use sakshi_wire::refusal::Error;
use sakshi_wire::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};
use sakshi_wire::{SCHEMA_EXTENSION, Schemas, merge_polls};
use serde_json::{Value, json};
use utoipa::OpenApi;

use self::enums::open_enums;
use crate::{credits, events, flows, intent_keys, ovse, ping, status, webhook_urls};

const DESCRIPTION: &str = "\
Verifies people for a client application. Open a transaction, let the person consent in the identity app, and get the \
outcome by webhook or by polling.

Requests are JSON. A field of more than one word may be written in `snake_case` or `camelCase`, but not in both. \
`null` is the same as an absent field, unless the schema allows it. An unknown field or query parameter is a 400. \
Times are ISO 8601 with an offset in requests and RFC 3339 in UTC with milliseconds in responses.

Every error has the body `Error`, also for unknown paths and malformed JSON. A missing transaction is 404 \
`transaction_not_found`; any other missing resource or path is 404 `not_found`. New codes may be added.

The first successful response to an `Idempotency-Key` is stored for 24 hours. A retry with the same body, byte for \
byte, gets it again; another request under the key gets 422.";

/// Description of the request header `X-Request-ID`.
const REQUEST_ID: &str = "\
A correlation id of your own, 1 to 128 visible ASCII characters. It is returned in this header, in `errorId` of \
errors, and in `request_id` of webhooks and results. Any other value is replaced by a new id. A `request_id` in the \
body takes precedence over the header.";

/// Name of the header whose parameter the operations share.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// The declarations of the handlers.
#[derive(OpenApi)]
#[openapi(
    info(title = "sakshi", description = DESCRIPTION, license(name = "Apache-2.0", identifier = "Apache-2.0"),
        contact(name = "The operator of this service")),
    paths(
        ovse::init,
        ovse::qr_intent,
        ovse::result,
        ovse::evidence,
        ovse::list::transactions,
        events::create,
        events::list,
        events::show,
        events::patch,
        events::registrations::list,
        events::doors::create,
        events::doors::list,
        events::doors::close,
        events::doors::check_in,
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
        status::show,
        intent_keys::list,
        document,
    ),
    components(schemas(Error,
        EStampOutcome,
        WealthConsentChange,
        WealthDataNotice,
        WealthHistoricalNotice,
    )),
    tags(
        (name = "OVSE", description = "Verify one person: one transaction, one credit."),
        (name = "Events", description = "One printed QR code, many guests. Each scan is a verification."),
        (name = "eSign", description = "Signatures under a document."),
        (name = "Document locker", description = "Documents that a person shares from the document locker."),
        (name = "E-stamp", description = "E-stamps, from the registry or on paper."),
        (name = "Wealth data", description = "A consent, and the financial data under it."),
        (name = "Checks", description = "Verify a PAN, GSTIN, bank account, IFSC or voter ID in one synchronous call."),
        (name = "Webhooks", description = "Requests that this service sends to a client. No webhook is signed."),
        (name = "Webhook configuration", description = "The webhook URLs of all flows but OVSE, whose URL is a field \
            of its request."),
        (name = "Credits", description = "The balance and its movements."),
        (name = "Service", description = "Health, keys and this document.")
    )
)]
struct Declarations;

/// Builds the document of a service at `public_base`, for apps with this spelling of outcomes. `other_routes` describes
/// the routes for clients that other crates serve.
#[must_use]
pub fn document_of(
    public_base: &str,
    other_routes: fn() -> utoipa::openapi::OpenApi,
    spelling: KeyCase,
) -> ApiDocument {
    let public_base = public_base.to_owned();
    ApiDocument::new(move || describe(&public_base, other_routes(), spelling))
}

/// The document for apps with outcomes in camelCase, as app data. The `snake_case` document is an [`ApiDocument`].
#[derive(Clone, Debug)]
pub struct CamelCaseDocument(pub ApiDocument);

/// Returns the document for the spelling in the query.
#[utoipa::path(
    get, path = "/openapi.json", tag = "Service", operation_id = "getOpenApiDocument",
    summary = "Get this document",
    description = "`/docs` shows this document as a page.",
    params(("spelling" = Option<String>, Query, description = "How the app's outcomes are spelled: `snake_case` \
        (default) or `camelCase`.")),
    responses((status = 200, body = Object, description = "This document.")), security(())
)]
pub(crate) async fn document(
    request: HttpRequest,
    snake_case: Data<ApiDocument>,
    camel_case: Data<CamelCaseDocument>,
) -> Result<HttpResponse, ApiError> {
    let mut query = Query::parse(request.query_string());
    let document = query.one_of("spelling", [("snake_case", &**snake_case), ("camelCase", &camel_case.0)]);
    query.finish()?;
    Ok(open_to_every_origin(document.clone().respond_to(&request)))
}

/// Assembles the document: the declarations of the handlers, then the shared parts.
fn describe(public_base: &str, other_routes: utoipa::openapi::OpenApi, spelling: KeyCase) -> Value {
    let mut declared = Declarations::openapi();
    declared.merge(other_routes);
    // The derived document is plain data, which can always be written as JSON.
    let mut document = serde_json::to_value(declared).unwrap_or_default();
    document["servers"] = json!([{ "url": public_base, "description": "This service." }]);
    document["webhooks"] = webhook::describe(spelling);
    let components = &mut document["components"];
    if let Some(schemas) = components["schemas"].as_object_mut() {
        // Each declared schema holds the whole one, which has keywords that utoipa does not support.
        schemas.values_mut().for_each(|schema| *schema = schema[SCHEMA_EXTENSION].take());
        if let (Some(camel), KeyCase::CamelCase) = (schemas.remove("OvseDataCamelCase"), spelling) {
            schemas.insert("OvseData".to_owned(), camel);
        }
        let mut merged: Schemas = std::mem::take(schemas).into_iter().collect();
        merge_polls(&mut merged);
        schemas.extend(merged);
    }
    components["securitySchemes"] = json!({
        "api_key": { "type": "apiKey", "in": "header", "name": "X-API-KEY",
            "description": "The client's secret key, issued by the operator. For servers only, never for a browser or \
                an app." },
        "app_id": { "type": "apiKey", "in": "header", "name": "X-API-APP-ID", "description": "The application of that \
            client." },
    });
    components["parameters"]["IdempotencyKey"] = json!({
        "name": IDEMPOTENCY_KEY, "in": "header", "required": false,
        "description": "A key of your own for this request. For 24 hours, retries with this key get the first \
            successful response; nothing is opened or debited again.",
        "schema": { "type": "string", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_CHARS_MAX, "pattern": "^[!-~]+$" },
        // Postman and Bruno generate a new key for each request. They would send a fixed example with every request.
        "example": "{{$guid}}",
    });
    // Importers of Postman and Bruno keep one of two keys, and every header with an example.
    components["parameters"]["AppId"] = json!({
        "name": "X-API-APP-ID", "in": "header", "required": false, "schema": { "type": "string" },
        "example": "{{appId}}",
        "description": "The application id, for tools that send one credential only. It repeats the credential \
            `app_id`.",
    });
    components["headers"]["Replayed"] =
        json!({ "description": "`true` on a repeated response.", "schema": { "type": "string" } });
    checks::describe(&mut document);
    operations(&mut document).for_each(add_shared_parts);
    complete(&mut document, &refusals::SHARED, refusals::example);
    document["components"]["parameters"]["RequestId"]["description"] = json!(REQUEST_ID);
    examples::attach(&mut document, spelling);
    open_enums(&mut document);
    document
}

/// Adds the security, parameters and headers that the operations of this API share.
fn add_shared_parts(operation: &mut Value) {
    // An operation asks for both credentials unless it declares that it needs none.
    let needs_none = operation["security"] == json!([{}]);
    operation["security"] = if needs_none { json!([]) } else { json!([{ "api_key": [], "app_id": [] }]) };
    if !needs_none {
        let mut parameters = operation["parameters"].as_array_mut().map(std::mem::take).unwrap_or_default();
        parameters.push(json!({ "$ref": "#/components/parameters/AppId" }));
        operation["parameters"] = json!(parameters);
    }
    for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
        match parameter["name"].as_str() {
            Some("page") => parameter["schema"]["maximum"] = json!(PAGE_MAX),
            Some("page_size") => parameter["schema"]["maximum"] = json!(PAGE_SIZE_MAX),
            Some("status") => parameter["schema"] = json!({ "type": "string", "enum": TransactionStatus::ALL }),
            Some("If-Match") => {
                parameter["schema"] = json!({ "type": "string", "minLength": 1,
                    "pattern": r#"^(\*|(W/)?"[!#-~]+"(, ?(W/)?"[!#-~]+")*)$"# });
            }
            Some("spelling") => parameter["schema"] = json!({ "type": "string", "enum": ["snake_case", "camelCase"] }),
            _ => {}
        }
    }
    let idempotency_keys = operation["parameters"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter(|parameter| parameter["name"] == IDEMPOTENCY_KEY);
    if idempotency_keys
        .map(|parameter| *parameter = json!({ "$ref": "#/components/parameters/IdempotencyKey" }))
        .count()
        > 0
    {
        operation["responses"]["200"]["headers"]["Idempotency-Replayed"] =
            json!({ "$ref": "#/components/headers/Replayed" });
    }
    if let Some(image) = operation.pointer_mut("/responses/200/content/image~1png") {
        image["schema"] = json!({ "type": "string", "format": "binary" });
    }
}
