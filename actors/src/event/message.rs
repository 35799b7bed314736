//! What an event can be asked.

use std::sync::Arc;

use actix::Message;
use sakshi_domain::event::{Event, EventPatch};
use sakshi_domain::ids::AppId;
use sakshi_store::{PatchEventOutcome, StoreError};
use tokio::sync::watch;

use crate::ask::Asked;

/// Follows an event: the value changes when the event does. The sender goes when the event ends.
pub type EventWatch = watch::Receiver<Arc<Event>>;

/// What is the event now, with its counts?
#[derive(Clone, Copy, Debug)]
pub(crate) struct GetEvent;

/// Tell me whenever the event changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchEvent;

/// Change the event.
#[derive(Clone, Debug)]
pub(crate) struct PatchEvent {
    /// Who asks.
    pub(crate) app: AppId,
    /// The change.
    pub(crate) patch: EventPatch,
}

/// Something happened at the event: read the counts again for those who watch.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Refresh;

impl Message for Asked<GetEvent> {
    type Result = Result<Option<Arc<Event>>, StoreError>;
}

impl Message for Asked<WatchEvent> {
    type Result = Result<Option<EventWatch>, StoreError>;
}

impl Message for Asked<PatchEvent> {
    type Result = Result<PatchEventOutcome, StoreError>;
}
