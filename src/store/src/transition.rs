//! What goes into each transition of the store, and what comes out.

use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::credits::LedgerEntry;
use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::event::{Event, EventRefusal};
use sakshi_domain::ids::{ClientId, EventId, Partition, TxnId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::tenancy::{ApiKeyRecord, App};
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{AnswerDigest, CredentialIdentity, Pending};
use uuid::Uuid;

use crate::record::{CompletedRecord, TransactionRecord};
use crate::vault::Sealed;

/// Opens a transaction and debits its credit.
#[derive(Clone, Debug)]
pub struct OpenTransaction {
    /// The transaction; its id makes the transition repeatable.
    pub pending: Arc<Pending>,
    /// Credits to debit.
    pub cost: u64,
    /// What to replay when the client repeats the request under its `Idempotency-Key`.
    pub idempotency: Option<IdempotentAnswer>,
}

/// Whose idempotency key, on which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyScope {
    /// The partition of the client.
    pub partition: Partition,
    /// SHA-256 over app, operation and key.
    pub digest: [u8; 32],
}

/// Who may place the order of an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderLease {
    /// The key.
    pub scope: IdempotencyScope,
    /// One request under it.
    pub holder: Uuid,
}

/// The first answer to a request with an `Idempotency-Key`.
#[derive(Clone, Debug, PartialEq)]
pub struct IdempotentAnswer {
    /// The key.
    pub scope: IdempotencyScope,
    /// SHA-256 of the request's body: the same key with another body is refused.
    pub request: [u8; 32],
    /// The sealed answer.
    pub answer: Sealed,
    /// Until when it is replayed.
    pub until: Timestamp,
}

/// What became of [`OpenTransaction`].
#[derive(Clone, Debug, PartialEq)]
pub enum OpenOutcome {
    /// Opened and paid for, now or by an earlier call under the same transaction id.
    Opened {
        /// The client's balance afterwards; for a repeated call, the balance of the moment.
        balance: u64,
    },
    /// The balance does not cover it; nothing was written.
    InsufficientCredits,
    /// The idempotency key was used before with this body; nothing was written.
    Replayed(Sealed),
    /// The idempotency key was used before with another body; nothing was written.
    KeyReused,
    /// The event takes no guest now; nothing was written.
    EventRefused(EventRefusal),
    /// There is no such event; nothing was written.
    EventNotFound,
}

/// Creates an event.
#[derive(Clone, Debug)]
pub struct CreateEvent {
    /// The event, without counts; its id makes the transition repeatable.
    pub event: Event,
    /// What to replay when the client repeats the request under its `Idempotency-Key`.
    pub idempotency: Option<IdempotentAnswer>,
}

/// What became of [`CreateEvent`].
#[derive(Clone, Debug, PartialEq)]
pub enum CreateEventOutcome {
    /// Created, now or by an earlier call under the same event id.
    Created,
    /// The idempotency key was used before with this body; nothing was written.
    Replayed(Sealed),
    /// The idempotency key was used before with another body; nothing was written.
    KeyReused,
    /// There is no such client.
    ClientNotFound,
}

/// What became of a change to an event.
#[derive(Clone, Debug, PartialEq)]
pub enum PatchEventOutcome {
    /// The event as it is from now on.
    Patched(Event),
    /// The change contradicts what has happened; nothing was written.
    Refused(Invalid),
    /// The app has no such event.
    NotFound,
}

/// How long records are kept beyond their use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Expired transactions, after their window.
    pub expired: Duration,
    /// Events with their registrations, after their end.
    pub events: Duration,
}

/// Completes a transaction and queues its webhook.
#[derive(Clone, Debug)]
pub struct CompleteTransaction {
    /// Which one.
    pub id: TxnId,
    /// The event whose guest it is, as far as the caller knows; the store goes by what it has.
    pub event: Option<EventId>,
    /// Whether the verification passed.
    pub passed: bool,
    /// The sealed outcome.
    pub outcome: Sealed,
    /// Identifies the answer; a repeated call is recognised by it.
    pub answer: AnswerDigest,
    /// The credential that was presented; `None` when the answer was none.
    pub credential: Option<PresentedCredential>,
    /// How long a credential is remembered.
    pub replay_window: Duration,
    /// How long the result can be fetched.
    pub result_ttl: Duration,
    /// For a guest who passed: the outcomes to store instead when the event has no place now.
    /// A guest without them is refused all the same, and `outcome` is stored as it is.
    pub guest: Option<GuestOutcomes>,
}

/// Sealed outcomes of a guest who passed and cannot be registered.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestOutcomes {
    /// The event is full.
    pub full: Sealed,
    /// It was disabled.
    pub disabled: Sealed,
    /// It has ended.
    pub expired: Sealed,
}

/// A credential, to be remembered and recognised under another transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresentedCredential {
    /// Identifies it in all its presentations.
    pub digest: CredentialIdentity,
    /// Whether its holder bound it to this transaction. It is then no replay, even if the same
    /// credential was accepted under another one.
    pub holder_bound: bool,
}

/// What became of [`CompleteTransaction`].
#[derive(Clone, Debug, PartialEq)]
pub enum CompleteOutcome {
    /// It is completed by this answer.
    Completed {
        /// As stored.
        record: CompletedRecord,
        /// Its delivery, when a webhook was queued by this call.
        queued: Option<QueuedDelivery>,
        /// Whether an earlier call with the same answer had done it.
        repeated: bool,
    },
    /// It was completed before by another answer, which stands.
    AlreadyCompleted(CompletedRecord),
    /// Its window has passed by the store's clock; nothing was written.
    Expired,
    /// The credential was accepted under another transaction; nothing was written.
    CredentialReplayed,
    /// There is no such transaction (any more).
    NotFound,
}

/// What became of a grant or adjustment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreditOutcome {
    /// The entry of this movement, now or by an earlier call under the same kind and reference.
    Moved(LedgerEntry),
    /// The same kind and reference were used before with another amount; nothing was written.
    ReferenceReused,
    /// The balance would leave its range; nothing was written.
    OutOfRange,
    /// There is no such client.
    NotFound,
}

/// Everything needed to judge an API key and app pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyGrant {
    /// The key.
    pub key: ApiKeyRecord,
    /// The app, if it exists; it may belong to another client.
    pub app: Option<App>,
}

/// One page of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// From 1.
    pub page: u32,
    /// Rows of a page.
    pub page_size: u32,
}

/// Rows of a listing whose rows may be large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// How many come before them.
    pub after: u64,
    /// As many at most.
    pub most: u32,
    /// No further ones when they hold so many bytes already; the first one comes in any case.
    pub bytes: usize,
}

impl From<PageRequest> for Rows {
    fn from(PageRequest { page, page_size }: PageRequest) -> Self {
        Self { after: u64::from(page.saturating_sub(1)) * u64::from(page_size), most: page_size, bytes: usize::MAX }
    }
}

/// The rows of one page and how many there are on all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Rows on all pages.
    pub total: u64,
}

/// What an audit of one client's ledger found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Whose ledger.
    pub client: ClientId,
    /// The balance as kept.
    pub balance: u64,
    /// The sum of all entries.
    pub sum: i64,
    /// The number of entries.
    pub entries: u64,
    /// Entries whose number, balance or sign does not follow from the one before.
    pub faults: u64,
}

impl Audit {
    /// Whether the ledger adds up.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.faults == 0 && i64::try_from(self.balance) == Ok(self.sum)
    }
}

/// How many records a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Transactions, with their deliveries.
    pub transactions: u64,
    /// Idempotency records.
    pub idempotency: u64,
    /// Credential digests.
    pub credentials: u64,
    /// Events and registrations.
    pub events: u64,
    /// Flows, and reports with their deliveries.
    pub flows: u64,
    /// Sessions.
    pub sessions: u64,
}

impl From<CompletedRecord> for TransactionRecord {
    fn from(record: CompletedRecord) -> Self {
        Self::Completed(record)
    }
}
