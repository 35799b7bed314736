//! The live half of the service: actors that order the events of each transaction, move credits and send webhooks,
//! under a tree that restarts what fails.
//!
//! An actor decides nothing and owns nothing that the store does not have: the domain decides, the
//! store commits, and any actor can be killed and rebuilt. `README.md` in this crate states what is
//! guaranteed.

mod accounts;
mod ask;
mod audit_forwarder;
mod dispatcher;
mod event;
mod figures;
mod flow_sweeper;
mod flows;
mod ledger;
mod reaper;
mod reveal;
mod router;
mod transaction;
mod tree;
mod trusted_clock;

#[cfg(test)]
mod tests;

/// Locks of the standard library, or of `shuttle` for tests that explore interleavings.
#[cfg(feature = "interleavings")]
use shuttle::sync;
#[cfg(not(feature = "interleavings"))]
use std::sync;

pub use accounts::Announcement;
pub use audit_forwarder::AUDIT_SEND_TIME;
pub use dispatcher::{ByteBounds, DispatchBounds, ReceiverView};
pub use event::{EventWatch, Events};
pub use flows::Flows;
pub use reveal::{RevealError, reveal_outcome};
pub use router::AskError;
pub use sakshi_supervision::{Escalation, Gate, LastPanic, NodeView, Permit, note_panic};
pub use transaction::{Complete, CompleteReply, Transactions, View};
pub use tree::{Handles, Tree, TreeBounds, TreeConfig};
