//! The handle to all events of the node.

use std::sync::Arc;

use sakshi_domain::event::{Event, EventPatch};
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_store::PatchEventOutcome;

use super::actor::EventActor;
use super::message::{EventWatch, LookEvent, PatchEvent, WatchEvent};
use super::shard::event_changed;
use crate::ask::Ask;
use crate::router::{AskError, ShardRouter};

/// Asks events on behalf of one worker.
#[derive(Clone, Debug)]
pub struct Events(pub(crate) ShardRouter<EventActor>);

impl Events {
    /// A fresh id whose event will live on this worker.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> EventId {
        EventId::generate(client.partition(), self.0.new_shard_byte())
    }

    /// The event as it is now, counts included; `None` when there is none.
    ///
    /// # Errors
    /// [`AskError`] when that cannot be told now.
    pub async fn look(&self, id: EventId) -> Result<Option<Arc<Event>>, AskError> {
        self.0.ask(id, Ask { id, question: LookEvent }).await
    }

    /// Follows the event; `None` when there is none.
    ///
    /// # Errors
    /// [`AskError`] when that cannot be told now.
    pub async fn watch(&self, id: EventId) -> Result<Option<EventWatch>, AskError> {
        self.0.ask(id, Ask { id, question: WatchEvent }).await
    }

    /// Changes the event.
    ///
    /// # Errors
    /// [`AskError`] when its fate is not known; the change may be asked for again.
    pub async fn patch(&self, id: EventId, app: AppId, patch: EventPatch) -> Result<PatchEventOutcome, AskError> {
        let outcome = self.0.ask(id, Ask { id, question: PatchEvent { app, patch } }).await?;
        if let PatchEventOutcome::Patched(event) = &outcome {
            event_changed(&self.0.shards, id, Some(event.terms.expires_at));
        }
        Ok(outcome)
    }
}
