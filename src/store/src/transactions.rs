//! Commands, outcomes and records of transactions; `operations/transactions.rs` executes them. Personal data in a
//! record is sealed.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::delivery::{DeliveryRecord, QueuedDelivery};
use sakshi_domain::event::{EventRefusal, Trait};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::ids::TxnId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity, Pending, TransactionStatus};

use crate::error::StoreError;
use crate::idempotency::IdempotentAnswer;
use crate::sealing::unseal_webhook;
use crate::vault::{Sealed, Vault};

/// Opens a transaction and debits its credit.
#[derive(Clone, Debug)]
pub struct OpenTransaction {
    /// The transaction; its id makes the operation repeatable.
    pub pending: Arc<Pending>,
    /// Credits to debit.
    pub cost: u64,
    /// Response to replay when the client retries the request under its `Idempotency-Key`.
    pub idempotency: Option<IdempotentAnswer>,
    /// Maximum number of pending scans of the event, including this transaction.
    pub pending_max: Option<u32>,
    /// The bytes from which the pages of the transaction build the intent.
    pub intent: Option<Vec<u8>>,
}

/// The outcome of [`OpenTransaction`].
#[derive(Clone, Debug, PartialEq)]
pub enum OpenOutcome {
    /// Opened and paid for, now or by an earlier call under the same transaction id.
    Opened {
        /// The client's balance afterwards; for a repeated call, the current balance.
        balance: u64,
    },
    /// The balance does not cover the cost; nothing was written.
    InsufficientCredits,
    /// The idempotency key was used before with this body; nothing was written.
    Replayed(Sealed),
    /// The idempotency key was used before with another body; nothing was written.
    KeyReused,
    /// The event takes no guest now; nothing was written.
    EventRefused(EventRefusal),
    /// The guests of the event have spent its budget; nothing was written.
    BudgetSpent,
    /// The event has its maximum number of pending scans; nothing was written.
    ScansPending,
    /// No such event; nothing was written.
    EventNotFound,
}

/// Completes a transaction and queues its webhook.
#[derive(Clone, Debug)]
pub struct CompleteTransaction {
    /// The transaction.
    pub id: TxnId,
    /// The caller's copy of the pending transaction, if it has one. The store then reads the transaction only if it has
    /// ended since.
    pub known: Option<Arc<Pending>>,
    /// True if the verification passed.
    pub passed: bool,
    /// The code of a failure.
    pub code: Option<String>,
    /// The sealed outcome. If the event now has no place for a guest who passed, the transaction ends with that refusal
    /// instead.
    pub outcome: Sealed,
    /// The sealed proof to store beside the outcome.
    pub evidence: Option<Sealed>,
    /// Digest of the answer, which identifies a repeated call.
    pub answer: AnswerDigest,
    /// The person, if the transaction is a guest's.
    pub guest: GuestDetails,
    /// The credential that was presented; `None` when the answer carried none.
    pub credential: Option<PresentedCredential>,
    /// Time for which a use of the credential under another transaction is refused.
    pub replay_window: Duration,
    /// Time for which the result can be fetched.
    pub result_ttl: Duration,
}

/// The data stored about a guest if the event accepts the guest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestDetails {
    /// The name that was shared.
    pub name: Option<String>,
    /// The traits of the person.
    pub traits: Vec<Trait>,
}

/// Returns the stored number of a refusal.
pub(crate) const fn refusal_number(refusal: EventRefusal) -> u8 {
    match refusal {
        EventRefusal::Disabled => 0,
        EventRefusal::Expired => 1,
        EventRefusal::Full => 2,
        EventRefusal::Duplicate => 3,
    }
}

/// Returns the refusal with this stored number.
pub(crate) fn refusal_from_number(number: u8) -> Result<EventRefusal, StoreError> {
    let mut refusals =
        [EventRefusal::Disabled, EventRefusal::Expired, EventRefusal::Full, EventRefusal::Duplicate].into_iter();
    refusals.find(|refusal| refusal_number(*refusal) == number).ok_or_else(|| StoreError::unreadable("a refusal"))
}

/// A credential, remembered to detect its replay under another transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresentedCredential {
    /// Identifies the credential in all its presentations.
    pub digest: CredentialIdentity,
    /// True if its holder signed it for this transaction. It is then accepted, even if it was accepted under another
    /// transaction before.
    pub holder_bound: bool,
}

/// The outcome of [`CompleteTransaction`].
#[derive(Clone, Debug, PartialEq)]
pub enum CompleteOutcome {
    /// Completed by this answer.
    Completed {
        /// The record as stored.
        record: CompletedRecord,
        /// Its delivery, when this call queued a webhook.
        queued: Option<QueuedDelivery>,
        /// True if an earlier call with the same answer completed it.
        repeated: bool,
    },
    /// Another answer has completed the transaction before, and remains.
    AlreadyCompleted(CompletedRecord),
    /// The transaction's window has passed by the store's clock; nothing was written.
    Expired,
    /// The credential was accepted under another transaction; nothing was written.
    CredentialReplayed,
    /// The transaction does not exist, or no longer exists.
    NotFound,
}

/// The outcome of [`crate::Store::expire_transaction`].
#[derive(Clone, Debug, PartialEq)]
pub enum ExpireOutcome {
    /// Its window has passed, now or before.
    Expired(Pending),
    /// It was completed before; nothing was written.
    AlreadyCompleted(CompletedRecord),
    /// The transaction does not exist, or no longer exists.
    NotFound,
}

/// A stored transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum TransactionRecord {
    /// Pending.
    Pending(Pending),
    /// Its window has passed without an answer, by the store's clock.
    Expired(Pending),
    /// Ended with an answer.
    Completed(CompletedRecord),
}

/// A completed transaction with its outcome sealed.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedRecord {
    /// The transaction as it was opened.
    pub opened: Pending,
    /// Time at which the answer was accepted.
    pub verified_at: Timestamp,
    /// True if the verification passed and, for a guest, was registered.
    pub passed: bool,
    /// Reason why a guest who passed was not registered.
    pub refused: Option<EventRefusal>,
    /// The number of the guest among the guests of the event.
    pub registration: Option<u64>,
    /// Digest of the answer that completed it.
    pub answer: AnswerDigest,
    /// The sealed JSON of a [`sakshi_domain::transaction::Outcome`].
    pub outcome: Sealed,
    /// The sealed URL of its webhook, if it was copied from its event.
    pub address: Option<Vec<u8>>,
    /// True if the client has fetched the outcome.
    pub is_polled: bool,
}

/// A transaction in lists and in its history, without the shared claims.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionSummary {
    /// The transaction as it was opened.
    pub opened: Pending,
    /// Its status.
    pub status: TransactionStatus,
    /// The time at which its page, or the identity app, first requested the transaction.
    pub page_seen_at: Option<Timestamp>,
    /// Time at which the answer was accepted.
    pub verified_at: Option<Timestamp>,
    /// The code of a failure.
    pub code: Option<String>,
    /// The time at which the client first fetched the outcome.
    pub polled_at: Option<Timestamp>,
    /// Its webhook, if it has one.
    pub delivery: Option<DeliveryRecord>,
}

impl CompletedRecord {
    /// Returns the URL of the webhook: a copy of the event's at completion, or the transaction's own.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the transaction has no webhook URL, or the URL cannot be opened.
    pub fn webhook_url(&self, vault: &Vault) -> Result<WebhookUrl, StoreError> {
        let Pending { event, terms, .. } = &self.opened;
        let event_url = event
            .zip(self.address.clone())
            .map(|(event, address)| unseal_webhook(vault, event, address))
            .transpose()?;
        event_url
            .or_else(|| terms.webhook_url.clone())
            .ok_or_else(|| StoreError::unreadable("the address of a delivery"))
    }
}

impl TransactionRecord {
    /// Returns the transaction as it was opened.
    #[must_use]
    pub const fn opened(&self) -> &Pending {
        match self {
            Self::Pending(pending) | Self::Expired(pending) => pending,
            Self::Completed(record) => &record.opened,
        }
    }
}

impl From<CompletedRecord> for TransactionRecord {
    fn from(record: CompletedRecord) -> Self {
        Self::Completed(record)
    }
}
