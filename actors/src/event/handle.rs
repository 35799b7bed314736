//! The handle through which the use cases reach events.

use std::sync::Arc;

use sakshi_domain::event::{Event, EventPatch};
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_store::PatchEventOutcome;

use super::actor::EventActor;
use super::message::{EventWatch, GetEvent, PatchEvent, WatchEvent};
use super::shard::event_changed;
use crate::router::{AskError, ShardRouter};

/// Sends questions about events to their shards, on behalf of one HTTP worker.
#[derive(Clone, Debug)]
pub struct Events(pub(crate) ShardRouter<EventActor>);

impl Events {
    /// A new id, whose event will be served by this worker's shard.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> EventId {
        EventId::generate(client.partition(), self.0.new_shard_byte())
    }

    /// The event as it is now, counts included; `None` when there is none.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn get(&self, id: EventId) -> Result<Option<Arc<Event>>, AskError> {
        self.0.ask_about(id, GetEvent).await
    }

    /// Follows the event; `None` when there is none.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn watch(&self, id: EventId) -> Result<Option<EventWatch>, AskError> {
        self.0.ask_about(id, WatchEvent).await
    }

    /// Changes the event of this app.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; the event may then have been changed or not, and may be changed again.
    pub async fn patch(&self, id: EventId, app: AppId, patch: EventPatch) -> Result<PatchEventOutcome, AskError> {
        let outcome = self.0.ask_about(id, PatchEvent { app, patch }).await?;
        if let PatchEventOutcome::Patched(event) = &outcome {
            event_changed(&self.0.shards, id, Some(event.terms.expires_at));
        }
        Ok(outcome)
    }
}
