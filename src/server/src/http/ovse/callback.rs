//! `POST /cb/{txnId}/{capability}`: the identity app hands in its answer.
//!
//! Nobody authenticates here. Trust rests on the capability in the URL, the issuer's signature and
//! the transaction's being pending; a stranger's garbage ends nothing. The reply has the form of
//! the callback, XML or JSON, and its code is the HTTP status.

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_actors::{AskError, Complete, CompleteReply, View};
use sakshi_authority::callback::{self, CallbackBody, CallbackFault, CallbackForm, CallbackMessage, Verdict};
use sakshi_authority::sdjwt::{self, Expectation};
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::{CALLBACK_ARRIVAL_MAX, CALLBACK_BYTES_HELD_MAX, CALLBACK_BYTES_OF_ONE_MAX};
use sakshi_domain::transaction::{Answer, Pending};
use sakshi_store::CompletedRecord;

use crate::http::error::ApiError;
use crate::http::intake::{BodyFault, Intake, IntakeBounds};
use crate::http::rate::Rates;
use crate::service::Service;

/// What callbacks may hold of the memory, by transaction: anybody may connect.
pub const CALLBACK_BODIES: IntakeBounds =
    IntakeBounds { in_all: CALLBACK_BYTES_HELD_MAX, per_key: CALLBACK_BYTES_OF_ONE_MAX, patience: CALLBACK_ARRIVAL_MAX };

/// Takes an answer.
///
/// Nothing of the body is read before the sender has shown that it knows the address of a
/// transaction and has not sent too much: strangers must not fill the memory.
///
/// # Errors
/// 413 and 429; everything else is a reply in the form of the callback.
pub async fn receive(
    path: Path<(String, String)>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<Rates>,
    intake: Data<Intake<TxnId>>,
    payload: Payload,
) -> Result<HttpResponse, ApiError> {
    rates.callbacks.take(&rates.address(&request))?;
    let (txn, capability) = path.into_inner();
    let said = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let content_type = said(CONTENT_TYPE);
    let unread = CallbackForm::announced(content_type, said(ACCEPT));
    let Some(id) = txn.parse().ok().filter(|id| service.agreement.callbacks.is_genuine(*id, &capability)) else {
        return Ok(render(unread, &txn, &Reply::unknown()));
    };
    let body = match intake.read(id, request.headers(), payload, service.rules.callback_bytes).await {
        Ok(body) => body,
        Err(BodyFault::TooLarge) => return Err(ApiError::BodyTooLarge { limit: service.rules.callback_bytes }),
        Err(fault) => return Ok(render(unread, &txn, &Reply::unread(fault))),
    };
    let message = match callback::parse(content_type, body.as_bytes()) {
        Ok(message) => message,
        Err(error) => {
            let status = if error.fault == CallbackFault::MediaType { 415 } else { 400 };
            return Ok(render(error.form, &txn, &Reply::new(status, &error.to_string())));
        }
    };
    let reply = judge(&service, id, &message).await;
    Ok(render(message.form, &txn, &reply))
}

/// What is replied.
struct Reply {
    status: u16,
    message: String,
    retry_after: bool,
}

impl Reply {
    fn new(status: u16, message: &str) -> Self {
        Self { status, message: message.to_owned(), retry_after: false }
    }

    fn accepted() -> Self {
        Self::new(200, "Success")
    }

    fn unknown() -> Self {
        Self::new(404, "Unknown transaction")
    }

    fn conflict() -> Self {
        Self::new(409, "The transaction was completed by another answer")
    }

    /// The person was verified and the event had no place; told again to a redelivery.
    fn event_refused(refusal: EventRefusal) -> Self {
        let status = if refusal == EventRefusal::Full { 409 } else { 410 };
        Self::new(status, refusal.message())
    }

    fn expired() -> Self {
        Self::new(410, "The transaction has expired")
    }

    fn unread(fault: BodyFault) -> Self {
        let (status, reason, message) = match fault {
            BodyFault::TooLarge => (413, "too_large", "The callback is too large"),
            BodyFault::TooSlow => (408, "too_slow", "The callback did not arrive in time"),
            BodyFault::NoRoom => (503, "no_room", "Try again"),
            BodyFault::Broken => (400, "broken", "The callback did not arrive whole"),
        };
        metrics::counter!("sakshi_callbacks_unread_total", "reason" => reason).increment(1);
        Self { status, message: message.to_owned(), retry_after: fault == BodyFault::NoRoom }
    }

    fn unavailable(error: &AskError) -> Self {
        tracing::warn!(%error, "a callback could not be served and will be delivered again");
        Self { status: 503, message: "Try again".to_owned(), retry_after: true }
    }
}

fn render(form: CallbackForm, txn: &str, reply: &Reply) -> HttpResponse {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let (content_type, body) = callback::reply(form, txn, reply.status, &reply.message);
    let mut response = HttpResponse::build(status);
    if reply.retry_after {
        response.insert_header((RETRY_AFTER, "1"));
    }
    response.content_type(content_type).body(body)
}

/// Judges an answer for a transaction whose capability the sender knows.
async fn judge(service: &Service, id: TxnId, message: &CallbackMessage) -> Reply {
    if message.txn.parse() != Ok(id) {
        return Reply::new(400, "The callback names another transaction than its address");
    }
    let answer = match service.transactions.look(id).await {
        Ok(View::Pending(pending)) => understand(service, &pending, &message.body),
        Ok(View::Completed(record)) => return redelivery(id, &message.body, &record),
        Ok(View::Expired(_)) => return Reply::expired(),
        Ok(View::Unknown) => return Reply::unknown(),
        Err(error) => return Reply::unavailable(&error),
    };
    let answer = match answer {
        Ok(answer) => answer,
        Err(reply) => return reply,
    };
    let complete = Complete { answer, replay_window: service.rules.replay_window, result_ttl: service.rules.result_ttl };
    match service.transactions.complete(id, complete).await {
        Ok(CompleteReply::Accepted) => Reply::accepted(),
        Ok(CompleteReply::AlreadyCompleted) => Reply::conflict(),
        Ok(CompleteReply::EventRefused(refusal)) => Reply::event_refused(refusal),
        Ok(CompleteReply::Expired) => Reply::expired(),
        Ok(CompleteReply::CredentialReplayed) => refused(id, "credential_replayed", "The credential was used for another transaction"),
        Ok(CompleteReply::Unknown) => Reply::unknown(),
        Err(error) => Reply::unavailable(&error),
    }
}

/// Verifies what can be verified without changing anything.
fn understand(service: &Service, pending: &Pending, body: &CallbackBody) -> Result<Answer, Reply> {
    match body {
        CallbackBody::Failure { code, message } => match callback::verdict(code, message) {
            Verdict::Terminal(failure) => Ok(callback::failure_answer(pending.id, failure)),
            Verdict::RetryExpected => Err(Reply::accepted()),
        },
        CallbackBody::Credential(credential) => {
            let expectation = Expectation {
                nonce: pending.id,
                audience: service.agreement.callbacks.audience(),
                now: service.clock.now(),
                requested: pending.terms.claims,
            };
            let verified = service.agreement.verifier.verify(credential, &expectation);
            verified
                .map(sdjwt::VerifiedCredential::into_answer)
                .map_err(|refusal| refused(pending.id, refusal.code(), &refusal.to_string()))
        }
    }
}

/// Judges an answer that comes after the end: the same one again changes nothing.
fn redelivery(id: TxnId, body: &CallbackBody, record: &CompletedRecord) -> Reply {
    let digest = match body {
        CallbackBody::Credential(credential) => sdjwt::credential_digest(credential),
        CallbackBody::Failure { code, message } => match callback::verdict(code, message) {
            Verdict::Terminal(failure) => callback::failure_answer(id, failure).digest(),
            Verdict::RetryExpected => return Reply::accepted(),
        },
    };
    match record.refused {
        _ if digest != record.answer => Reply::conflict(),
        Some(refusal) => Reply::event_refused(refusal),
        None => Reply::accepted(),
    }
}

fn refused(id: TxnId, code: &'static str, message: &str) -> Reply {
    metrics::counter!("sakshi_credentials_refused_total", "reason" => code).increment(1);
    tracing::info!(txn.id = %id, reason = code, "a credential was refused");
    Reply::new(400, message)
}
