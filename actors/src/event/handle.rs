//! The handle through which the use cases reach events.

use std::sync::Arc;

use sakshi_domain::event::{CheckIn, Event, EventPatch};
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_store::{CheckInOutcome, PatchEventOutcome};

use super::actor::{EventActor, EventContext};
use super::message::{EventWatch, GetEvent, WatchEvent};
use super::shard::notify_event;
use crate::router::{AskError, ShardRouter};

/// Sends questions about events to their shards, for one HTTP worker.
#[derive(Clone, Debug)]
pub struct Events {
    pub(crate) router: ShardRouter<EventActor>,
    pub(crate) context: Arc<EventContext>,
}

impl Events {
    /// Returns a new id, whose event this worker's shard will serve.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> EventId {
        EventId::generate(client.partition(), self.router.new_shard_byte())
    }

    /// Returns the current event with its counts; `None` if it does not exist.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn get(&self, id: EventId) -> Result<Option<Arc<Event>>, AskError> {
        self.router.ask_about(id, GetEvent { recent: false }).await
    }

    /// Returns the event for a page that decides nothing. While no limit is near, it may miss changes by other nodes in
    /// the last 300 ms. So a crowd of guests costs the store only a few reads a second.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn get_recent(&self, id: EventId) -> Result<Option<Arc<Event>>, AskError> {
        self.router.ask_about(id, GetEvent { recent: true }).await
    }

    /// Watches the event; `None` if it does not exist.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn watch(&self, id: EventId) -> Result<Option<EventWatch>, AskError> {
        self.router.ask_about(id, WatchEvent).await
    }

    /// Returns the latest event for a watcher. New credits of a client are not announced to watchers, so
    /// `reread_unfunded` reads an event of a client without credits again.
    pub async fn latest(&self, watch: &mut EventWatch, reread_unfunded: bool) -> Arc<Event> {
        let event = Arc::clone(&watch.borrow_and_update());
        if event.is_funded || !reread_unfunded {
            return event;
        }
        // If the store does not answer, the watched event is returned.
        self.get(event.id).await.ok().flatten().unwrap_or(event)
    }

    /// Changes the event of this app, once.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; the event may or may not have been changed.
    pub async fn patch(&self, id: EventId, app: AppId, patch: EventPatch) -> Result<PatchEventOutcome, AskError> {
        let _permits = self.router.admit(self.router.shards.index_of(&id))?;
        let store_call = self.context.store.patch_event(id, app, patch);
        let outcome =
            tokio::time::timeout(self.router.ask_timeout, store_call).await.map_err(|_| AskError::NoAnswer)??;
        if let PatchEventOutcome::Patched(event) = &outcome {
            tracing::info!(event.id = %id, event.status = event.status(self.context.clock.now()).as_str(),
                "event changed");
            notify_event(&self.router.shards, id, Some(Arc::new(Event::clone(event))));
        }
        Ok(outcome)
    }

    /// Checks in the guest with this number at the event, once.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; the guest may or may not have been checked in. The same check-in may be
    /// retried.
    pub async fn check_in(
        &self,
        id: EventId,
        guest_number: u64,
        check_in: CheckIn,
    ) -> Result<CheckInOutcome, AskError> {
        let _permits = self.router.admit(self.router.shards.index_of(&id))?;
        let store_call = self.context.store.check_in(id, guest_number, check_in);
        let outcome =
            tokio::time::timeout(self.router.ask_timeout, store_call).await.map_err(|_| AskError::NoAnswer)??;
        notify_event(&self.router.shards, id, None);
        Ok(outcome)
    }
}
