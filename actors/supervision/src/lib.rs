//! Supervision for actix actors, without any knowledge of the product.
//!
//! An actor that panics is restarted in its place, within a budget. Actors with an id live on shards, one per worker
//! arbiter, with one timer wheel each. Repeated failures escalate to the root, which asks the process to end. Admission
//! is bounded by number ([`Gate`]) and by owner ([`FairSlots`]).

mod children;
mod fair_slots;
mod gate;
mod heartbeat;
#[cfg(feature = "simulation")]
pub mod interference;
mod node;
mod panics;
mod restart;
mod root;
mod shard;
mod shard_actor;
mod shard_failures;
mod shards;
#[cfg(test)]
mod tests;
mod wheel;

/// Locks and atomics: the standard library's, or those whose interleavings a test explores.
#[cfg(feature = "interleavings")]
use shuttle::sync;
#[cfg(not(feature = "interleavings"))]
use std::sync;

pub use fair_slots::{FairSlot, FairSlots};
pub use gate::{Gate, Permit};
pub use heartbeat::Heartbeats;
pub use node::{LastPanic, NodeView};
pub use panics::note_panic;
pub use root::{Escalation, Root};
pub use shard::Shard;
pub use shard_actor::{Deadline, ShardActor};
pub use shards::{ShardBounds, Shards};
