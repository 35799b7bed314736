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

/// Reads the `Idempotency-Key` of a request, if there is one.
///
/// # Errors
/// [`sakshi_service::ServiceError::Invalid`] for a repeated key, or a key that is not 1 to 255 visible ASCII
/// characters.
pub fn read_scope(request: &HttpRequest, caller: &Caller) -> Result<Option<IdempotencyScope>, ApiError> {
    let mut values = request.headers().get_all(IDEMPOTENCY_KEY);
    let Some(key) = values.next() else { return Ok(None) };
    let key = key.as_bytes();
    let is_valid = (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
    if !is_valid || values.next().is_some() {
        return Err(Invalid::one("Idempotency-Key", "must be given once, as 1 to 255 visible ASCII characters").into());
    }
    Ok(Some(scope(key, caller)))
}

/// Returns the idempotent request for an operation and its body; `None` without an `Idempotency-Key`.
///
/// # Errors
/// As [`read_scope`].
pub fn idempotent_request(
    request: &HttpRequest,
    caller: &Caller,
    operation: &str,
    body: &[u8],
) -> Result<Option<IdempotentRequest>, ApiError> {
    Ok(read_scope(request, caller)?.map(|scope| IdempotentRequest::new(scope, operation, body)))
}

/// Builds the response to a request that creates something. A replayed response gets the header `Idempotency-Replayed`.
#[must_use]
pub fn creation_response<A>(created: CreationAnswer<A>) -> HttpResponse {
    let mut response = HttpResponse::Ok();
    response.content_type("application/json");
    match created {
        CreationAnswer::New { json, .. } => response.body(json),
        CreationAnswer::Replayed(json) => response.insert_header(("idempotency-replayed", "true")).body(json),
    }
}
