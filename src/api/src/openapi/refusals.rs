//! The errors that each operation can return, with an example of each.

use sakshi_domain::invalid::Invalid;
use sakshi_outbound::upstream::UpstreamError;
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_web::openapi::{SharedRefusal, has_body, is_secured};
use serde_json::Value;

/// Errors that several operations share, in addition to the errors of the edge.
pub(super) const SHARED: [SharedRefusal; 9] = [
    SharedRefusal {
        status: "401",
        name: "Unauthorized",
        description: "`X-API-KEY` or `X-API-APP-ID` is missing, unknown or revoked, or they do not belong together.",
        applies_to: is_secured,
    },
    SharedRefusal {
        status: "408",
        name: "BodyTooSlow",
        description: "The body did not arrive in time.",
        applies_to: has_body,
    },
    SharedRefusal {
        status: "409",
        name: "LimitReached",
        description: "The application has reached a limit set by the operator.",
        applies_to: is_limited,
    },
    SharedRefusal {
        status: "412",
        name: "EventChanged",
        description: "The event has changed since it was read; see `If-Match`.",
        applies_to: is_conditional,
    },
    SharedRefusal {
        status: "422",
        name: "KeyReused",
        description: "The `Idempotency-Key` was used for another request.",
        applies_to: accepts_idempotency_key,
    },
    SharedRefusal {
        status: "429",
        name: "TooManyRequests",
        description: "Too many requests a second. Retry after `Retry-After` seconds.",
        applies_to: is_secured,
    },
    SharedRefusal {
        status: "501",
        name: "NotOffered",
        description: "This service has no upstream for this flow.",
        applies_to: opens_flow,
    },
    SharedRefusal {
        status: "502",
        name: "UpstreamFailed",
        description: "The upstream refused the order or failed. Nothing was opened.",
        applies_to: opens_flow,
    },
    SharedRefusal {
        status: "504",
        name: "UpstreamTimedOut",
        description: "The upstream did not answer in time. Nothing was opened.",
        applies_to: opens_flow,
    },
];

/// Returns true if the operation accepts an `Idempotency-Key`.
fn accepts_idempotency_key(operation: &Value) -> bool {
    let parameters = operation["parameters"].as_array();
    parameters
        .is_some_and(|all| all.iter().any(|parameter| parameter["$ref"] == "#/components/parameters/IdempotencyKey"))
}

/// Returns true if the operation accepts `If-Match`.
fn is_conditional(operation: &Value) -> bool {
    operation["operationId"] == "updateEvent"
}

/// Returns true if the operator can limit the number of records that the operation creates.
fn is_limited(operation: &Value) -> bool {
    operation["operationId"] == "createEvent" || opens_flow(operation)
}

/// Returns true if the operation places an order with an upstream.
fn opens_flow(operation: &Value) -> bool {
    matches!(
        operation["operationId"].as_str(),
        Some("requestEsign" | "initDocLocker" | "initEStamp" | "requestWealthConsent")
    )
}

/// Returns an example of the error with this status for an operation.
pub(super) fn example(operation: &Value, status: &str) -> Option<ApiError> {
    let error = match (status, operation["tags"][0].as_str()) {
        ("400", _) => ServiceError::Invalid(Invalid::one("claims[2]", "is not a known claim")),
        ("401", _) => ServiceError::Unauthorized,
        ("402", _) => ServiceError::InsufficientCredits,
        // Only verifications have transactions.
        ("404", Some("OVSE")) => ServiceError::TransactionNotFound,
        ("404", Some("Events")) => ServiceError::NotFound("event"),
        ("404", _) => ServiceError::NotFound("flow"),
        ("408", _) => return Some(ApiError::BodyTooSlow),
        ("412", _) => ServiceError::EventChanged,
        ("409", Some("OVSE")) => ServiceError::AlreadyCompleted,
        ("409", _) => ServiceError::LIMIT_REACHED,
        ("410", _) => ServiceError::TransactionExpired,
        ("422", _) => ServiceError::IdempotencyKeyReused,
        ("501", _) => ServiceError::NotOffered,
        ("502", _) => ServiceError::Upstream(UpstreamError::Unreachable),
        ("504", _) => ServiceError::Upstream(UpstreamError::TimedOut),
        _ => return None,
    };
    Some(error.into())
}
