//! What the client is told: the bodies of webhooks and of polls (specification, "Events").
//!
//! One file per webhook kind, each with the fields of the specification's table in its spelling.
//! A type here is written as JSON and, where an upstream reports it, read from JSON; what a report
//! means for its flow is decided in [`crate::flow`].

pub mod doclocker;
pub mod envelope;
pub mod esign;
pub mod estamp;
mod ovse;
pub mod poll;
pub mod wealth_consent;
pub mod wealth_data;
pub mod wealth_historical;

pub use ovse::{OvsePayload, PendingStub, VERIFIED_MESSAGE};
