//! What a callback's body says, and whether it is to be believed. Nothing is changed here, so it can
//! be done on any thread.

use std::sync::Arc;

use sakshi_actors::View;
use sakshi_authority::callback::{self, CallbackBody, CallbackFault, CallbackForm, Verdict};
use sakshi_authority::sdjwt::{self, Expectation};
use sakshi_domain::ids::{ClientId, EventId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{Answer, Pending};
use sakshi_service::authority::AuthorityContext;
use sakshi_store::CompletedRecord;

use super::reply::Reply;

/// A transaction of which answers are read.
pub(super) enum Asked {
    /// It waits for one.
    Pending(Arc<Pending>),
    /// It had one: the same again is told so.
    Completed(Box<CompletedRecord>),
}

impl Asked {
    /// The transaction, unless nothing that is sent can matter.
    pub(super) fn of(view: View) -> Result<Self, Reply> {
        match view {
            View::Pending(pending) => Ok(Self::Pending(pending)),
            View::Completed(record) => Ok(Self::Completed(record)),
            View::Expired(_) => Err(Reply::expired()),
            View::Unknown => Err(Reply::unknown()),
        }
    }

    /// The transaction, if it waits.
    pub(super) fn pending(&self) -> Option<Arc<Pending>> {
        match self {
            Self::Pending(pending) => Some(Arc::clone(pending)),
            Self::Completed(_) => None,
        }
    }

    /// For whom it was opened.
    pub(super) fn owners(&self) -> (&ClientId, Option<EventId>) {
        match self {
            Self::Pending(pending) => (&pending.client, pending.event),
            Self::Completed(record) => (&record.opened.client, record.opened.event),
        }
    }
}

/// What a body amounts to, and the form that it has.
pub(super) struct Judged {
    pub(super) form: CallbackForm,
    /// The answer that ends the transaction, or what is replied to one that does not.
    pub(super) answer: Result<Answer, Reply>,
}

/// Reads a body about a transaction and verifies what can be verified.
pub(super) fn judge(
    agreement: &AuthorityContext,
    (id, asked): (TxnId, &Asked),
    content_type: Option<&str>,
    body: &[u8],
    now: Timestamp,
) -> Judged {
    let message = match callback::parse(content_type, body) {
        Ok(message) => message,
        Err(error) => {
            let status = if error.fault == CallbackFault::MediaType { 415 } else { 400 };
            return Judged { form: error.form, answer: Err(Reply::new(status, &error.to_string())) };
        }
    };
    let answer = match asked {
        _ if message.txn.parse() != Ok(id) => Err(Reply::new(400, "The callback names another transaction than its address")),
        Asked::Pending(pending) => understand(agreement, pending, &message.body, now),
        Asked::Completed(record) => Err(redelivery(id, &message.body, record)),
    };
    Judged { form: message.form, answer }
}

fn understand(agreement: &AuthorityContext, pending: &Pending, body: &CallbackBody, now: Timestamp) -> Result<Answer, Reply> {
    match body {
        CallbackBody::Failure { code, message } => match callback::verdict(code, message) {
            Verdict::Terminal(failure) => Ok(callback::failure_answer(pending.id, failure)),
            Verdict::RetryExpected => Err(Reply::accepted()),
        },
        CallbackBody::Credential(credential) => {
            let audience = agreement.callbacks.audience();
            let expectation = Expectation { nonce: pending.id, audience, now, requested: pending.terms.claims };
            let verified = agreement.verifier.verify(credential, &expectation);
            verified.map(sdjwt::VerifiedCredential::into_answer).map_err(|refusal| Reply::refused(refusal.code(), &refusal.to_string()))
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
