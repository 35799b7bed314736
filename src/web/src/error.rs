//! The error table: code, status and message of every error, and the body of every response other than 2xx and 3xx.
//!
//! Internal detail goes to the log with the request id, never into a body.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::{HttpResponse, ResponseError};
use sakshi_actors::AskError;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::UpstreamError;
use sakshi_service::ServiceError;
use sakshi_service::budget::BudgetExhausted;
use sakshi_store::StoreError;
use sakshi_wire::refusal::Error as ErrorBody;
use sakshi_wire::{Always, Whole};

/// Header that carries the request id in both directions.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Every error code outside the sandbox's own routes. The proxy in `deploy/haproxy/` sends the `node` ones and
/// `no_node`.
pub const CODES: &[&str] = &[
    "address_not_allowed",
    "already_completed",
    "already_decided",
    "balance_out_of_range",
    "body_too_large",
    "body_too_slow",
    "budget_spent",
    "client_certificate_required",
    "client_too_large",
    "code_expired",
    "cross_site",
    "email_taken",
    "event_changed",
    "event_closed",
    "event_full",
    "forbidden",
    "idempotency_key_reused",
    "insufficient_credits",
    "internal_error",
    "key_not_active",
    "limit_reached",
    "malformed_account_number",
    "malformed_epic_number",
    "malformed_gstin",
    "malformed_ifsc",
    "malformed_pan",
    "malformed_request",
    "method_not_allowed",
    "no_answer",
    "no_node",
    "node_lost",
    "node_timeout",
    "not_found",
    "not_offered",
    "overloaded",
    "rate_limited",
    "reference_reused",
    "report_refused",
    "second_person_required",
    "signer_unavailable",
    "storage_corrupt",
    "storage_full",
    "storage_in_use",
    "storage_key",
    "storage_overloaded",
    "storage_unavailable",
    "transaction_expired",
    "transaction_not_found",
    "unauthorized",
    "unhealthy",
    "unsupported_media_type",
    "upstream_failed",
    "upstream_timed_out",
    "validation_failed",
];

/// Path of the page that explains the codes, below the service's public URL.
const DOCUMENT: &str = "/docs/errors";

/// The service's public URL without a trailing slash, as app data: the start of an error's `docUrl`.
#[derive(Clone, Debug, Default)]
pub struct DocsBase(pub Arc<str>);

/// The reason why a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiError {
    /// The use case failed.
    Service(ServiceError),
    /// The body, path or query cannot be parsed; the message names the place.
    MalformedBody(String),
    /// No valid bearer token on the internal listener.
    BearerUnauthorized,
    /// The role of the operator does not include the operation.
    Forbidden,
    /// The key is not allowed from this address.
    AddressNotAllowed,
    /// The connection has no client certificate.
    CertificateRequired,
    /// A page of another site sent the request.
    CrossSite,
    /// The path does not support this method.
    MethodNotAllowed {
        /// Value of `Allow`.
        allow: Cow<'static, str>,
    },
    /// The body is too large.
    BodyTooLarge {
        /// Limit in bytes.
        limit: usize,
    },
    /// The body did not arrive in time.
    BodyTooSlow,
    /// The media type is not supported; the message names the one that is.
    UnsupportedMediaType(&'static str),
    /// Too many requests.
    RateLimited {
        /// Name of the limit.
        limit: &'static str,
        /// Time until a retry.
        retry_after: Duration,
    },
    /// A probe found the process unhealthy. The message is for the operator, on the internal listener.
    Unhealthy(String),
    /// An error of the sandbox's own routes.
    Other {
        /// The status.
        status: StatusCode,
        /// The code.
        code: &'static str,
        /// The message.
        message: String,
    },
}

/// A row of the table.
struct Row<'a> {
    status: StatusCode,
    code: &'static str,
    message: Cow<'a, str>,
}

const fn row(status: StatusCode, code: &'static str, message: &'static str) -> Row<'static> {
    Row { status, code, message: Cow::Borrowed(message) }
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
        ServiceError::NotFound(what) => Row {
            status: StatusCode::NOT_FOUND,
            code: "not_found",
            message: format!("There is no such {what}.").into(),
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
        ServiceError::EventRefused(EventRefusal::Full) => row(StatusCode::CONFLICT, "event_full", "The event is full."),
        ServiceError::EventRefused(EventRefusal::Disabled) => {
            row(StatusCode::GONE, "event_closed", "The event was disabled.")
        }
        ServiceError::EventRefused(EventRefusal::Expired) => {
            row(StatusCode::GONE, "event_closed", "The event has ended.")
        }
        // No scan is refused for this: the guest is only known at the end.
        ServiceError::EventRefused(EventRefusal::Duplicate) => {
            row(StatusCode::CONFLICT, "already_registered", "The person is already registered.")
        }
        ServiceError::CodeExpired => row(
            StatusCode::FORBIDDEN,
            "code_expired",
            "The code is no longer valid. Scan the one that the kiosk of the event shows now.",
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
        ServiceError::Overloaded => row(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            "The service is overloaded. Retry after `Retry-After` seconds.",
        ),
        ServiceError::MalformedNumber(form) => Row {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            code: form.refusal,
            message: format!("The {} must be {}, such as {}.", form.field, form.rule, form.example).into(),
        },
        ServiceError::NotOffered => {
            row(StatusCode::NOT_IMPLEMENTED, "not_offered", "This service does not offer this operation.")
        }
        ServiceError::Upstream(UpstreamError::TimedOut) => row(
            StatusCode::GATEWAY_TIMEOUT,
            "upstream_timed_out",
            "The upstream did not answer in time. Nothing was opened.",
        ),
        ServiceError::Source(UpstreamError::TimedOut) => row(
            StatusCode::GATEWAY_TIMEOUT,
            "upstream_timed_out",
            "The source did not answer in time. Nothing was verified.",
        ),
        ServiceError::Upstream(UpstreamError::Busy) | ServiceError::Source(UpstreamError::Busy) => {
            service_row(&ServiceError::Overloaded)
        }
        ServiceError::Source(_) => {
            row(StatusCode::BAD_GATEWAY, "upstream_failed", "The source failed. Nothing was verified.")
        }
        ServiceError::Upstream(_) => row(
            StatusCode::BAD_GATEWAY,
            "upstream_failed",
            "The upstream refused the order or failed. Nothing was opened.",
        ),
        ServiceError::Internal(_) => row(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            "Internal error. Quote `errorId` when you ask about it.",
        ),
    }
}

impl ApiError {
    fn row(&self) -> Row<'_> {
        match self {
            Self::Service(error) => service_row(error),
            Self::MalformedBody(message) => {
                Row { status: StatusCode::BAD_REQUEST, code: "malformed_request", message: message.as_str().into() }
            }
            Self::BearerUnauthorized => {
                row(StatusCode::UNAUTHORIZED, "unauthorized", "Missing or invalid Authorization header")
            }
            Self::Forbidden => row(StatusCode::FORBIDDEN, "forbidden", "Your role does not include this operation."),
            Self::AddressNotAllowed => {
                row(StatusCode::UNAUTHORIZED, "address_not_allowed", "This API key may not be used from this address.")
            }
            Self::CertificateRequired => row(
                StatusCode::FORBIDDEN,
                "client_certificate_required",
                "This listener answers clients that show a certificate of the authority it trusts.",
            ),
            Self::CrossSite => {
                row(StatusCode::FORBIDDEN, "cross_site", "Pages of other sites may not send this request.")
            }
            Self::MethodNotAllowed { .. } => row(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "The path does not support this method; see the `Allow` header.",
            ),
            Self::BodyTooLarge { limit } => Row {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                code: "body_too_large",
                message: format!("The body must be at most {limit} bytes.").into(),
            },
            Self::BodyTooSlow => row(StatusCode::REQUEST_TIMEOUT, "body_too_slow", "The body did not arrive in time."),
            Self::UnsupportedMediaType(message) => {
                row(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
            }
            Self::RateLimited { limit, .. } => Row {
                status: StatusCode::TOO_MANY_REQUESTS,
                code: "rate_limited",
                message: format!("Too many requests for the limit `{limit}`. Retry after `Retry-After` seconds.")
                    .into(),
            },
            Self::Unhealthy(message) => {
                Row { status: StatusCode::SERVICE_UNAVAILABLE, code: "unhealthy", message: message.as_str().into() }
            }
            Self::Other { status, code, message } => Row { status: *status, code, message: message.as_str().into() },
        }
    }

    /// Builds an internal error; the text is for the log.
    #[must_use]
    pub fn internal(detail: impl std::fmt::Display) -> Self {
        Self::Service(ServiceError::Internal(detail.to_string()))
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.row().code
    }

    /// Returns the message for the client.
    #[must_use]
    pub fn message(&self) -> String {
        self.row().message.into_owned()
    }

    /// Returns the detail for the log only.
    #[must_use]
    pub fn detail(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Service(ServiceError::Internal(detail)) => Some(detail.into()),
            Self::Service(ServiceError::Upstream(error) | ServiceError::Source(error)) => {
                Some(error.to_string().into())
            }
            _ => None,
        }
    }

    /// Returns whole seconds for `Retry-After`, at least one.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        let wait = match self {
            Self::RateLimited { retry_after, .. } | Self::Service(ServiceError::Unavailable { retry_after, .. }) => {
                *retry_after
            }
            Self::Service(
                ServiceError::Overloaded
                | ServiceError::Upstream(UpstreamError::Busy)
                | ServiceError::Source(UpstreamError::Busy),
            )
            | Self::Unhealthy(_) => Duration::from_secs(1),
            Self::Service(ServiceError::ScansPending) => Duration::from_secs(10),
            _ => return None,
        };
        Some(wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0)).max(1))
    }

    /// Builds the response to the request with this id.
    #[must_use]
    pub fn render(&self, id: &RequestId, DocsBase(docs): &DocsBase) -> HttpResponse {
        let row = self.row();
        let mut response = HttpResponse::build(row.status);
        if let Some(seconds) = self.retry_after() {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        match self {
            Self::MethodNotAllowed { allow } => {
                response.insert_header((header::ALLOW, allow.as_ref()));
            }
            Self::BearerUnauthorized => {
                response.insert_header((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
            }
            Self::Service(ServiceError::Unauthorized) => {
                response.insert_header((header::WWW_AUTHENTICATE, HeaderValue::from_static("ApiKey")));
            }
            _ => {}
        }
        response.insert_header((header::CACHE_CONTROL, HeaderValue::from_static("no-store")));
        response.insert_header((header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")));
        if let Ok(id) = HeaderValue::from_str(id.as_str()) {
            response.insert_header((X_REQUEST_ID, id));
        }
        response.json(ErrorBody {
            success: Always,
            error: row.status.canonical_reason().unwrap_or("Error").into(),
            message: row.message.into_owned().into(),
            code: row.code.into(),
            status_code: Whole(row.status.as_u16().into()),
            error_id: id.clone(),
            doc_url: match self {
                Self::Other { .. } => format!("{docs}{DOCUMENT}").into(),
                _ => format!("{docs}{DOCUMENT}#{}", row.code).into(),
            },
            errors: match self {
                Self::Service(ServiceError::Invalid(invalid)) => invalid.fields().to_vec(),
                _ => Vec::new(),
            },
        })
    }

    /// Returns the error for a bare status of the framework.
    pub(crate) fn from_status(status: StatusCode, allow: Option<&HeaderValue>) -> Self {
        match status.as_u16() {
            404 => ServiceError::NotFound("path").into(),
            405 => {
                let allow = allow.and_then(|value| value.to_str().ok()).unwrap_or_default();
                Self::MethodNotAllowed { allow: allow.to_owned().into() }
            }
            413 => Self::BodyTooLarge { limit: sakshi_domain::limits::CALLBACK_BYTES_MAX },
            415 => Self::UnsupportedMediaType("This form of body is not read here."),
            400..=499 => Self::MalformedBody("The request cannot be read.".to_owned()),
            503 => ServiceError::Overloaded.into(),
            _ => Self::internal(format!("a bare {status} left a handler")),
        }
    }
}

impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.row().status
    }

    /// Uses a fresh id; the middleware renders it again with the request's.
    fn error_response(&self) -> HttpResponse {
        self.render(&RequestId::mint(), &DocsBase::default())
    }
}

/// Errors that a use case can have.
macro_rules! from_service_errors {
    ($($error:ty),*) => { $(
        impl From<$error> for ApiError {
            fn from(error: $error) -> Self {
                Self::Service(error.into())
            }
        }
    )* };
}

from_service_errors!(ServiceError, Invalid, StoreError, AskError, UpstreamError, EventRefusal, BudgetExhausted);

#[cfg(test)]
mod tests {
    use actix_web::body::to_bytes;
    use serde_json::{Value, json};

    use super::*;

    async fn rendered(error: ApiError) -> (HttpResponse<()>, Value) {
        let (head, body) =
            error.render(&RequestId::parse("req-1").unwrap(), &DocsBase("https://verify.example".into())).into_parts();
        (head, serde_json::from_slice(&to_bytes(body).await.unwrap()).unwrap())
    }

    #[actix_rt::test]
    async fn the_401_says_what_the_specification_shows() {
        let (head, body) = rendered(ApiError::Service(ServiceError::Unauthorized)).await;
        assert_eq!(head.headers().get("www-authenticate").unwrap(), "ApiKey");
        assert_eq!(
            body,
            json!({"success": false, "error": "Unauthorized", "message": "Missing or invalid X-API-KEY header",
                "code": "unauthorized", "statusCode": 401, "errorId": "req-1",
                "docUrl": "https://verify.example/docs/errors#unauthorized"})
        );
    }

    #[actix_rt::test]
    async fn a_validation_400_lists_every_field() {
        let mut invalid = Invalid::one("claims[2]", "is not a claim");
        invalid.add("channel", "is missing");
        let (_, body) = rendered(invalid.into()).await;
        assert_eq!(body["errors"][0], json!({"field": "claims[2]", "message": "is not a claim"}));
        assert_eq!(body["errors"][1]["field"], "channel");
        assert_eq!((body["statusCode"].clone(), body["error"].clone()), (json!(400), json!("Bad Request")));
    }

    #[actix_rt::test]
    async fn a_429_and_a_503_say_when_to_come_again() {
        let half = Duration::from_millis(500);
        for (error, seconds) in [
            (ApiError::RateLimited { limit: "test", retry_after: half }, "1"),
            (
                ApiError::Service(ServiceError::Unavailable {
                    code: "storage_full",
                    retry_after: Duration::from_millis(2_100),
                }),
                "3",
            ),
            (ApiError::Service(ServiceError::Overloaded), "1"),
            (StoreError::Full.into(), "30"),
        ] {
            let (head, _) = rendered(error).await;
            assert_eq!(head.headers().get("retry-after").unwrap(), seconds);
        }
    }

    #[actix_rt::test]
    async fn a_500_and_a_503_never_leak_detail() {
        for error in [ApiError::internal("secret detail"), StoreError::Corrupt("secret detail".into()).into()] {
            let (_, body) = rendered(error).await;
            assert!(!body.to_string().contains("secret"), "{body}");
        }
    }
}
