//! The errors of the HTTP edge, and the body of every response other than 2xx and 3xx. The module `error_table` has the
//! code, status and message of every error.
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

use crate::error_table::api_row;

/// Header that carries the request id in both directions.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Every error code outside the sandbox's own routes. The proxy in `deploy/haproxy/` sends `no_node`, and the codes
/// that begin with `node_`.
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
    "pin_required",
    "rate_limited",
    "reference_reused",
    "report_refused",
    "second_person_required",
    "signer_unavailable",
    "storage_corrupt",
    "storage_full",
    "storage_in_use",
    "storage_installation",
    "storage_key",
    "storage_overloaded",
    "storage_schema",
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
const ERRORS_PAGE: &str = "/docs/errors";

/// The service's public URL without a trailing slash, as app data: the start of an error's `docUrl`.
#[derive(Clone, Debug, Default)]
pub struct DocsBase(pub Arc<str>);

/// The reason why a request fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiError {
    /// The use case failed.
    Service(ServiceError),
    /// The body, path or query cannot be parsed; the message says where.
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
    /// The media type is not supported; the message names the supported type.
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

impl ApiError {
    /// Builds an internal error; `detail` is for the log only.
    #[must_use]
    pub fn internal(detail: impl std::fmt::Display) -> Self {
        Self::Service(ServiceError::Internal(detail.to_string()))
    }

    /// Returns the stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        api_row(self).code
    }

    /// Returns the message for the client.
    #[must_use]
    pub fn message(&self) -> String {
        api_row(self).message.into_owned()
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

    /// Returns the value of `Retry-After` in whole seconds, at least 1.
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

    /// Builds the response to the request `id`.
    #[must_use]
    pub fn render(&self, id: &RequestId, DocsBase(docs): &DocsBase) -> HttpResponse {
        let row = api_row(self);
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
                Self::Other { .. } => format!("{docs}{ERRORS_PAGE}").into(),
                _ => format!("{docs}{ERRORS_PAGE}#{}", row.code).into(),
            },
            errors: match self {
                Self::Service(ServiceError::Invalid(invalid)) => invalid.fields().to_vec(),
                _ => Vec::new(),
            },
        })
    }

    /// Converts a status that the framework sent without a body.
    pub(crate) fn from_status(status: StatusCode, allow: Option<&HeaderValue>) -> Self {
        match status.as_u16() {
            404 => ServiceError::NotFound("path").into(),
            405 => {
                let allow = allow.and_then(|value| value.to_str().ok()).unwrap_or_default();
                Self::MethodNotAllowed { allow: allow.to_owned().into() }
            }
            413 => Self::BodyTooLarge { limit: sakshi_domain::limits::CALLBACK_BYTES_MAX },
            415 => Self::UnsupportedMediaType("The path does not support this media type."),
            400..=499 => Self::MalformedBody("The request cannot be read.".to_owned()),
            503 => ServiceError::Overloaded.into(),
            _ => Self::internal(format!("a handler returned {status} without a body")),
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
        api_row(self).status
    }

    /// Renders the error with a new id. The middleware renders it again with the id of the request.
    fn error_response(&self) -> HttpResponse {
        self.render(&RequestId::mint(), &DocsBase::default())
    }
}

/// Converts the errors of use cases.
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

    async fn render_error(error: ApiError) -> (HttpResponse<()>, Value) {
        let (head, body) =
            error.render(&RequestId::parse("req-1").unwrap(), &DocsBase("https://verify.example".into())).into_parts();
        (head, serde_json::from_slice(&to_bytes(body).await.unwrap()).unwrap())
    }

    #[actix_rt::test]
    async fn a_401_matches_the_specification() {
        let (head, body) = render_error(ApiError::Service(ServiceError::Unauthorized)).await;
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
        let (_, body) = render_error(invalid.into()).await;
        assert_eq!(body["errors"][0], json!({"field": "claims[2]", "message": "is not a claim"}));
        assert_eq!(body["errors"][1]["field"], "channel");
        assert_eq!((body["statusCode"].clone(), body["error"].clone()), (json!(400), json!("Bad Request")));
    }

    #[actix_rt::test]
    async fn a_429_and_a_503_have_retry_after() {
        let half_second = Duration::from_millis(500);
        for (error, seconds) in [
            (ApiError::RateLimited { limit: "test", retry_after: half_second }, "1"),
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
            let (head, _) = render_error(error).await;
            assert_eq!(head.headers().get("retry-after").unwrap(), seconds);
        }
    }

    #[actix_rt::test]
    async fn a_500_and_a_503_never_leak_detail() {
        for error in [ApiError::internal("secret detail"), StoreError::Corrupt("secret detail".into()).into()] {
            let (_, body) = render_error(error).await;
            assert!(!body.to_string().contains("secret"), "{body}");
        }
    }
}
