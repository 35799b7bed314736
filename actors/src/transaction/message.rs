//! Messages to a transaction, and the answers that its record alone can give.

use std::sync::Arc;
use std::time::Duration;

use actix::Message;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{Answer, AnswerDigest, Pending};
use sakshi_store::{CompletedRecord, GuestDetails, Sealed, StoreError, TransactionRecord};
use tokio::sync::oneshot;

use crate::ask::Inquiry;

/// The current state of a transaction.
#[derive(Clone, Debug)]
pub enum View {
    /// The transaction waits for the person.
    Pending(Arc<Pending>),
    /// The transaction has ended with an answer.
    Completed(Box<CompletedRecord>),
    /// Its window has passed.
    Expired(Arc<Pending>),
    /// The transaction does not exist.
    Unknown,
}

impl From<TransactionRecord> for View {
    fn from(record: TransactionRecord) -> Self {
        match record {
            TransactionRecord::Pending(pending) => Self::Pending(Arc::new(pending)),
            TransactionRecord::Expired(pending) => Self::Expired(Arc::new(pending)),
            TransactionRecord::Completed(record) => Self::Completed(Box::new(record)),
        }
    }
}

/// Asks for the current transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GetTransaction {
    /// True to ask the store, in case another node has ended the transaction.
    pub(crate) fresh: bool,
}

/// Asks for a notification when the transaction changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscribe;

/// Completes when the transaction has changed, or when no notice of a change can come any more.
pub(crate) type Watcher = oneshot::Receiver<()>;

/// Ends the window now, as if its time had passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expire;

/// The identity app's final answer, with its context.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The answer.
    pub answer: Answer,
    /// The transaction, if the caller has just seen it pending. The store then decides without reading the transaction.
    pub known: Option<Arc<Pending>>,
    /// Sealed proof to store with the answer.
    pub evidence: Option<Sealed>,
    /// Details of the person, if a guest opened the transaction.
    pub guest: GuestDetails,
    /// Time for which other transactions refuse the credential of the answer.
    pub replay_window: Duration,
    /// Time for which the result can be fetched.
    pub result_ttl: Duration,
}

/// Outcome of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompleteReply {
    /// The answer ended the transaction, now or when it was first delivered.
    Accepted,
    /// The answer ended the transaction of a guest, but the event refused the guest.
    EventRefused(EventRefusal),
    /// An earlier, different answer ended the transaction.
    AlreadyCompleted,
    /// The window has passed.
    Expired,
    /// The credential was used for another transaction.
    CredentialReplayed,
    /// There is no such transaction.
    Unknown,
}

impl CompleteReply {
    /// Returns the reply to an answer with this digest, about a completed transaction.
    #[must_use]
    pub fn from_record(record: &CompletedRecord, answer: AnswerDigest) -> Self {
        match record.refused {
            _ if answer != record.answer => Self::AlreadyCompleted,
            Some(refusal) => Self::EventRefused(refusal),
            None => Self::Accepted,
        }
    }
}

impl Complete {
    /// Returns the reply for a transaction that is not pending.
    pub(super) fn reply(&self, view: View) -> CompleteReply {
        match view {
            View::Completed(record) => CompleteReply::from_record(&record, self.answer.digest()),
            View::Expired(_) => CompleteReply::Expired,
            View::Pending(_) | View::Unknown => CompleteReply::Unknown,
        }
    }
}

/// The transaction was just opened on this node: start its actor.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Opened(pub(crate) Arc<Pending>);

/// Another node has ended this transaction. Its actor stops: its watchers wake, and later questions are answered from
/// the store.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct EndedElsewhere(pub(crate) TxnId);

impl Message for Inquiry<GetTransaction> {
    type Result = Result<View, StoreError>;
}

impl Message for Inquiry<Subscribe> {
    type Result = Result<Option<Watcher>, StoreError>;
}

impl Message for Inquiry<Expire> {
    type Result = Result<View, StoreError>;
}

impl Message for Inquiry<Complete> {
    type Result = Result<CompleteReply, StoreError>;
}
