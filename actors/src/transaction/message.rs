//! Messages to a transaction, and the answers that its record alone can give.

use std::sync::Arc;
use std::time::Duration;

use actix::Message;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{Answer, Pending};
use sakshi_store::{CompletedRecord, GuestDetails, Sealed, StoreError, TransactionRecord};
use tokio::sync::oneshot;

use crate::ask::Inquiry;

/// A transaction as it is now.
#[derive(Clone, Debug)]
pub enum View {
    /// It waits for the person.
    Pending(Arc<Pending>),
    /// It has ended with an answer.
    Completed(Box<CompletedRecord>),
    /// Its window has passed.
    Expired(Arc<Pending>),
    /// It does not exist.
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
    /// True if the store is to be asked, in case another node has ended it.
    pub(crate) fresh: bool,
}

/// Asks for a notification when the transaction changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subscribe;

/// Ends when the transaction has changed, or when notice of that is no longer possible. There is none if there is
/// nothing to wait for, or there are too many watchers.
pub(crate) type Watcher = oneshot::Receiver<()>;

/// Ends the window now, as if its time had passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expire;

/// The identity app's final answer, with its context.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The answer.
    pub answer: Answer,
    /// The transaction, if the caller has just seen it pending. The store is then not read before the step that
    /// decides.
    pub known: Option<Arc<Pending>>,
    /// Sealed proof to store with the answer.
    pub evidence: Option<Sealed>,
    /// Details of the person, if the transaction is a guest's.
    pub guest: GuestDetails,
    /// Time for which its credential is refused under other transactions.
    pub replay_window: Duration,
    /// Time for which the result can be fetched.
    pub result_ttl: Duration,
}

/// Outcome of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompleteReply {
    /// It ended the transaction, now or when it was first delivered.
    Accepted,
    /// It ended the transaction of a guest for whom the event had no place.
    EventRefused(EventRefusal),
    /// An earlier, different answer ended it.
    AlreadyCompleted,
    /// The window has passed.
    Expired,
    /// Its credential was used for another transaction.
    CredentialReplayed,
    /// There is no such transaction.
    Unknown,
}

/// Returns the reply to the answer that ended a transaction.
pub(super) fn accepted(record: &CompletedRecord) -> CompleteReply {
    record.refused.map_or(CompleteReply::Accepted, CompleteReply::EventRefused)
}

impl Complete {
    /// Returns the reply once an answer has been stored: this one or another.
    pub(super) fn compare(&self, record: &CompletedRecord) -> CompleteReply {
        if self.answer.digest() == record.answer { accepted(record) } else { CompleteReply::AlreadyCompleted }
    }

    /// Returns the reply for a transaction that is not pending.
    pub(super) fn reply(&self, view: View) -> CompleteReply {
        match view {
            View::Completed(record) => self.compare(&record),
            View::Expired(_) => CompleteReply::Expired,
            View::Pending(_) | View::Unknown => CompleteReply::Unknown,
        }
    }
}

/// The transaction was just opened here: begin to wait.
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
