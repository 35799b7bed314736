//! The durable store. Actors hold live, timed copies of what is in it.
//!
//! [`Store`] is the sum of one small trait for each kind of record, in a file beside its request and outcome types. Every operation is
//! atomic and safe to repeat under the same id. `operations` implements them once, over an [`engine`]: each reads what it needs, asks a
//! pure function in `transitions` for a batch of guards and operations, and commits it. `records` says which kinds of records there are;
//! [`embedded`] keeps them in one SQLite file for one process, [`redis`] in Redis for many nodes. Personal data enters only as
//! [`Sealed`] ciphertext, which the [`Vault`] makes and opens; no engine sees a claim in plain text.

mod audit_log;
mod canary;
#[cfg(test)]
mod conformance;
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
mod moving;
mod operations;
mod operators;
mod outbox;
mod paging;
mod records;
pub mod redis;
mod refusals;
mod reseal;
mod sealing;
mod sessions;
mod store;
mod tenancy;
mod transactions;
mod transfers;
mod transitions;
mod upkeep;
mod vault;

pub use audit_log::{AuditHash, AuditHead, AuditLog, AuditRecord};
pub use credits::{Audit, CreditOutcome, Credits};
pub use erasure::{Erased, Erasure};
pub use error::{OpenError, StoreError, StoreFuture};
pub use events::{CreateEvent, Events, PatchEventOutcome, Registration};
pub use flows::{FlowDeliveries, FlowRecord, Flows, LapseFlowOutcome, OpenFlow, ReportFlow, ReportFlowOutcome, SealedPayload};
pub use idempotency::{CreateOutcome, Idempotency, IdempotencyScope, IdempotentAnswer, OrderLease};
pub use installation::{Installation, Ownership};
pub use intent_key::{ChosenIntentKey, IntentKeyChoice};
pub use moving::{Moved, MovedKind, move_to_directory, move_to_redis};
pub use operations::{OPERATIONS, RecordStore};
pub use operators::Operators;
pub use outbox::{Backlog, Outbox};
pub use paging::{Page, PageRequest, Rows};
pub use refusals::Refusals;
pub use reseal::{Reseal, ResealCursor, Resealed};
pub use sessions::{SessionDigest, SessionRecord, Sessions};
pub use store::Store;
pub use tenancy::{KeyGrant, Tenancy};
pub use transactions::{
    CompleteOutcome, CompleteTransaction, CompletedRecord, ExpireOutcome, GuestOutcomes, OpenOutcome, OpenTransaction, PresentedCredential,
    TransactionRecord, Transactions,
};
pub use transfers::Transfers;
pub use upkeep::{Retention, Swept, Upkeep};
pub use vault::{EncryptionKeyId, Sealed, Vault, VaultError};
