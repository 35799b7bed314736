//! What a transaction can be asked, and the answers that its record alone can give.

use std::sync::Arc;
use std::time::Duration;

use actix::Message;
use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::{Answer, Pending};
use sakshi_store::{CompletedRecord, OpenOutcome, OpenTransaction, StoreError, TransactionRecord};
use tokio::sync::oneshot;

use crate::router::Answered;

/// A question that can also be answered from the stored record alone.
pub(crate) trait TransactionQuestion: Message<Result = Result<Self::Answer, StoreError>> + Clone + Send + 'static {
    /// What is answered.
    type Answer: Send + 'static;

    /// Whether the record of a pending transaction answers it, too.
    const READ_ONLY: bool = false;

    /// The answer of a transaction that has ended or is not there; if it is read-only, also of a pending one.
    fn answer(&self, view: View) -> Self::Answer;

    /// The transaction, if the caller has just seen that it is pending.
    fn known(&self) -> Option<&Arc<Pending>> {
        None
    }
}

/// A transaction as it is now.
#[derive(Clone, Debug)]
pub enum View {
    /// It waits for the person.
    Pending(Arc<Pending>),
    /// It has ended with an answer.
    Completed(Box<CompletedRecord>),
    /// Its window has passed.
    Expired(Arc<Pending>),
    /// There is none.
    Unknown,
}

impl From<TransactionRecord> for View {
    /// Without a look at the clock.
    fn from(record: TransactionRecord) -> Self {
        match record {
            TransactionRecord::Pending(pending) => Self::Pending(Arc::new(pending)),
            TransactionRecord::Completed(record) => Self::Completed(Box::new(record)),
        }
    }
}

/// What is the transaction now?
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<View, StoreError>")]
pub(crate) struct Look {
    /// Whether to ask the store, when another node may have ended it.
    pub(crate) fresh: bool,
}

impl TransactionQuestion for Look {
    type Answer = View;
    const READ_ONLY: bool = true;

    fn answer(&self, view: View) -> View {
        view
    }
}

/// Tell me when the transaction changes.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<Option<Watcher>, StoreError>")]
pub(crate) struct Subscribe;

/// Ends when the transaction has changed, or when nobody can tell any more. There is none when there is nothing to wait
/// for, or there are too many watchers.
pub(crate) type Watcher = oneshot::Receiver<()>;

impl TransactionQuestion for Subscribe {
    type Answer = Option<Watcher>;

    fn answer(&self, _: View) -> Option<Watcher> {
        None
    }
}

/// Here is the identity app's final answer.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<CompleteReply, StoreError>")]
pub struct Complete {
    /// The answer.
    pub answer: Answer,
    /// The transaction, if the caller has just seen that it is pending: then the store is not read before the step that
    /// decides.
    pub known: Option<Arc<Pending>>,
    /// How long its credential is refused under other transactions.
    pub replay_window: Duration,
    /// How long the result can be fetched.
    pub result_ttl: Duration,
}

/// What became of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompleteReply {
    /// It ended the transaction, now or when it was first delivered.
    Accepted,
    /// It ended the transaction of a guest for whom the event had no place.
    EventRefused(EventRefusal),
    /// Another answer ended it before.
    AlreadyCompleted,
    /// The window has passed.
    Expired,
    /// Its credential was used for another transaction.
    CredentialReplayed,
    /// There is no such transaction.
    Unknown,
}

/// The reply to the answer that ended a transaction.
pub(super) fn accepted(record: &CompletedRecord) -> CompleteReply {
    record.refused.map_or(CompleteReply::Accepted, CompleteReply::EventRefused)
}

impl Complete {
    /// Judges this answer once another, or the same, has been stored.
    pub(super) fn judge(&self, record: &CompletedRecord) -> CompleteReply {
        if self.answer.digest() == record.answer { accepted(record) } else { CompleteReply::AlreadyCompleted }
    }
}

impl TransactionQuestion for Complete {
    type Answer = CompleteReply;

    fn known(&self) -> Option<&Arc<Pending>> {
        self.known.as_ref()
    }

    fn answer(&self, view: View) -> CompleteReply {
        match view {
            View::Completed(record) => self.judge(&record),
            View::Expired(_) => CompleteReply::Expired,
            View::Pending(_) | View::Unknown => CompleteReply::Unknown,
        }
    }
}

/// Open the transaction: debit the credit and begin to wait.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Answered<OpenOutcome>")]
pub(crate) struct Open(pub(crate) OpenTransaction);

/// Another node has ended this transaction. Its actor stops: its watchers wake, and whoever asks from now on is answered
/// from the store.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct EndedElsewhere(pub(crate) TxnId);
