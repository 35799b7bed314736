//! The live half of the service: actors that order what happens to each transaction, move credits
//! and send webhooks, under a tree that restarts what fails.
//!
//! An actor decides nothing and owns nothing that the store does not have: the domain decides, the
//! store commits, and any actor can be killed and rebuilt. `README.md` in this crate states what is
//! guaranteed.

mod admission;
mod changes;
mod dispatcher;
mod door;
mod event;
mod events;
mod flow;
mod flows;
mod heartbeat;
mod ledger;
mod node;
mod parcel;
mod reaper;
mod registry;
mod reveal;
mod root;
mod supervision;
mod transaction;
mod transactions;
mod tree;

#[cfg(test)]
mod tests;

pub use admission::{Admission, Permit};
pub use dispatcher::{ByteBounds, LaneBounds};
pub use door::AskError;
pub use event::{EventView, EventWatch};
pub use events::Events;
pub use flows::Flows;
pub use ledger::{CreditLedger, MoveCredits};
pub use node::NodeView;
pub use reveal::{RevealError, reveal, reveal_outcome};
pub use root::Escalation;
pub use transaction::{Complete, CompleteReply, View};
pub use transactions::Transactions;
pub use tree::{Doors, Ground, Tree, TreeBounds};
