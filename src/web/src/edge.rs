//! The middleware around every route: the request id, one log line, metrics by route pattern, one body for every error.
//! It sets `Cache-Control: no-store` (unless the handler does) and `X-Content-Type-Options: nosniff`.
//!
//! A successful response costs three headers, one counter and one histogram entry. All other work is for errors only.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::time::Instant;

use actix_web::body::{BodySize, EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::InternalError;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, HttpRequest, ResponseError as _};
use futures_util::{FutureExt as _, StreamExt as _};
use sakshi_domain::request_id::RequestId;
use sakshi_service::budget::Owner;
use sakshi_trace::TraceState;
use tracing::{Instrument as _, Span};

use super::body_reader::declared_length;
use super::error::{ApiError, DocsBase, X_REQUEST_ID};
use super::error_page::error_page;
use super::refusal_record;
use super::request_log::{self, AnsweredRequest, is_probe, method_name};
use super::response_body::ResponseBody;
use super::routing::RouteMetrics;
use super::unread_body::UnreadBody;
use crate::listener::{ActiveRequest, ConnectionState};
use crate::rate_limit::{self, sender};

/// Returns the request id that the middleware accepted or generated.
#[must_use]
pub fn request_id(request: &HttpRequest) -> RequestId {
    request.extensions().get::<RequestId>().cloned().unwrap_or_else(RequestId::mint)
}

/// Replaces the id of a request by the id in its body, if there is one, and returns the id in use.
#[must_use]
pub fn adopt_request_id(request: &HttpRequest, id_in_body: Option<RequestId>) -> RequestId {
    let Some(id) = id_in_body else { return request_id(request) };
    sakshi_trace::adopt_request(id.shared());
    request.extensions_mut().insert(id.clone());
    id
}

/// Wraps every route, for [`actix_web::middleware::from_fn`]; it must be the outermost. Turns a panic of a handler into
/// a 500.
///
/// # Errors
/// The rendered response after a panic, or after an error of an inner middleware.
pub async fn edge<B: MessageBody + Unpin + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<ResponseBody<EitherBody<B>>>, Error> {
    let started = Instant::now();
    let id = received_or_new_id(request.headers());
    let docs = request.app_data::<DocsBase>().cloned().unwrap_or_default();
    let connection = request.conn_data::<Rc<ConnectionState>>().cloned();
    let unread = UnreadBody::wrap(&mut request, connection.clone());
    let length = if unread.is_some() { None } else { Some(declared_length(request.headers()).unwrap_or(0) as u64) };
    let refusal =
        connection.as_ref().and_then(|connection| connection.refusal()).filter(|_| !is_health_check(request.path()));
    if let (Some(connection), Owner::Address(owner)) = (&connection, sender(request.request())) {
        connection.set_owner(owner);
    }
    let active = connection.map(|connection| begin(&mut request, connection, length));
    request.extensions_mut().insert(id.clone());
    let span = span(&request);
    if let Some(refusal) = refusal {
        return Err(error_without_response(&refusal, (&id, &docs), unread, &span));
    }
    let handled = AssertUnwindSafe(next.call(request)).catch_unwind().instrument(span.clone());
    let response = match sakshi_trace::in_request(id.shared(), handled).await {
        Ok(Ok(response)) => complete_response(response.map_into_left_body(), started, &docs, &span),
        Ok(Err(error)) => return Err(error_without_response(&to_api_error(&error), (&id, &docs), unread, &span)),
        Err(_) => {
            return Err(error_without_response(&ApiError::internal("a handler panicked"), (&id, &docs), unread, &span));
        }
    };
    let unread = match unread {
        Some(unread) if !unread.drain().await => Some(unread),
        _ => None,
    };
    Ok(response.map_body(|_, body| ResponseBody::new(body, active, unread)))
}

/// Begins a request on its connection; `length` is that of its body, `None` if the body is chunked. Bytes of a body
/// that were read apart from the end of the head look like part of it. So the reader of a body notes its end.
fn begin(request: &mut ServiceRequest, connection: Rc<ConnectionState>, length: Option<u64>) -> ActiveRequest {
    let active = ActiveRequest::begin(Rc::clone(&connection), length);
    if let Some(mut remaining) = length.filter(|_| connection.awaits_body()) {
        let body = request.take_payload().inspect(move |chunk| {
            remaining = remaining.saturating_sub(chunk.as_ref().map_or(0, |chunk| chunk.len() as u64));
            if remaining == 0 {
                connection.note_body_end();
            }
        });
        request.set_payload(Payload::from(body.boxed_local()));
    }
    active
}

/// Returns true for the paths that every connection serves.
fn is_health_check(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz")
}

/// Logs and counts an error for which no handler built a response, and builds its response.
fn error_without_response(
    error: &ApiError,
    (id, docs): (&RequestId, &DocsBase),
    unread: Option<UnreadBody>,
    span: &Span,
) -> Error {
    sakshi_trace::mark_failed(span, error.code());
    if error.status_code().is_server_error() {
        tracing::error!(request.id = %id, error.type = error.code(), error.detail = error.detail().as_deref(),
            "request lost");
    } else {
        tracing::warn!(request.id = %id, error.type = error.code(), "request refused");
    }
    metrics::counter!("sakshi_http_refusals_total", "code" => error.code()).increment(1);
    let response = error.render(id, docs).map_body(|_, body| ResponseBody::new(body, None, unread).boxed());
    InternalError::from_response(error.code(), response).into()
}

/// Returns the id that the caller sent, or a new one. A malformed or repeated id is replaced, not refused: a proxy may
/// have added it.
fn received_or_new_id(headers: &HeaderMap) -> RequestId {
    let mut values = headers.get_all(X_REQUEST_ID);
    let id =
        values.next().filter(|_| values.next().is_none()).and_then(|value| RequestId::parse(value.to_str().ok()?).ok());
    id.unwrap_or_else(RequestId::mint)
}

/// Opens the span of a request in its caller's trace. Probes, scrapes and assets have no span: they are frequent and
/// tell little.
fn span(request: &ServiceRequest) -> Span {
    let path = request.path();
    if !sakshi_trace::is_on() || is_probe(path) || path.starts_with("/assets/") {
        return Span::none();
    }
    let span = sakshi_trace::request(method_name(request.method()));
    let header =
        |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    sakshi_trace::set_parent(&span, &TraceState { parent: header("traceparent"), state: header("tracestate") });
    span
}

/// Completes a handler's response: renders its error, adds the common headers, and counts and logs the request.
fn complete_response<B: MessageBody + 'static>(
    mut response: ServiceResponse<EitherBody<B>>,
    started: Instant,
    docs: &DocsBase,
    span: &Span,
) -> ServiceResponse<EitherBody<B>> {
    let id = request_id(response.request());
    let status = response.status();
    let mut rendered_error = None;
    if status.is_client_error() || status.is_server_error() {
        rendered_error = response_error(&response);
        if let Some(error) = &rendered_error {
            refusal_record::record(response.request(), error, &id);
            metrics::counter!("sakshi_http_refusals_total", "code" => error.code()).increment(1);
        }
        let page = error_page(response.request(), status, response.response().error(), rendered_error.as_ref());
        let rendered = page.or_else(|| rendered_error.as_ref().map(|error| error.render(&id, docs)));
        if let Some(rendered) = rendered {
            response = ServiceResponse::new(response.into_parts().0, rendered.map_into_right_body());
        }
    }
    if let Ok(value) = HeaderValue::from_str(id.as_str()) {
        response.headers_mut().insert(X_REQUEST_ID, value);
    }
    for (name, value) in rate_limit::headers(response.request()) {
        response.headers_mut().insert(name, value);
    }
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let duration = started.elapsed();
    let status = response.status().as_u16();
    let request = response.request();
    let pattern = request.app_data::<RouteMetrics>().map_or("unmatched", |metrics| {
        metrics.record(request.method(), status, duration);
        metrics.pattern()
    });
    let answered = AnsweredRequest { request, id: &id, pattern, status, duration, error: rendered_error.as_ref() };
    request_log::log(&answered, span);
    response
}

/// Returns the error that the edge renders; `None` if the handler wrote its own body.
fn response_error<B: MessageBody + 'static>(response: &ServiceResponse<EitherBody<B>>) -> Option<ApiError> {
    let inner = response.response();
    // The errors of the framework are plain text. An HTML page is our own and stays.
    let is_page =
        inner.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if let Some(error) = inner.error().filter(|_| !is_page) {
        return Some(to_api_error(error));
    }
    let is_empty = matches!(inner.body().size(), BodySize::None | BodySize::Sized(0));
    is_empty.then(|| ApiError::from_status(response.status(), inner.headers().get(header::ALLOW)))
}

/// Returns our own error, or the equivalent of an error of the framework.
fn to_api_error(error: &Error) -> ApiError {
    error.as_error::<ApiError>().cloned().unwrap_or_else(|| match error.as_response_error().status_code() {
        status if status.is_server_error() => ApiError::internal(error),
        status => ApiError::from_status(status, None),
    })
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[actix_rt::test]
    async fn a_body_that_came_apart_from_its_head_has_arrived_once_it_was_read() {
        let connection = Rc::<ConnectionState>::default();
        let mut request = TestRequest::post().set_payload("12345").to_srv_request();
        let _active = begin(&mut request, Rc::clone(&connection), Some(5));
        assert!(connection.awaits_body());
        assert_eq!(request.take_payload().next().await.unwrap().unwrap().len(), 5);
        assert!(!connection.awaits_body());
    }
}
