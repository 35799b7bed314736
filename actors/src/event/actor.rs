//! The event actor: a live copy of one event for its readers and watchers.
//!
//! It decides nothing. The store decides whether a guest gets a place, in the step that takes the place. Neither guests
//! nor changes by the organiser queue here, because each would wait for the commit before it. The actor notifies
//! watchers of changes, with many guests per read, and ends with the event.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, Context, Handler, ResponseActFuture, Supervised,
    WrapFuture as _,
};
use sakshi_domain::clock::Clock;
use sakshi_domain::event::Event;
use sakshi_domain::ids::EventId;
use sakshi_store::{Store, StoreError, StoreFuture};
use sakshi_supervision::Deadline;
use sakshi_trace::invariant::{Part, holds};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::message::{EventWatch, GetEvent, Refresh, WatchEvent};
use crate::ask::Inquiry;

/// Minimum interval between two notifications of watchers.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(200);
/// Minimum interval between two notifications, multiplied by the number of watchers. It bounds the processor time that
/// notifications take.
const NOTIFY_INTERVAL_PER_WATCHER: Duration = Duration::from_micros(200);
/// Pause between two reads of a watched event that other nodes may change.
const FOLLOW_PAUSE: Duration = Duration::from_millis(300);

/// Free places that an event must have for its pages to show a recent read. More guests cannot come between two reads.
const FREE_PLACES_MIN: u32 = 500;

/// Dependencies of the event actors of a node.
#[derive(Debug)]
pub(crate) struct EventContext {
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
}

/// One live event.
#[derive(Debug)]
pub(crate) struct EventActor {
    id: EventId,
    context: Arc<EventContext>,
    /// The last read; watchers subscribe to it.
    latest: Option<watch::Sender<Arc<Event>>>,
    /// Start of the last read, by the monotonic clock.
    read_at: Option<Duration>,
    /// Time at which watchers were last notified.
    notified_at: Option<Instant>,
    /// True if watchers must still be notified of the last read, because they were notified too recently.
    notification_due: bool,
    /// True while a read for watchers is scheduled or under way.
    refreshing: bool,
    /// True if something happened since the last read for watchers began.
    outdated: bool,
    /// True if the event is read again every [`FOLLOW_PAUSE`] while it has watchers.
    following: bool,
    /// Callers who wait for the read that begins when the current one has ended.
    waiting_readers: Vec<Reader>,
    /// True while a read for callers is under way.
    reading: bool,
}

/// Sends the event to a caller who asked for it.
type Reader = oneshot::Sender<Result<Option<Arc<Event>>, StoreError>>;

impl EventActor {
    /// Builds an actor for an event that was just read or created.
    pub(crate) fn new(event: Arc<Event>, context: Arc<EventContext>) -> Self {
        let (id, latest) = (event.id, Some(watch::Sender::new(event)));
        Self {
            id,
            context,
            latest,
            read_at: None,
            notified_at: None,
            notification_due: false,
            refreshing: false,
            outdated: false,
            following: false,
            waiting_readers: Vec::new(),
            reading: false,
        }
    }

    /// Reads the event from the store. Returns the time at which the read begins, too.
    fn load(&self) -> (Duration, StoreFuture<Option<Event>>) {
        let (now, store) = (self.context.clock.monotonic(), &self.context.store);
        match &self.latest {
            Some(latest) => (now, store.load_event_of(self.id, latest.borrow().client.clone())),
            None => (now, store.load_event(self.id)),
        }
    }

    /// Returns the last read, if it is recent enough for a page.
    fn recent_read(&self) -> Option<Arc<Event>> {
        let age = self.context.clock.monotonic().saturating_sub(self.read_at?);
        let latest = self.latest.as_ref()?.borrow();
        (age < FOLLOW_PAUSE && latest.has_room_for(FREE_PLACES_MIN)).then(|| Arc::clone(&latest))
    }

    /// Stores a read. Notifies watchers if it differs from their last one: now, or after the minimum interval.
    fn publish(&mut self, event: &Arc<Event>, ctx: &mut Context<Self>) {
        if !self.matches_event(event) {
            // Another actor will read the event again.
            return ctx.stop();
        }
        let Some(latest) = &self.latest else {
            self.latest = Some(watch::Sender::new(Arc::clone(event)));
            return;
        };
        let now = Instant::now();
        let remaining_wait = self.notified_at.map_or(Duration::ZERO, |notified_at| {
            (notified_at + self.notify_interval()).saturating_duration_since(now)
        });
        let mut notification_due = self.notification_due;
        let notified = latest.send_if_modified(|known| {
            notification_due |= known != event;
            *known = Arc::clone(event);
            notification_due && remaining_wait.is_zero()
        });
        if notified {
            self.notified_at = Some(now);
        }
        self.notification_due = notification_due && !notified;
        if self.notification_due {
            self.refresh(remaining_wait, ctx);
        }
    }

    /// Checks that a read is of this event and can follow the last read.
    fn matches_event(&self, event: &Event) -> bool {
        let latest = self.latest.as_ref().map(|latest| Arc::clone(&latest.borrow()));
        holds(Part::Live, "an actor reads its own event", event.id == self.id) && can_follow(latest.as_deref(), event)
    }

    /// Returns the minimum interval between two notifications of watchers.
    fn notify_interval(&self) -> Duration {
        let watchers = self.latest.as_ref().map_or(0, watch::Sender::receiver_count);
        NOTIFY_INTERVAL.max(NOTIFY_INTERVAL_PER_WATCHER * u32::try_from(watchers).unwrap_or(u32::MAX))
    }

    fn is_watched(&self) -> bool {
        self.latest.as_ref().is_some_and(|latest| latest.receiver_count() > 0)
    }

    /// Reads the event after a pause, if it has watchers.
    fn refresh(&mut self, pause: Duration, ctx: &mut Context<Self>) {
        if !self.is_watched() || self.refreshing {
            // The read under way may have begun before this change.
            self.outdated = self.refreshing;
            return;
        }
        self.refreshing = true;
        ctx.run_later(pause, |actor, ctx| {
            actor.outdated = false;
            let (began_at, load) = actor.load();
            ctx.spawn(load.into_actor(actor).map(move |loaded, actor, ctx| {
                actor.refreshing = false;
                if let Ok(Some(event)) = loaded {
                    actor.read_at = Some(began_at);
                    actor.publish(&Arc::new(event), ctx);
                }
                if mem::take(&mut actor.outdated) {
                    actor.refresh(actor.notify_interval(), ctx);
                }
            }));
        });
    }

    /// Begins to read the event regularly where other nodes may change it. Nodes do not announce changes to each other:
    /// few nodes watch an event, and its guests come to all of them.
    fn begin_following(&mut self, ctx: &mut Context<Self>) {
        if !self.following && self.context.store.is_shared() {
            self.following = true;
            ctx.run_later(FOLLOW_PAUSE, Self::read_again);
        }
    }

    /// Reads the event for its watchers, and schedules the next read while it has any.
    fn read_again(&mut self, ctx: &mut Context<Self>) {
        self.refresh(Duration::ZERO, ctx);
        self.following = self.is_watched() || self.reading;
        if self.following {
            ctx.run_later(FOLLOW_PAUSE, Self::read_again);
        }
    }

    /// Reads the event for a question and applies `then` to it. The read begins after the question. One read is under
    /// way at a time, and questions that arrive during a read share the next one. So a crowd waits for two reads at
    /// most.
    fn read<T: 'static>(
        &mut self,
        ctx: &mut Context<Self>,
        then: impl FnOnce(&mut Self, Option<Arc<Event>>) -> T + 'static,
    ) -> ResponseActFuture<Self, Result<T, StoreError>> {
        let (reader, answer) = oneshot::channel();
        self.waiting_readers.push(reader);
        self.begin_read(ctx);
        Box::pin(answer.into_actor(self).map(move |answer, actor, ctx| {
            let event = answer
                .unwrap_or_else(|_| Err(StoreError::Unavailable("the read of the event was abandoned".into())))?;
            if event.is_none() {
                // The reaper has removed the event.
                ctx.stop();
            }
            Ok(then(actor, event))
        }))
    }

    /// Begins the next read for callers, unless one is under way or nobody waits.
    fn begin_read(&mut self, ctx: &mut Context<Self>) {
        if self.reading || self.waiting_readers.is_empty() {
            return;
        }
        self.reading = true;
        let readers = mem::take(&mut self.waiting_readers);
        metrics::counter!("sakshi_event_reads_total").increment(1);
        let (began_at, load) = self.load();
        ctx.spawn(load.into_actor(self).map(move |loaded, actor, ctx| {
            actor.reading = false;
            let event = loaded.map(|event| event.map(Arc::new));
            if let Ok(Some(event)) = &event {
                actor.read_at = Some(began_at);
                actor.publish(event, ctx);
            }
            for reader in readers {
                // A caller that is gone needs no answer.
                let _ = reader.send(event.clone());
            }
            actor.begin_read(ctx);
        }));
    }
}

/// Checks that a read of an event is consistent, and that it can follow `latest`, the read before it.
fn can_follow(latest: Option<&Event>, event: &Event) -> bool {
    let is_same = |latest: &Event| {
        (&latest.client, &latest.app, latest.created_at) == (&event.client, &event.app, event.created_at)
    };
    let (counts, max_guests) = (&event.counts, event.terms.max_guests.get());
    holds(Part::Live, "an event stays of its client and app", latest.is_none_or(is_same))
        && holds(Part::Live, "an event has no more guests than places", counts.registrations <= max_guests)
        && holds(
            Part::Live,
            "an event has no more guests inside than guests",
            counts.checked_in <= counts.registrations,
        )
        && holds(
            Part::Live,
            "an event has no more marked guests than guests",
            counts.duplicates <= counts.registrations,
        )
        && holds(Part::Live, "an event has no more guests than scans", u64::from(counts.registrations) <= counts.scans)
        && holds(
            Part::Live,
            "scans that wait or are abandoned were counted",
            counts.abandoned + counts.pending <= counts.scans,
        )
}

impl Actor for EventActor {
    type Context = Context<Self>;
}

impl Supervised for EventActor {
    /// Drops the state, which a panic may have spoiled. The next question reads the store.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.latest = None;
        self.read_at = None;
        self.notified_at = None;
        self.notification_due = false;
        self.refreshing = false;
        self.outdated = false;
        self.following = false;
        self.waiting_readers.clear();
        self.reading = false;
    }
}

impl Handler<Inquiry<GetEvent>> for EventActor {
    type Result = ResponseActFuture<Self, Result<Option<Arc<Event>>, StoreError>>;

    fn handle(&mut self, Inquiry { question, origin }: Inquiry<GetEvent>, ctx: &mut Self::Context) -> Self::Result {
        if let Some(event) = self.recent_read().filter(|_| question.recent) {
            return Box::pin(std::future::ready(Ok(Some(event))).into_actor(self));
        }
        origin.in_scope(|| self.read(ctx, |_, event| event))
    }
}

impl Handler<Inquiry<WatchEvent>> for EventActor {
    type Result = ResponseActFuture<Self, Result<Option<EventWatch>, StoreError>>;

    fn handle(&mut self, Inquiry { origin, .. }: Inquiry<WatchEvent>, ctx: &mut Self::Context) -> Self::Result {
        self.begin_following(ctx);
        origin.in_scope(|| self.read(ctx, |actor, _| actor.latest.as_ref().map(watch::Sender::subscribe)))
    }
}

impl Handler<Refresh> for EventActor {
    type Result = ();

    fn handle(&mut self, Refresh { changed_event }: Refresh, ctx: &mut Self::Context) {
        if let Some(event) = changed_event {
            self.publish(&event, ctx);
        }
        self.refresh(self.notify_interval(), ctx);
    }
}

impl Handler<Deadline> for EventActor {
    type Result = ();

    fn handle(&mut self, _: Deadline, ctx: &mut Self::Context) {
        let now = self.context.clock.now();
        let end = self.latest.as_ref().map_or(now, |latest| latest.borrow().terms.expires_at);
        if now >= end {
            tracing::info!(event.id = %self.id, "event ended");
            ctx.stop();
        } else {
            // The end of the event was moved, here or on another node.
            ctx.notify_later(Deadline, end.since(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::event::EventCounts;
    use sakshi_domain::ids::{AppId, ClientId};
    use sakshi_domain::time::Timestamp;
    use sakshi_kit::records;
    use sakshi_trace::invariant::broken_by;

    use super::*;

    #[test]
    fn a_read_of_another_event_breaks_an_invariant() {
        let client = ClientId::generate();
        let id = EventId::generate(client.partition(), 0);
        let event = records::event(id, client, AppId::generate(), Timestamp::from_millis(0), Duration::from_secs(60));
        let counts =
            EventCounts { registrations: 10, duplicates: 9, checked_in: 10, scans: 13, abandoned: 2, pending: 11 };
        let broken_invariants = |counts| broken_by(|| _ = can_follow(Some(&event), &Event { counts, ..event.clone() }));
        assert_eq!(broken_invariants(counts), Vec::<&str>::new());
        for (counts, name) in [
            (EventCounts { registrations: 11, ..counts }, "an event has no more guests than places"),
            (EventCounts { checked_in: 11, ..counts }, "an event has no more guests inside than guests"),
            (EventCounts { duplicates: 11, ..counts }, "an event has no more marked guests than guests"),
            (EventCounts { scans: 9, abandoned: 0, ..counts }, "an event has no more guests than scans"),
            (EventCounts { pending: 12, ..counts }, "scans that wait or are abandoned were counted"),
        ] {
            assert_eq!(broken_invariants(counts), [name]);
        }
        let event_of_another_app = Event { app: AppId::generate(), ..event.clone() };
        assert_eq!(
            broken_by(|| _ = can_follow(Some(&event), &event_of_another_app)),
            ["an event stays of its client and app"]
        );
    }
}
