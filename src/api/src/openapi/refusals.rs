//! Refusals in the document: one body for all, an example of each that the error table itself
//! renders, and the headers that come with them.

use std::time::Duration;

use actix_web::body::MessageBody as _;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::UpstreamError;
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use serde_json::{Value, json};

/// A refusal that operations share.
struct Shared {
    status: &'static str,
    name: &'static str,
    description: &'static str,
    meets: fn(&Value) -> bool,
}

/// Which operations meet which refusals, beyond those that they declare themselves.
const SHARED: [Shared; 12] = [
    Shared { status: "400", name: "BadRequest", description: "A field, header or parameter is not acceptable.", meets: always },
    Shared {
        status: "401",
        name: "Unauthorized",
        description: "X-API-KEY or X-API-APP-ID is missing, unknown, revoked, or one does not belong to the other.",
        meets: is_secured,
    },
    Shared { status: "413", name: "BodyTooLarge", description: "The body is larger than is read.", meets: has_body },
    Shared { status: "415", name: "UnsupportedMediaType", description: "The body is not uncompressed application/json.", meets: has_body },
    Shared { status: "422", name: "KeyReused", description: "The Idempotency-Key came before with another request.", meets: opens_flow },
    Shared { status: "429", name: "TooMany", description: "The app opens more per second than it may.", meets: opens_flow },
    Shared { status: "500", name: "InternalError", description: "Something broke; quote `errorId`.", meets: is_secured },
    Shared { status: "501", name: "NotOffered", description: "This service has no upstream for it.", meets: opens_flow },
    Shared {
        status: "502",
        name: "UpstreamFailed",
        description: "The upstream did not take the order; nothing was opened.",
        meets: opens_flow,
    },
    Shared {
        status: "503",
        name: "Unavailable",
        description: "Something that the request needs is away, or too much is under way.",
        meets: is_secured,
    },
    Shared {
        status: "504",
        name: "UpstreamTimedOut",
        description: "The upstream did not answer in time; nothing was opened.",
        meets: opens_flow,
    },
    Shared {
        status: "default",
        name: "Refused",
        description: "Any other refusal, such as 404 for an unknown path and 405 with `Allow` for another method.",
        meets: always,
    },
];

fn always(_: &Value) -> bool {
    true
}

fn is_secured(operation: &Value) -> bool {
    operation["security"].as_array().is_some_and(|schemes| !schemes.is_empty())
}

fn has_body(operation: &Value) -> bool {
    !operation["requestBody"].is_null()
}

/// Whether it places an order with an upstream and opens a flow with its answer.
fn opens_flow(operation: &Value) -> bool {
    matches!(operation["operationId"].as_str(), Some("requestEsign" | "initDocLocker" | "initEStamp" | "requestWealthConsent"))
}

/// The shared refusals as components.
pub(super) fn shared() -> Value {
    SHARED.iter().map(|shared| (shared.name.to_owned(), response(shared.status, shared.description))).collect()
}

/// Gives an operation's own refusals their body, and adds the shared ones.
pub(super) fn complete(operation: &mut Value) {
    for shared in SHARED.iter().filter(|shared| (shared.meets)(operation)).collect::<Vec<_>>() {
        let place = &mut operation["responses"][shared.status];
        if place.is_null() {
            *place = json!({ "$ref": format!("#/components/responses/{}", shared.name) });
        }
    }
    // Only verifications have transactions.
    let what = match operation["tags"][0].as_str() {
        Some("OVSE") => None,
        Some("Events") => Some("event"),
        _ => Some("flow"),
    };
    let not_found = rendered(&ApiError::Service(what.map_or(ServiceError::TransactionNotFound, ServiceError::NotFound)));
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for (status, declared) in responses {
        if status.starts_with(['4', '5'])
            && let Some(description) = declared["description"].as_str()
        {
            *declared = response(status, description);
            if status == "404" {
                declared["content"]["application/json"]["example"] = not_found.clone();
            }
        }
    }
}

fn response(status: &str, description: &str) -> Value {
    let mut headers = json!({ "X-Request-ID": { "$ref": "#/components/headers/RequestId" } });
    if matches!(status, "429" | "503" | "default") {
        headers["Retry-After"] = json!({ "$ref": "#/components/headers/RetryAfter" });
    }
    if status == "default" {
        headers["Allow"] = json!({ "$ref": "#/components/headers/Allow" });
    }
    let body = json!({ "schema": { "$ref": "#/components/schemas/Refusal" }, "example": example(status) });
    json!({ "description": description, "headers": headers, "content": { "application/json": body } })
}

/// The body of a refusal with this status, as it is really rendered.
fn example(status: &str) -> Value {
    let error = match status {
        "400" => ApiError::Service(ServiceError::Invalid(Invalid::one("claims[2]", "is not a known claim"))),
        "401" => ApiError::Service(ServiceError::Unauthorized),
        "402" => ApiError::Service(ServiceError::InsufficientCredits),
        "404" => ApiError::Service(ServiceError::TransactionNotFound),
        "409" => ApiError::Service(ServiceError::AlreadyCompleted),
        "410" => ApiError::Service(ServiceError::TransactionExpired),
        "413" => ApiError::BodyTooLarge { limit: 65_536 },
        "415" => ApiError::UnsupportedMediaType("The Content-Type must be application/json."),
        "422" => ApiError::Service(ServiceError::IdempotencyKeyReused),
        "429" => ApiError::RateLimited { retry_after: Duration::from_secs(1) },
        "503" => ApiError::Service(ServiceError::Overloaded),
        "500" => ApiError::Service(ServiceError::Internal(String::new())),
        "501" => ApiError::Service(ServiceError::NotOffered),
        "502" => ApiError::Service(ServiceError::Upstream(UpstreamError::Unreachable)),
        "504" => ApiError::Service(ServiceError::Upstream(UpstreamError::TimedOut)),
        _ => ApiError::MethodNotAllowed { allow: "GET, HEAD".into() },
    };
    rendered(&error)
}

/// The body of this refusal.
pub(super) fn rendered(error: &ApiError) -> Value {
    let id = RequestId::parse("order-42-try-1").unwrap_or_else(|_| RequestId::mint());
    let body = error.render(&id).into_body().try_into_bytes().unwrap_or_default();
    serde_json::from_slice(&body).unwrap_or_default()
}
