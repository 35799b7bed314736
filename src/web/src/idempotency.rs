//! The `Idempotency-Key` header, and the header of a replayed response.

use actix_web::http::header::HeaderName;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::IDEMPOTENCY_KEY_CHARS_MAX;
use sakshi_service::authentication::Caller;
use sakshi_service::idempotency::{CreationAnswer, IdempotentRequest, scope};
use sakshi_store::IdempotencyScope;

use super::error::ApiError;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Returns the key of a request, if it has one.
///
/// # Errors
/// A key that is not 1 to 255 visible ASCII characters, or given twice.
pub fn key(request: &HttpRequest, caller: &Caller) -> Result<Option<IdempotencyScope>, ApiError> {
    let mut given = request.headers().get_all(IDEMPOTENCY_KEY);
    let Some(key) = given.next() else { return Ok(None) };
    let key = key.as_bytes();
    let fits = (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
    if !fits || given.next().is_some() {
        return Err(Invalid::one("Idempotency-Key", "must be given once, as 1 to 255 visible ASCII characters").into());
    }
    Ok(Some(scope(key, caller)))
}

/// Returns the idempotent request of this operation and body, if the request has a key.
///
/// # Errors
/// As [`key`].
pub fn of(
    request: &HttpRequest,
    caller: &Caller,
    operation: &str,
    body: &[u8],
) -> Result<Option<IdempotentRequest>, ApiError> {
    Ok(key(request, caller)?.map(|key| IdempotentRequest::new(key, operation, body)))
}

/// Builds the response, with a header if it is a replay.
#[must_use]
pub fn answer<A>(answered: CreationAnswer<A>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.content_type("application/json");
    match answered {
        CreationAnswer::New { json, .. } => response.body(json),
        CreationAnswer::Replayed(json) => response.insert_header(("idempotency-replayed", "true")).body(json),
    }
}
