//! Which operations meet which refusals of the API, and an example of each.

use sakshi_domain::invalid::Invalid;
use sakshi_outbound::upstream::UpstreamError;
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_web::openapi::{SharedRefusal, is_secured};
use serde_json::Value;

/// What operations share beyond the refusals that those of every edge meet.
pub(super) const SHARED: [SharedRefusal; 6] = [
    SharedRefusal {
        status: "401",
        name: "Unauthorized",
        description: "X-API-KEY or X-API-APP-ID is missing, unknown, revoked, or one does not belong to the other.",
        meets: is_secured,
    },
    SharedRefusal {
        status: "422",
        name: "KeyReused",
        description: "The Idempotency-Key came before with another request.",
        meets: opens_flow,
    },
    SharedRefusal { status: "429", name: "TooMany", description: "The app opens more per second than it may.", meets: opens_flow },
    SharedRefusal { status: "501", name: "NotOffered", description: "This service has no upstream for it.", meets: opens_flow },
    SharedRefusal {
        status: "502",
        name: "UpstreamFailed",
        description: "The upstream did not take the order; nothing was opened.",
        meets: opens_flow,
    },
    SharedRefusal {
        status: "504",
        name: "UpstreamTimedOut",
        description: "The upstream did not answer in time; nothing was opened.",
        meets: opens_flow,
    },
];

/// Whether it places an order with an upstream and opens a flow with its answer.
fn opens_flow(operation: &Value) -> bool {
    matches!(operation["operationId"].as_str(), Some("requestEsign" | "initDocLocker" | "initEStamp" | "requestWealthConsent"))
}

/// The refusal with this status that stands for an operation.
pub(super) fn example(operation: &Value, status: &str) -> Option<ApiError> {
    let error = match (status, operation["tags"][0].as_str()) {
        ("400", _) => ServiceError::Invalid(Invalid::one("claims[2]", "is not a known claim")),
        ("401", _) => ServiceError::Unauthorized,
        ("402", _) => ServiceError::InsufficientCredits,
        // Only verifications have transactions.
        ("404", Some("OVSE")) => ServiceError::TransactionNotFound,
        ("404", Some("Events")) => ServiceError::NotFound("event"),
        ("404", _) => ServiceError::NotFound("flow"),
        ("409", _) => ServiceError::AlreadyCompleted,
        ("410", _) => ServiceError::TransactionExpired,
        ("422", _) => ServiceError::IdempotencyKeyReused,
        ("501", _) => ServiceError::NotOffered,
        ("502", _) => ServiceError::Upstream(UpstreamError::Unreachable),
        ("504", _) => ServiceError::Upstream(UpstreamError::TimedOut),
        _ => return None,
    };
    Some(error.into())
}
