//! The store: the truth of which every actor is a live, timed copy.
//!
//! [`Store`] is one trait of named transitions, each of them atomic and safe to repeat under the
//! same id: [`embedded`] keeps them in a file of one process, [`redis`] in Redis for many nodes.
//! Personal data enters only as [`Sealed`] boxes, which the [`Vault`] makes and opens;
//! no implementation sees a claim in the clear.

mod canary;
#[cfg(test)]
mod conformance;
pub mod embedded;
mod error;
mod flows;
#[cfg(test)]
mod models;
mod record;
pub mod redis;
mod sealing;
mod session;
mod store;
mod transition;
mod vault;

pub use error::StoreError;
pub use flows::{FlowDeliveries, FlowRecord, LapseFlowOutcome, OpenFlow, OpenFlowOutcome, ReportFlow, ReportFlowOutcome, SealedPayload};
pub use record::{CompletedRecord, Registration, TransactionRecord};
pub use session::{SessionDigest, SessionRecord};
pub use store::{Store, StoreFuture};
pub use transition::{
    Audit, CompleteOutcome, CompleteTransaction, CreateEvent, CreateEventOutcome, CreditOutcome, GuestOutcomes, IdempotencyScope,
    IdempotentAnswer, KeyGrant, OpenOutcome, OpenTransaction, OrderLease, Page, PageRequest, PatchEventOutcome, PresentedCredential,
    Retention, Rows, Swept,
};
pub use vault::{Sealed, Vault, VaultError};
