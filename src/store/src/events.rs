//! Events and their registered guests.

use sakshi_domain::event::{Event, EventPatch};
use sakshi_domain::ids::{AppId, EventId, TxnId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;

use crate::error::StoreFuture;
use crate::idempotency::{CreateOutcome, IdempotentAnswer};
use crate::paging::{Page, PageRequest, Rows};
use crate::vault::Sealed;

/// Events.
pub trait Events {
    /// Creates an event, and keeps the answer for its idempotency key. Repeatable by event id.
    fn create_event(&self, create: CreateEvent) -> StoreFuture<CreateOutcome>;

    /// The event with its current counts.
    fn load_event(&self, id: EventId) -> StoreFuture<Option<Event>>;

    /// The app's events by creation time.
    fn list_events(&self, app: AppId, page: PageRequest) -> StoreFuture<Page<Event>>;

    /// Changes an event of this app, by the store's clock and its current counts.
    fn patch_event(&self, id: EventId, app: AppId, patch: EventPatch) -> StoreFuture<PatchEventOutcome>;

    /// The registered guests, in the order in which they were registered.
    fn list_registrations(&self, id: EventId, rows: Rows) -> StoreFuture<Page<Registration>>;
}

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
