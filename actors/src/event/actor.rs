//! The event actor: a live copy of one event for those who look at it and watch it.
//!
//! It decides nothing. Whether a guest finds a place is decided by the store in the step that
//! takes it; guests do not queue here, or one event's storm would wait for one commit after the
//! other. The actor orders changes by the organiser, tells watchers what happens, coalescing many
//! guests into few readings, and ends with the event.

use std::sync::Arc;
use std::time::Duration;

use actix::{
    Actor, ActorContext as _, ActorFutureExt as _, AsyncContext as _, AtomicResponse, Context, Handler, Supervised, WrapFuture as _,
};
use sakshi_domain::clock::Clock;
use sakshi_domain::event::Event;
use sakshi_domain::ids::EventId;
use sakshi_store::{PatchEventOutcome, Store, StoreError};
use tokio::sync::watch;

use super::message::{EventView, EventWatch, LookEvent, PatchEvent, Refresh, WatchEvent};
use crate::registry::Deadline;

/// Watchers learn of changes at most this often.
const COALESCE: Duration = Duration::from_millis(200);
/// How long a change by another node may go unnoticed when its notice is lost.
const RECHECK: Duration = Duration::from_secs(5);

/// One live event.
#[derive(Debug)]
pub(crate) struct EventActor {
    id: EventId,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// The last reading; what watchers see.
    seen: Option<watch::Sender<Arc<Event>>>,
    refreshing: bool,
}

type Reply<T> = AtomicResponse<EventActor, Result<T, StoreError>>;

impl EventActor {
    /// An actor for an event that was just read or created.
    pub(crate) fn new(event: Arc<Event>, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { id: event.id, store, clock, seen: Some(watch::Sender::new(event)), refreshing: false }
    }

    /// Takes over a reading and tells watchers when it differs from the last.
    fn saw(&mut self, event: &Arc<Event>) {
        match &self.seen {
            Some(seen) => {
                seen.send_if_modified(|known| {
                    let changed = known != event;
                    if changed {
                        *known = Arc::clone(event);
                    }
                    changed
                });
            }
            None => self.seen = Some(watch::Sender::new(Arc::clone(event))),
        }
    }

    /// Reads the event soon, if anybody watches it.
    fn refresh(&mut self, ctx: &mut Context<Self>) {
        let watched = self.seen.as_ref().is_some_and(|seen| seen.receiver_count() > 0);
        if !watched || self.refreshing {
            return;
        }
        self.refreshing = true;
        ctx.run_later(COALESCE, |actor, ctx| {
            let load = actor.store.load_event(actor.id);
            ctx.spawn(load.into_actor(actor).map(|loaded, actor, _| {
                actor.refreshing = false;
                if let Ok(Some(event)) = loaded {
                    actor.saw(&Arc::new(event));
                }
            }));
        });
    }

    /// Reads the event, in turn with everything else that is asked of it.
    fn read<T: 'static>(&self, then: impl FnOnce(&mut Self, Option<Arc<Event>>) -> T + 'static) -> Reply<T> {
        let load = self.store.load_event(self.id);
        AtomicResponse::new(Box::pin(load.into_actor(self).map(move |loaded, actor, ctx| {
            let event = loaded?.map(Arc::new);
            match &event {
                Some(event) => actor.saw(event),
                // It was swept: nobody needs this actor any more.
                None => ctx.stop(),
            }
            Ok(then(actor, event))
        })))
    }
}

impl Actor for EventActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if self.store.changes().is_some() {
            // What happens on other nodes is announced; a notice that was lost costs this long.
            ctx.run_interval(RECHECK, |actor, ctx| actor.refresh(ctx));
        }
    }
}

impl Supervised for EventActor {
    /// What a panic left behind is not trusted: the next question reads the store.
    fn restarting(&mut self, _: &mut Self::Context) {
        self.seen = None;
        self.refreshing = false;
    }
}

impl Handler<LookEvent> for EventActor {
    type Result = Reply<EventView>;

    fn handle(&mut self, _: LookEvent, _: &mut Self::Context) -> Self::Result {
        self.read(|_, event| event.map_or(EventView::Unknown, EventView::Known))
    }
}

impl Handler<WatchEvent> for EventActor {
    type Result = Reply<Option<EventWatch>>;

    fn handle(&mut self, _: WatchEvent, _: &mut Self::Context) -> Self::Result {
        self.read(|actor, _| actor.seen.as_ref().map(watch::Sender::subscribe))
    }
}

impl Handler<PatchEvent> for EventActor {
    type Result = Reply<PatchEventOutcome>;

    fn handle(&mut self, PatchEvent { app, patch }: PatchEvent, _: &mut Self::Context) -> Self::Result {
        let change = self.store.patch_event(self.id, app, patch);
        AtomicResponse::new(Box::pin(change.into_actor(self).map(|outcome, actor, _| {
            if let Ok(PatchEventOutcome::Patched(event)) = &outcome {
                tracing::info!(event.id = %actor.id, event.status = event.status(actor.clock.now()).as_str(), "event changed");
                actor.saw(&Arc::new(event.clone()));
            }
            outcome
        })))
    }
}

impl Handler<Refresh> for EventActor {
    type Result = ();

    fn handle(&mut self, _: Refresh, ctx: &mut Self::Context) {
        self.refresh(ctx);
    }
}

impl Handler<Deadline> for EventActor {
    type Result = ();

    fn handle(&mut self, _: Deadline, ctx: &mut Self::Context) {
        let now = self.clock.now();
        let end = self.seen.as_ref().map_or(now, |seen| seen.borrow().terms.expires_at);
        if now >= end {
            tracing::info!(event.id = %self.id, "event ended");
            ctx.stop();
        } else {
            // Its end was moved, here or on another node.
            ctx.notify_later(Deadline, end.since(now));
        }
    }
}
