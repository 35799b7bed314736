//! The edge around every route: the request's id, one log line, metrics by route pattern, and the
//! one body for every refusal. What does not say that it may be kept is not stored by anybody, and a
//! browser takes no answer for another kind than it says.
//!
//! On a good answer it costs three headers, one counter and one histogram entry; whatever else it
//! does is paid for by refusals only.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Instant;

use actix_web::body::{BodySize, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest};
use futures_util::FutureExt as _;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::request_id::RequestId;
use sakshi_service::error::ServiceError;

use super::answer_body::AnswerBody;
use super::error::{ApiError, X_REQUEST_ID};
use super::routing::RouteMeter;
use super::unread::Rest;
use crate::listener::{ConnectionState, Exchange};

/// The id of a request, as the edge accepted or minted it.
///
/// A handler that finds a better one in its body puts that into the extensions; it is echoed then.
#[must_use]
pub fn request_id(request: &HttpRequest) -> RequestId {
    request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::mint)
}

/// The middleware, to be wrapped with [`actix_web::middleware::from_fn`] outside all others.
///
/// IdempotencyLocks a panic of a handler into a 500.
///
/// # Errors
/// The rendered refusal after a panic, or after an error of a middleware inside.
pub async fn edge<B: MessageBody + Unpin + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<AnswerBody<EitherBody<B>>>, Error> {
    let started = Instant::now();
    let (id, accepted) = accept(request.headers());
    let connection = request.conn_data::<Rc<ConnectionState>>().cloned();
    let rest = Rest::of(&mut request, connection.clone());
    let length = if rest.is_some() { None } else { Some(declared_length(request.headers()).unwrap_or(0)) };
    let exchange = connection.map(|connection| Exchange::begin(connection, length));
    request.extensions_mut().insert(id.clone());
    let response = match accepted {
        Ok(()) => match AssertUnwindSafe(next.call(request)).catch_unwind().await {
            Ok(Ok(response)) => finish(response.map_into_left_body(), started),
            Ok(Err(error)) => return Err(lost(&refusal_from(&error), &id, rest)),
            Err(_) => return Err(lost(&ApiError::Service(ServiceError::Internal("a handler panicked".to_owned())), &id, rest)),
        },
        Err(refusal) => {
            let answer = refusal.render(&id);
            metrics::counter!("sakshi_http_refusals_total", "code" => refusal.code()).increment(1);
            finish(request.into_response(answer).map_into_right_body(), started)
        }
    };
    let response = match rest {
        Some(mut rest) => {
            if rest.has_arrived().await {
                response
            } else {
                response.map_body(|_, body| EitherBody::right(rest.closing(body)))
            }
        }
        None => response,
    };
    Ok(response.map_body(|_, body| AnswerBody::new(body, exchange)))
}

fn declared_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The answer when the request itself did not come back.
fn lost(refusal: &ApiError, id: &RequestId, rest: Option<Rest>) -> Error {
    tracing::error!(request.id = %id, error.code = refusal.code(), error.detail = refusal.detail().as_deref(), "request lost");
    metrics::counter!("sakshi_http_refusals_total", "code" => refusal.code()).increment(1);
    let answer = refusal.render(id);
    let answer = match rest {
        Some(rest) => answer.map_body(|_, body| rest.closing(body)),
        None => answer,
    };
    InternalError::from_response(refusal.code(), answer).into()
}

fn accept(headers: &HeaderMap) -> (RequestId, Result<(), ApiError>) {
    match headers.get(X_REQUEST_ID) {
        None => (RequestId::mint(), Ok(())),
        Some(value) => match RequestId::parse(value.to_str().unwrap_or_default()) {
            Ok(id) => (id, Ok(())),
            Err(message) => (RequestId::mint(), Err(Invalid::one("X-Request-ID", message).into())),
        },
    }
}

fn finish<B: MessageBody + 'static>(mut response: ServiceResponse<EitherBody<B>>, started: Instant) -> ServiceResponse<EitherBody<B>> {
    let id = request_id(response.request());
    let status = response.status();
    let mut refused = None;
    if status.is_client_error() || status.is_server_error() {
        refused = refusal_of(&response);
        if let Some(error) = &refused {
            metrics::counter!("sakshi_http_refusals_total", "code" => error.code()).increment(1);
            let answer = error.render(&id).map_into_right_body();
            response = ServiceResponse::new(response.into_parts().0, answer);
        }
    }
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let duration = started.elapsed();
    let status = response.status().as_u16();
    let request = response.request();
    let pattern = request.app_data::<RouteMeter>().map_or("unmatched", |meter| {
        meter.record(request.method(), status, duration);
        meter.pattern()
    });
    let duration_ms = duration.as_secs_f64() * 1_000.0;
    let method = request.method().as_str();
    if status >= 500 {
        let detail = refused.as_ref().and_then(ApiError::detail);
        let code = refused.as_ref().map(ApiError::code);
        tracing::error!(http.method = method, http.route = pattern, http.status = status, http.duration_ms = duration_ms, request.id = %id, error.code = code, error.detail = detail.as_deref(), "request failed");
    } else {
        tracing::info!(http.method = method, http.route = pattern, http.status = status, http.duration_ms = duration_ms, request.id = %id, "request answered");
    }
    response
}

/// The refusal to render, or `None` when the handler wrote a body of its own.
fn refusal_of<B: MessageBody + 'static>(response: &ServiceResponse<EitherBody<B>>) -> Option<ApiError> {
    let inner = response.response();
    // The framework's own words are plain text; a page was written for whoever reads it.
    let page = inner.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if let Some(error) = inner.error().filter(|_| !page) {
        return Some(refusal_from(error));
    }
    let bare = matches!(inner.body().size(), BodySize::None | BodySize::Sized(0));
    bare.then(|| ApiError::from_status(response.status(), inner.headers().get(header::ALLOW)))
}

/// Our own refusal, or the one that stands for an error of the framework's.
fn refusal_from(error: &Error) -> ApiError {
    error.as_error::<ApiError>().cloned().unwrap_or_else(|| match error.as_response_error().status_code() {
        status if status.is_server_error() => ApiError::internal(error),
        status => ApiError::from_status(status, None),
    })
}
