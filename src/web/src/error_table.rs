//! The error table: status, code and message of every error.

use std::borrow::Cow;

use actix_web::http::StatusCode;
use sakshi_domain::checks::NumberForm;
use sakshi_domain::event::EventRefusal;
use sakshi_outbound::upstream::UpstreamError;
use sakshi_service::ServiceError;

use crate::error::ApiError;

/// A row of the table.
pub(crate) struct Row<'a> {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: Cow<'a, str>,
}

const fn row(status: StatusCode, code: &'static str, message: &'static str) -> Row<'static> {
    Row { status, code, message: Cow::Borrowed(message) }
}

const OVERLOADED: Row<'static> =
    row(StatusCode::SERVICE_UNAVAILABLE, "overloaded", "The service is overloaded. Retry after `Retry-After` seconds.");

const INTERNAL: Row<'static> =
    row(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "Internal error. Quote `errorId` when you ask about it.");

/// Returns the row of an error.
pub(crate) fn api_row(error: &ApiError) -> Row<'_> {
    match error {
        ApiError::Service(error) => service_row(error),
        ApiError::MalformedBody(message) => {
            Row { status: StatusCode::BAD_REQUEST, code: "malformed_request", message: message.as_str().into() }
        }
        ApiError::BearerUnauthorized => {
            row(StatusCode::UNAUTHORIZED, "unauthorized", "Missing or invalid Authorization header")
        }
        ApiError::Forbidden => row(StatusCode::FORBIDDEN, "forbidden", "Your role does not include this operation."),
        ApiError::AddressNotAllowed => {
            row(StatusCode::UNAUTHORIZED, "address_not_allowed", "This API key may not be used from this address.")
        }
        ApiError::CertificateRequired => row(
            StatusCode::FORBIDDEN,
            "client_certificate_required",
            "This listener requires a client certificate from a trusted authority.",
        ),
        ApiError::CrossSite => {
            row(StatusCode::FORBIDDEN, "cross_site", "Pages of other sites may not send this request.")
        }
        ApiError::MethodNotAllowed { .. } => row(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "The path does not support this method; see the `Allow` header.",
        ),
        ApiError::BodyTooLarge { limit } => Row {
            status: StatusCode::PAYLOAD_TOO_LARGE,
            code: "body_too_large",
            message: format!("The body must be at most {limit} bytes.").into(),
        },
        ApiError::BodyTooSlow => row(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "The body did not arrive in time."),
        ApiError::UnsupportedMediaType(message) => {
            row(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
        }
        ApiError::RateLimited { limit, .. } => Row {
            status: StatusCode::TOO_MANY_REQUESTS,
            code: "rate_limited",
            message: format!("Too many requests for the limit `{limit}`. Retry after `Retry-After` seconds.").into(),
        },
        ApiError::Unhealthy(message) => {
            Row { status: StatusCode::SERVICE_UNAVAILABLE, code: "unhealthy", message: message.as_str().into() }
        }
        ApiError::Other { status, code, message } => Row { status: *status, code, message: message.as_str().into() },
    }
}

/// Returns the row of a use case's error.
fn service_row(error: &ServiceError) -> Row<'_> {
    match error {
        ServiceError::Invalid(_) => {
            row(StatusCode::BAD_REQUEST, "validation_failed", "Some fields are not valid; see `errors`.")
        }
        ServiceError::Unauthorized => {
            row(StatusCode::UNAUTHORIZED, "unauthorized", "Missing or invalid X-API-KEY header")
        }
        ServiceError::InsufficientCredits => row(
            StatusCode::PAYMENT_REQUIRED,
            "insufficient_credits",
            "The credit balance does not cover this operation.",
        ),
        ServiceError::TransactionNotFound => {
            row(StatusCode::NOT_FOUND, "transaction_not_found", "There is no such transaction.")
        }
        ServiceError::NotFound(resource) => Row {
            status: StatusCode::NOT_FOUND,
            code: "not_found",
            message: format!("There is no such {resource}.").into(),
        },
        ServiceError::AlreadyCompleted => {
            row(StatusCode::CONFLICT, "already_completed", "The transaction is already completed.")
        }
        ServiceError::EventChanged => row(
            StatusCode::PRECONDITION_FAILED,
            "event_changed",
            "The event has changed since it was read; see its `ETag`.",
        ),
        ServiceError::Conflict { code, message } => row(StatusCode::CONFLICT, code, message),
        ServiceError::ReportRefused(refusal) => {
            Row { status: StatusCode::CONFLICT, code: "report_refused", message: refusal.to_string().into() }
        }
        ServiceError::TransactionExpired => {
            row(StatusCode::GONE, "transaction_expired", "The transaction has expired.")
        }
        ServiceError::EventRefused(refusal) => event_row(*refusal),
        ServiceError::CodeExpired => row(
            StatusCode::FORBIDDEN,
            "code_expired",
            "The code is no longer valid. Scan the current code on the kiosk of the event.",
        ),
        ServiceError::BudgetSpent => {
            row(StatusCode::CONFLICT, "budget_spent", "The guests of the event have spent its credit budget.")
        }
        ServiceError::ScansPending => {
            row(StatusCode::TOO_MANY_REQUESTS, "rate_limited", "Too many requests. Retry after `Retry-After` seconds.")
        }
        ServiceError::IdempotencyKeyReused => row(
            StatusCode::UNPROCESSABLE_ENTITY,
            "idempotency_key_reused",
            "This `Idempotency-Key` was used for another request; use a new one.",
        ),
        ServiceError::Unavailable { code, .. } => row(
            StatusCode::SERVICE_UNAVAILABLE,
            code,
            "The service cannot do this now. Retry after `Retry-After` seconds.",
        ),
        ServiceError::Overloaded => OVERLOADED,
        ServiceError::MalformedNumber(form) => number_row(form),
        ServiceError::NotOffered => {
            row(StatusCode::NOT_IMPLEMENTED, "not_offered", "This service does not offer this operation.")
        }
        ServiceError::Upstream(error) => upstream_row(*error),
        ServiceError::Source(error) => source_row(*error),
        ServiceError::Internal(_) => INTERNAL,
    }
}

/// Returns the row of an event's refusal.
const fn event_row(refusal: EventRefusal) -> Row<'static> {
    match refusal {
        EventRefusal::Full => row(StatusCode::CONFLICT, "event_full", "The event is full."),
        EventRefusal::Disabled => row(StatusCode::GONE, "event_closed", "The event was disabled."),
        EventRefusal::Expired => row(StatusCode::GONE, "event_closed", "The event has ended."),
        // No scan is refused for this: the guest is only known at the end.
        EventRefusal::Duplicate => row(StatusCode::CONFLICT, "already_registered", "The person is already registered."),
    }
}

/// Returns the row of a malformed number, such as a PAN, with an example of its form.
fn number_row(form: &NumberForm) -> Row<'static> {
    Row {
        status: StatusCode::UNPROCESSABLE_ENTITY,
        code: form.refusal,
        message: format!("The {} must be {}, such as {}.", form.field, form.rule, form.example).into(),
    }
}

/// Returns the row of a failed order: a request to an upstream that would have opened a flow.
const fn upstream_row(error: UpstreamError) -> Row<'static> {
    match error {
        UpstreamError::Busy => OVERLOADED,
        UpstreamError::TimedOut => row(
            StatusCode::GATEWAY_TIMEOUT,
            "upstream_timed_out",
            "The upstream did not answer in time. Nothing was opened.",
        ),
        _ => row(
            StatusCode::BAD_GATEWAY,
            "upstream_failed",
            "The upstream refused the order or failed. Nothing was opened.",
        ),
    }
}

/// Returns the row of a failed query to a source: a register that would have verified a number.
const fn source_row(error: UpstreamError) -> Row<'static> {
    match error {
        UpstreamError::Busy => OVERLOADED,
        UpstreamError::TimedOut => row(
            StatusCode::GATEWAY_TIMEOUT,
            "upstream_timed_out",
            "The source did not answer in time. Nothing was verified.",
        ),
        _ => row(StatusCode::BAD_GATEWAY, "upstream_failed", "The source failed. Nothing was verified."),
    }
}
