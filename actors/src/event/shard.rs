//! Behaviour of a shard that is specific to events.
//!
//! An event has an actor from the first question until its end. A question after the end starts an actor that ends at
//! once.

use std::sync::Arc;

use actix::{Handler, Message};
use sakshi_domain::event::Event;
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_store::StoreFuture;
use sakshi_supervision::{Shard, ShardActor, Shards};

use super::actor::{EventActor, EventContext};
use super::message::{EventWatch, GetEvent, Refresh, WatchEvent};
use crate::ask::{Question, RecordActor};

impl ShardActor for EventActor {
    type Id = EventId;
    type Shared = Arc<EventContext>;
    const KIND: &'static str = "event";

    /// Byte 11 of an event's id is random.
    fn random_byte(id: &EventId) -> u8 {
        id.as_bytes()[11]
    }

    fn shard_byte(id: &EventId) -> u8 {
        id.shard_byte()
    }

    fn now_millis(context: &Arc<EventContext>) -> i64 {
        context.clock.now().millis()
    }
}

impl RecordActor for EventActor {
    type Record = Event;
    const STARTS_WHEN_FULL: bool = false;

    fn load(context: &Arc<EventContext>, id: EventId) -> StoreFuture<Option<Event>> {
        context.store.load_event(id)
    }

    fn deadline(event: &Event) -> Timestamp {
        event.terms.expires_at
    }

    fn from_record(event: Event, context: &Arc<EventContext>) -> Self {
        Self::new(Arc::new(event), Arc::clone(context))
    }
}

impl Question<EventActor> for GetEvent {
    type Answer = Option<Arc<Event>>;

    fn answer_without_record(&self) -> Option<Arc<Event>> {
        None
    }
}

impl Question<EventActor> for WatchEvent {
    type Answer = Option<EventWatch>;

    fn answer_without_record(&self) -> Option<EventWatch> {
        None
    }
}

/// Notifies a live event actor of a change: `changed_event` is the event after the organiser's change; `None` if only
/// its guests have changed.
pub(crate) fn notify_event(shards: &Shards<EventActor>, id: EventId, changed_event: Option<Arc<Event>>) {
    if let Some(shard) = shards.shard_of(&id) {
        shard.do_send(EventChanged { id, changed_event });
    }
}

/// An event or its guests have changed; see [`notify_event`].
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
struct EventChanged {
    id: EventId,
    changed_event: Option<Arc<Event>>,
}

impl Handler<EventChanged> for Shard<EventActor> {
    type Result = ();

    fn handle(&mut self, EventChanged { id, changed_event }: EventChanged, _: &mut Self::Context) {
        if let Some(actor) = self.get(&id) {
            let end = changed_event.as_ref().map(|event| event.terms.expires_at);
            actor.do_send(Refresh { changed_event });
            if let Some(end) = end {
                self.wake_also_at(id, end.millis());
            }
        }
    }
}
