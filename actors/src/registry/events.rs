//! The event registry: what a shard does for events alone.
//!
//! An event has an actor from the moment it is asked about until its end; one that is asked about
//! after its end gets an actor for a moment only.

use std::sync::Arc;

use actix::{Handler, Message};
use sakshi_domain::clock::Clock;
use sakshi_domain::event::Event;
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{Store, StoreFuture};

use super::shard::{Copied, Live, Question, Registry};
use crate::event::{EventActor, EventQuestion, Refresh};

/// One shard of the registry.
pub(crate) type EventRegistry = Registry<EventActor>;

impl Live for EventActor {
    type Id = EventId;
    type Ground = (Arc<dyn Store>, Arc<dyn Clock>);
    const KIND: &'static str = "event";

    fn clock((_, clock): &Self::Ground) -> &dyn Clock {
        &**clock
    }
}

impl Copied for EventActor {
    type Record = Event;
    const ADOPTED_WHEN_FULL: bool = false;

    fn load((store, _): &Self::Ground, id: EventId) -> StoreFuture<Option<Event>> {
        store.load_event(id)
    }

    fn terms(event: &Event) -> (EventId, Timestamp) {
        (event.id, event.terms.expires_at)
    }

    fn adopted(event: Event, (store, clock): &Self::Ground) -> Self {
        Self::new(Arc::new(event), Arc::clone(store), Arc::clone(clock))
    }
}

impl<Q: EventQuestion> Question<EventActor> for Q {
    type Answer = <Q as EventQuestion>::Answer;

    fn unknown(&self) -> Self::Answer {
        EventQuestion::unknown(self)
    }

    fn of_record(&self, event: Event, _: &<EventActor as Live>::Ground) -> Result<Self::Answer, Event> {
        Err(event)
    }
}

/// Something happened at an event, or its end was moved.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Touched {
    pub(crate) id: EventId,
    /// Its end, when it was moved.
    pub(crate) end: Option<Timestamp>,
}

impl Handler<Touched> for EventRegistry {
    type Result = ();

    fn handle(&mut self, Touched { id, end }: Touched, _: &mut Self::Context) {
        if let Some(child) = self.children.get(&id) {
            child.do_send(Refresh);
            if let Some(end) = end {
                self.wheel.set(id, end);
            }
        }
    }
}
