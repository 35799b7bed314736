//! The durable store. Actors hold live, timed copies of its records.
//!
//! Every operation of a [`Store`] is repeatable under the same id. A dropped future may or may not have taken effect;
//! `Ok` means durable. `operations` implements them once, over an [`engine`]: each reads its records, asks a function
//! in `transitions` for a batch of guards and operations, and commits it. A batch is atomic. A few operations commit
//! several, and undo or complete what an interrupted call has left. `records` declares the kinds of records;
//! [`embedded`] stores them in one SQLite file for one process, [`redis`] in Redis for many nodes. Personal and secret
//! data is stored only as [`Sealed`] ciphertext, which the [`Vault`] makes and opens; no engine sees a claim in plain
//! text.

mod audit_log;
mod canary;
mod client_log;
#[cfg(test)]
mod conformance;
mod consents;
mod console;
mod credits;
pub mod embedded;
pub mod engine;
mod erasure;
mod error;
mod events;
mod flows;
mod idempotency;
mod installation;
mod intent_key;
mod invariants;
mod moving;
mod operations;
mod outbox;
mod paging;
mod records;
pub mod redis;
mod reseal;
mod schema;
mod sealing;
mod sessions;
mod tenancy;
mod transactions;
mod transitions;
mod upkeep;
mod users;
mod vault;
mod xaes;

/// Locks and atomics of the standard library, or of `shuttle` for tests that explore interleavings.
#[cfg(feature = "interleavings")]
use shuttle::sync;
#[cfg(not(feature = "interleavings"))]
use std::sync;

pub use audit_log::{AuditHash, AuditHead, AuditRecord, UnsentAudit};
pub use client_log::{LogPage, LogPosition, LogQuery};
pub use consents::{ConsentPage, ConsentPosition, ConsentQuery, StoredConsent};
pub use console::{ConsoleSession, DecideGrant, DecideGrantOutcome, RequestGrant, RequestGrantOutcome};
pub use credits::{Audit, CreditOutcome};
pub use erasure::Erased;
pub use error::{OpenError, StoreError, StoreFuture};
pub use events::{CheckInOutcome, CreateEvent, Guest, PatchEventOutcome, Registration, event_tag, has_tag};
pub use flows::{FlowDeliveries, FlowRecord, LapseFlowOutcome, OpenFlow, ReportFlow, ReportFlowOutcome, SealedPayload};
pub use idempotency::{CreateOutcome, IdempotencyScope, IdempotentAnswer, OrderLease};
pub use installation::{Installation, Ownership};
pub use intent_key::ChosenIntentKey;
pub use invariants::{KeyRule, Need, Rule, invariants};
pub use moving::{Moved, MovedKind, move_to_directory, move_to_redis};
pub use operations::{OPERATIONS, OtherNode, Store};
pub use outbox::Backlog;
pub use paging::{Page, PageRequest, Rows};
pub use reseal::{ResealCursor, Resealed};
pub use schema::{Change, FIRST, Rewrite, SCHEMA, Schema, Step, Upgrading};
pub use sealing::seal_outcome;
pub use sessions::{SessionDigest, SessionHolder, SessionRecord};
pub use tenancy::{KeyEnd, KeyGrant};
pub use transactions::{
    CompleteOutcome, CompleteTransaction, CompletedRecord, ExpireOutcome, GuestDetails, OpenOutcome, OpenTransaction,
    PresentedCredential, TransactionRecord, TransactionSummary,
};
pub use upkeep::{Retention, Swept};
pub use users::{Credential, InviteDigest, InviteOutcome, SignInCandidate, UserGrant};
pub use vault::{EncryptionKeyId, Sealed, Vault, VaultError};
