//! `POST /cb/{txnId}/{capability}`: receives the answer of the identity app.
//!
//! The reply has the format of the callback, XML or JSON. Its code is the HTTP status.

use std::borrow::Cow;
use std::time::Instant;

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_actors::CompleteReply;
use sakshi_authority::callback::{self, CallbackFault, CallbackForm};
use sakshi_domain::event::EventRefusal;
use sakshi_domain::limits::{CALLBACK_ARRIVAL_MAX, STATUS_FAILURE_KEPT};
use sakshi_service::Service;
use sakshi_service::callbacks::{CallbackOutcome, addressed_transaction, answer_callback, callback_target};
use sakshi_web::body_reader::{BodyError, BodyReader, ReceivedBody, declared_length};
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

/// Receives an answer of the identity app.
///
/// `capability`, the last segment of the path, is a secret of the transaction. The body is read only if the path
/// belongs to a transaction that still accepts answers, and the sender is below its rate limit.
///
/// # Errors
/// 413 and 429. Every other outcome is a reply in the format of the callback.
pub(crate) async fn receive(
    path: Path<(String, String)>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    let client_address = rates.client_address(&request);
    let (txn, capability) = path.into_inner();
    // A callback for no transaction counts against the sender's address, a valid one against its transaction.
    let id = addressed_transaction(&service, &txn, &capability);
    match &id {
        Some(id) => rates.callbacks.take(id)?,
        None => rates.stray_callbacks.take(&client_address)?,
    }
    let header = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let content_type = header(CONTENT_TYPE);
    let announced_form = CallbackForm::for_unread_body(content_type, header(ACCEPT));
    let target = match id {
        Some(id) => callback_target(&service, id, client_address).await,
        None => Err(CallbackOutcome::Done(CompleteReply::Unknown)),
    };
    let target = match target {
        Ok(target) => target,
        Err(outcome) => return Ok(reply(announced_form, &txn, count_outcome(&outcome))),
    };
    let limit = service.rules.callback_bytes;
    let reader = BodyReader { budget: &service.memory.callbacks, limit, timeout: CALLBACK_ARRIVAL_MAX };
    let ReceivedBody { bytes, permit } = match reader
        .read(target.owners.clone(), declared_length(request.headers()), payload)
        .await
    {
        Ok(received) => received,
        Err(BodyError::TooLarge) => return Err(ApiError::BodyTooLarge { limit }),
        Err(BodyError::TooSlow) => {
            return Ok(unread_reply(
                announced_form,
                &txn,
                "too_slow",
                (408, "The callback did not arrive in time".into()),
            ));
        }
        Err(BodyError::BudgetExhausted) => {
            return Ok(unread_reply(announced_form, &txn, "memory", count_outcome(&CallbackOutcome::TryAgain)));
        }
        Err(BodyError::Broken) => {
            return Ok(unread_reply(announced_form, &txn, "broken", (400, "The callback did not arrive whole".into())));
        }
    };
    let started = Instant::now();
    let (outcome, form) = answer_callback(&service, target, content_type, bytes, permit).await;
    metrics::histogram!("sakshi_callback_seconds").record(started.elapsed());
    let mut reply = reply(form.unwrap_or(announced_form), &txn, count_outcome(&outcome));
    if matches!(outcome, CallbackOutcome::StatusUnavailable) {
        // The failed status check is cached until then.
        reply.headers_mut().insert(RETRY_AFTER, STATUS_FAILURE_KEPT.as_secs().into());
    }
    Ok(reply)
}

/// Status and sentence of a reply.
type ReplyContent = (u16, Cow<'static, str>);

/// Counts an outcome in the metrics and returns its reply.
fn count_outcome(outcome: &CallbackOutcome) -> ReplyContent {
    let label = match outcome {
        CallbackOutcome::Done(CompleteReply::Accepted) => "accepted",
        CallbackOutcome::StatusUnavailable => "issuer_unavailable",
        CallbackOutcome::TryAgain => "failed",
        _ => "refused",
    };
    metrics::counter!("sakshi_callbacks_total", "outcome" => label).increment(1);
    let (status, sentence) = match outcome {
        CallbackOutcome::Done(CompleteReply::Accepted) => (200, "Success"),
        CallbackOutcome::Done(CompleteReply::Unknown) => (404, "Unknown transaction"),
        CallbackOutcome::Done(CompleteReply::AlreadyCompleted) => {
            (409, "The transaction was completed by another answer")
        }
        CallbackOutcome::Done(CompleteReply::Expired) => (410, "The transaction has expired"),
        // The person was verified, but the event was full or had the guest already.
        CallbackOutcome::Done(CompleteReply::EventRefused(
            refusal @ (EventRefusal::Full | EventRefusal::Duplicate),
        )) => (409, refusal.message()),
        CallbackOutcome::Done(CompleteReply::EventRefused(refusal)) => (410, refusal.message()),
        CallbackOutcome::Done(CompleteReply::CredentialReplayed) => {
            (400, "The credential was used for another transaction")
        }
        CallbackOutcome::CredentialRefused(refusal) => return (400, format!("{}: {refusal}", refusal.code()).into()),
        CallbackOutcome::StatusUnavailable => {
            (503, "status_unavailable: the issuer gives no answer about the credential's status; try again")
        }
        CallbackOutcome::OtherTransaction => (400, "The callback names another transaction than its address"),
        CallbackOutcome::Unreadable(fault @ CallbackFault::MediaType) => return (415, fault.to_string().into()),
        CallbackOutcome::Unreadable(fault) => return (400, fault.to_string().into()),
        CallbackOutcome::TryAgain => (503, "Try again"),
    };
    (status, sentence.into())
}

/// Builds the reply to a body that was not read to its end, and counts it by `reason`.
fn unread_reply(form: CallbackForm, txn: &str, reason: &'static str, content: ReplyContent) -> HttpResponse {
    metrics::counter!("sakshi_callbacks_unread_total", "reason" => reason).increment(1);
    reply(form, txn, content)
}

/// Builds the reply about a transaction, in the given format.
fn reply(form: CallbackForm, txn: &str, (status, sentence): ReplyContent) -> HttpResponse {
    let (content_type, body) = callback::build_reply(form, txn, status, &sentence);
    let mut response = HttpResponse::build(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
    if status == 503 {
        response.insert_header((RETRY_AFTER, "1"));
    }
    response.content_type(content_type).body(body)
}
