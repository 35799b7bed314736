//! The handle through which the use cases reach events.

use std::sync::Arc;

use sakshi_domain::event::{CheckIn, Event, EventPatch};
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_store::{CheckInOutcome, PatchEventOutcome};

use super::actor::{EventActor, EventContext};
use super::message::{EventWatch, GetEvent, WatchEvent};
use super::shard::event_changed;
use crate::router::{AskError, ShardRouter};

/// Sends questions about events to their shards, on behalf of one HTTP worker.
#[derive(Clone, Debug)]
pub struct Events {
    pub(crate) router: ShardRouter<EventActor>,
    pub(crate) context: Arc<EventContext>,
}

impl Events {
    /// A new id, whose event will be served by this worker's shard.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> EventId {
        EventId::generate(client.partition(), self.router.new_shard_byte())
    }

    /// The event as it is now, counts included; `None` when there is none.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn get(&self, id: EventId) -> Result<Option<Arc<Event>>, AskError> {
        self.router.ask_about(id, GetEvent { recent: false }).await
    }

    /// The event for a page that decides nothing: while no limit is near, as another node may have changed it 300 ms ago; so a crowd of
    /// guests costs the store a few readings a second.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn get_recent(&self, id: EventId) -> Result<Option<Arc<Event>>, AskError> {
        self.router.ask_about(id, GetEvent { recent: true }).await
    }

    /// Follows the event; `None` when there is none.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn watch(&self, id: EventId) -> Result<Option<EventWatch>, AskError> {
        self.router.ask_about(id, WatchEvent).await
    }

    /// The event as a watcher sees it now. Nothing tells of credits that a client gets, so an event without any is read when `is_due`.
    pub async fn seen(&self, watch: &mut EventWatch, is_due: bool) -> Arc<Event> {
        let event = Arc::clone(&watch.borrow_and_update());
        if event.is_funded || !is_due {
            return event;
        }
        // If the store cannot answer, the last value stays.
        self.get(event.id).await.ok().flatten().unwrap_or(event)
    }

    /// Changes the event of this app, once.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; the event may then have been changed or not.
    pub async fn patch(&self, id: EventId, app: AppId, patch: EventPatch) -> Result<PatchEventOutcome, AskError> {
        let _permits = self.router.admit(self.router.shards.index_of(&id))?;
        let change = self.context.store.patch_event(id, app, patch);
        let outcome = tokio::time::timeout(self.router.ask_timeout, change).await.map_err(|_| AskError::NoAnswer)??;
        if let PatchEventOutcome::Patched(event) = &outcome {
            tracing::info!(event.id = %id, event.status = event.status(self.context.clock.now()).as_str(), "event changed");
            event_changed(&self.router.shards, id, Some(Arc::new(Event::clone(event))));
        }
        Ok(outcome)
    }

    /// Checks in a guest, once.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; the guest may then have been checked in or not. The same check-in may be tried again.
    pub async fn check_in(&self, id: EventId, number: u64, check_in: CheckIn) -> Result<CheckInOutcome, AskError> {
        let _permits = self.router.admit(self.router.shards.index_of(&id))?;
        let step = self.context.store.check_in(id, number, check_in);
        let outcome = tokio::time::timeout(self.router.ask_timeout, step).await.map_err(|_| AskError::NoAnswer)??;
        event_changed(&self.router.shards, id, None);
        Ok(outcome)
    }
}
