//! Questions to an event.

use std::sync::Arc;

use actix::Message;
use sakshi_domain::event::Event;
use sakshi_store::StoreError;
use tokio::sync::watch;

use crate::ask::Inquiry;

/// Watch on an event: the value changes with the event. The sender is dropped when the event ends.
pub type EventWatch = watch::Receiver<Arc<Event>>;

/// Asks for the event with its counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GetEvent {
    /// True if a read of the last 300 ms is enough, as it is for pages.
    pub(crate) recent: bool,
}

/// Asks for a watch on the event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchEvent;

/// The event has changed: read it again for its watchers.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Refresh {
    /// The event after the organiser's change; `None` if only its guests have changed.
    pub(crate) changed_event: Option<Arc<Event>>,
}

impl Message for Inquiry<GetEvent> {
    type Result = Result<Option<Arc<Event>>, StoreError>;
}

impl Message for Inquiry<WatchEvent> {
    type Result = Result<Option<EventWatch>, StoreError>;
}
