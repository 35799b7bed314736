//! Events and their registered guests.

use sakshi_domain::event::Event;
use sakshi_domain::ids::TxnId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;

use crate::idempotency::IdempotentAnswer;
use crate::vault::Sealed;

/// Creates an event.
#[derive(Clone, Debug)]
pub struct CreateEvent {
    /// The event, without counts; its id makes the operation repeatable.
    pub event: Event,
    /// How many events its app may have, those included that have ended and are still kept.
    pub most: Option<u32>,
    /// What to replay when the client repeats the request under its `Idempotency-Key`.
    pub idempotency: Option<IdempotentAnswer>,
}

/// The outcome of a change to an event.
#[derive(Clone, Debug, PartialEq)]
pub enum PatchEventOutcome {
    /// The event as it is from now on.
    Patched(Event),
    /// The change contradicts what has happened; nothing was written.
    Refused(Invalid),
    /// The app has no such event.
    NotFound,
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
