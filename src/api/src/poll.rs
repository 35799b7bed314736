//! The response to a poll. It can contain a photo, or a file of ten megabytes, and keeps its share of the memory budget
//! until it was sent.

use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::limits::PAYLOAD_INLINE_BYTES_MAX;
use sakshi_service::Service;
use sakshi_service::authentication::Caller;
use sakshi_service::budget::Stage;
use sakshi_service::flow_polls::PollAnswer;
use sakshi_web::error::ApiError;
use sakshi_web::held_body::hold_until_sent;

/// Builds the response with an outcome, or with its evidence. A large one takes memory of the caller until it was sent.
///
/// # Errors
/// 503 when the caller already holds most memory.
pub(crate) fn outcome_response(
    request: &HttpRequest,
    service: &Service,
    caller: &Caller,
    json: Vec<u8>,
) -> Result<HttpResponse, ApiError> {
    let take = || service.memory.answers.take(caller.owners(), Stage::Leaving, json.len());
    let permit = (json.len() > PAYLOAD_INLINE_BYTES_MAX).then(take).transpose()?;
    Ok(poll_response(request, PollAnswer { json, permit }))
}

/// Builds the response to a poll. It holds the memory of the JSON until it was sent, if there is a permit.
pub(crate) fn poll_response(request: &HttpRequest, PollAnswer { json, permit }: PollAnswer) -> HttpResponse {
    let bytes = match permit {
        None => json.into(),
        Some(permit) => hold_until_sent(request, json, permit),
    };
    HttpResponse::Ok().content_type("application/json").body(bytes)
}
