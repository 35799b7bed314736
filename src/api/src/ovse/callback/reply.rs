//! What the identity app is told: a status and a sentence, in the form of its callback.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use sakshi_actors::{AskError, CompleteReply};
use sakshi_authority::callback::{self, CallbackForm};
use sakshi_domain::event::EventRefusal;
use sakshi_web::body_reader::BodyError;
use sakshi_web::budget::CpuError;

/// What is replied.
#[derive(Debug)]
pub(super) struct Reply {
    status: u16,
    message: String,
    retry_after: bool,
    /// The code of the rule that a credential broke.
    pub(super) refusal: Option<&'static str>,
}

impl Reply {
    pub(super) fn new(status: u16, message: &str) -> Self {
        Self { status, message: message.to_owned(), retry_after: false, refusal: None }
    }

    pub(super) fn accepted() -> Self {
        Self::new(200, "Success")
    }

    pub(super) fn unknown() -> Self {
        Self::new(404, "Unknown transaction")
    }

    pub(super) fn conflict() -> Self {
        Self::new(409, "The transaction was completed by another answer")
    }

    /// The person was verified and the event had no place; told again to a redelivery.
    pub(super) fn event_refused(refusal: EventRefusal) -> Self {
        let status = if refusal == EventRefusal::Full { 409 } else { 410 };
        Self::new(status, refusal.message())
    }

    pub(super) fn expired() -> Self {
        Self::new(410, "The transaction has expired")
    }

    /// A credential broke a rule; the transaction stays pending.
    pub(super) fn refused(code: &'static str, message: &str) -> Self {
        Self { refusal: Some(code), ..Self::new(400, message) }
    }

    pub(super) fn unread(error: BodyError) -> Self {
        let (status, reason, message) = match error {
            BodyError::TooLarge => (413, "too_large", "The callback is too large"),
            BodyError::TooSlow => (408, "too_slow", "The callback did not arrive in time"),
            BodyError::BudgetExhausted => (503, "no_room", "Try again"),
            BodyError::Broken => (400, "broken", "The callback did not arrive whole"),
        };
        metrics::counter!("sakshi_callbacks_unread_total", "reason" => reason).increment(1);
        Self { retry_after: error == BodyError::BudgetExhausted, ..Self::new(status, message) }
    }

    pub(super) fn unavailable(error: &AskError) -> Self {
        tracing::warn!(%error, "a callback could not be served and will be delivered again");
        Self { retry_after: true, ..Self::new(503, "Try again") }
    }

    pub(super) fn uncomputed(error: CpuError) -> Self {
        tracing::warn!(%error, "a callback was not verified and will be delivered again");
        Self { retry_after: true, ..Self::new(503, "Try again") }
    }

    pub(super) fn completing(result: Result<CompleteReply, AskError>) -> Self {
        match result {
            Ok(CompleteReply::Accepted) => Self::accepted(),
            Ok(CompleteReply::AlreadyCompleted) => Self::conflict(),
            Ok(CompleteReply::EventRefused(refusal)) => Self::event_refused(refusal),
            Ok(CompleteReply::Expired) => Self::expired(),
            Ok(CompleteReply::CredentialReplayed) => {
                Self::refused("credential_replayed", "The credential was used for another transaction")
            }
            Ok(CompleteReply::Unknown) => Self::unknown(),
            Err(error) => Self::unavailable(&error),
        }
    }

    /// In this form, about the transaction of the address.
    pub(super) fn render(&self, form: CallbackForm, txn: &str) -> HttpResponse {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (content_type, body) = callback::reply(form, txn, self.status, &self.message);
        let mut response = HttpResponse::build(status);
        if self.retry_after {
            response.insert_header((RETRY_AFTER, "1"));
        }
        response.content_type(content_type).body(body)
    }
}
