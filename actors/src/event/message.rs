//! What an event can be asked.

use std::sync::Arc;

use actix::Message;
use sakshi_domain::event::{Event, EventPatch};
use sakshi_domain::ids::AppId;
use sakshi_store::{PatchEventOutcome, StoreError};
use tokio::sync::watch;

/// An event as it stands.
#[derive(Clone, Debug, PartialEq)]
pub enum EventView {
    /// With its counts.
    Known(Arc<Event>),
    /// There is none.
    Unknown,
}

/// Follows an event: the value changes when the event does. The sender goes when the event ends.
pub type EventWatch = watch::Receiver<Arc<Event>>;

/// A question that has an answer when there is no such event, too.
pub(crate) trait EventQuestion: Message<Result = Result<Self::Answer, StoreError>> + Clone + Send + 'static {
    /// What is answered.
    type Answer: Send + 'static;

    /// The answer when there is no such event.
    fn unknown(&self) -> Self::Answer;
}

/// How does the event stand?
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<EventView, StoreError>")]
pub(crate) struct LookEvent;

impl EventQuestion for LookEvent {
    type Answer = EventView;

    fn unknown(&self) -> EventView {
        EventView::Unknown
    }
}

/// Tell me whenever the event changes.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Result<Option<EventWatch>, StoreError>")]
pub(crate) struct WatchEvent;

impl EventQuestion for WatchEvent {
    type Answer = Option<EventWatch>;

    fn unknown(&self) -> Self::Answer {
        None
    }
}

/// Change yourself.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Result<PatchEventOutcome, StoreError>")]
pub(crate) struct PatchEvent {
    /// Who asks.
    pub(crate) app: AppId,
    /// The change.
    pub(crate) patch: EventPatch,
}

impl EventQuestion for PatchEvent {
    type Answer = PatchEventOutcome;

    fn unknown(&self) -> PatchEventOutcome {
        PatchEventOutcome::NotFound
    }
}

/// Something happened at the event: read the counts again for those who watch.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Refresh;
