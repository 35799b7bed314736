//! Transactions as they are stored: what is personal in them is sealed.

use sakshi_domain::event::EventRefusal;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, Pending};

use crate::vault::Sealed;

/// A stored transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionRecord {
    /// It waits, or its window has passed without an answer.
    Pending(Pending),
    /// It has ended with an answer.
    Completed(CompletedRecord),
}

/// A completed transaction with its outcome sealed.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedRecord {
    /// What it was while it waited.
    pub opened: Pending,
    /// When the answer was accepted.
    pub verified_at: Timestamp,
    /// Whether the verification passed and, for a guest, was registered.
    pub passed: bool,
    /// Why a guest who passed was not registered.
    pub refused: Option<EventRefusal>,
    /// Identifies the answer that ended it.
    pub answer: AnswerDigest,
    /// The sealed JSON of a [`sakshi_domain::transaction::Outcome`].
    pub outcome: Sealed,
}

/// A registered guest.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration {
    /// The guest's transaction, whose id owns the sealed outcome.
    pub txn: TxnId,
    /// When the guest was registered.
    pub verified_at: Timestamp,
    /// The sealed JSON of a [`sakshi_domain::transaction::Outcome`].
    pub outcome: Sealed,
}

impl TransactionRecord {
    /// What the transaction was opened as.
    #[must_use]
    pub const fn opened(&self) -> &Pending {
        match self {
            Self::Pending(pending) => pending,
            Self::Completed(record) => &record.opened,
        }
    }
}
