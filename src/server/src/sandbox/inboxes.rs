//! `/sandbox/inboxes`: each inbox is a URL that receives webhooks and queues them. A developer's machine reads the
//! webhooks from its inbox.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::limits::LONG_POLL_SECONDS_MAX;
use sakshi_sandbox::inbox::{InboxError, Inboxes, WEBHOOK_BYTES_MAX};
use sakshi_sandbox::receiver::Received;
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::Authenticated;
use sakshi_web::body::read_bounded;
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use serde_json::json;

/// Opens an inbox of the calling app.
pub(super) async fn open(
    Authenticated(caller): Authenticated,
    inboxes: Data<Inboxes>,
) -> Result<HttpResponse, ApiError> {
    Ok(HttpResponse::Ok().json(inboxes.open(&caller.app.app_id).await.map_err(|error| refusal(&error))?))
}

/// Stores a webhook. The response is an ordinary 200, so the sender learns nothing about the reader.
pub(super) async fn put(
    path: Path<String>,
    request: HttpRequest,
    payload: Payload,
    inboxes: Data<Inboxes>,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let body = read_bounded(&request, &mut payload.into_inner(), WEBHOOK_BYTES_MAX).await?;
    let received = Received {
        method: request.method().as_str().parse().map_err(ApiError::internal)?,
        path: request.uri().to_string(),
        headers: convert_headers(request.headers()),
        body,
        at: service.clock.now(),
    };
    inboxes.put(&path, received).map_err(|error| refusal(&error))?;
    Ok(HttpResponse::Ok().finish())
}

/// Responds with the webhook after number `after`, or with null if none arrives within `wait` seconds.
pub(super) async fn next(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    inboxes: Data<Inboxes>,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let mut query = Query::parse(request.query_string());
    let after = query.number(&["after"], 0..=u64::MAX, 0);
    let wait = Duration::from_secs(query.number(&["wait"], 0..=LONG_POLL_SECONDS_MAX, 0));
    query.finish()?;
    let webhook = tokio::select! {
        next = inboxes.next(&caller.app.app_id, &path, after, wait) => next.map_err(|error| refusal(&error))?,
        () = service.drain.wait_until_begun() => None,
        () = caller.until_revoked() => return Err(ServiceError::Unauthorized.into()),
    };
    Ok(HttpResponse::Ok().json(json!({ "webhook": webhook })))
}

/// Converts headers between the types of the two HTTP libraries.
fn convert_headers(headers: &HeaderMap) -> reqwest::header::HeaderMap {
    let converted = headers
        .iter()
        .filter_map(|(name, value)| Some((name.as_str().parse().ok()?, value.as_bytes().try_into().ok()?)));
    converted.collect()
}

/// Converts an error of the inboxes to a row of the error table.
fn refusal(error: &InboxError) -> ApiError {
    let (status, code) = match error {
        InboxError::NoSuchInbox => (StatusCode::NOT_FOUND, "inbox_not_found"),
        InboxError::Full => (StatusCode::SERVICE_UNAVAILABLE, "inbox_full"),
        InboxError::TooMany => (StatusCode::SERVICE_UNAVAILABLE, "too_many_inboxes"),
        InboxError::Unreachable { .. } => (StatusCode::BAD_GATEWAY, "inbox_unreachable"),
    };
    ApiError::Other { status, code, message: error.to_string() }
}
