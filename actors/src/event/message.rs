//! What an event can be asked.

use std::sync::Arc;

use actix::Message;
use sakshi_domain::event::Event;
use sakshi_store::StoreError;
use tokio::sync::watch;

use crate::ask::Inquiry;

/// Follows an event: the value changes when the event does. The sender goes when the event ends.
pub type EventWatch = watch::Receiver<Arc<Event>>;

/// A question for the event with its counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GetEvent {
    /// A reading of a moment ago will do.
    pub(crate) recent: bool,
}

/// Tell me whenever the event changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchEvent;

/// Something happened at the event: read the counts again for those who watch.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Refresh {
    /// The event as a change has just made it.
    pub(crate) now: Option<Arc<Event>>,
}

impl Message for Inquiry<GetEvent> {
    type Result = Result<Option<Arc<Event>>, StoreError>;
}

impl Message for Inquiry<WatchEvent> {
    type Result = Result<Option<EventWatch>, StoreError>;
}
