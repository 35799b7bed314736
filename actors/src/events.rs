//! The door to all events of the node.

use std::sync::Arc;

use sakshi_domain::event::EventPatch;
use sakshi_domain::ids::{AppId, ClientId, EventId};
use sakshi_domain::time::Timestamp;
use sakshi_store::PatchEventOutcome;

use crate::door::{AskError, Door, Shards};
use crate::event::{EventView, EventWatch, LookEvent, PatchEvent, WatchEvent};
use crate::registry::{Ask, EventRegistry, Touched};

/// Asks events on behalf of one worker.
#[derive(Clone, Debug)]
pub struct Events {
    pub(crate) door: Door<EventRegistry>,
    pub(crate) local: usize,
}

impl Events {
    /// A fresh id whose event will live on this worker.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> EventId {
        EventId::generate(client.partition(), self.door.shards.shard_byte_of(self.local))
    }

    /// How the event stands, counts included.
    ///
    /// # Errors
    /// [`AskError`] when that cannot be told now.
    pub async fn look(&self, id: EventId) -> Result<EventView, AskError> {
        self.door.ask(id, Ask { id, question: LookEvent }).await
    }

    /// Follows the event; `None` when there is none.
    ///
    /// # Errors
    /// [`AskError`] when that cannot be told now.
    pub async fn watch(&self, id: EventId) -> Result<Option<EventWatch>, AskError> {
        self.door.ask(id, Ask { id, question: WatchEvent }).await
    }

    /// Changes the event.
    ///
    /// # Errors
    /// [`AskError`] when its fate is not known; the change may be asked for again.
    pub async fn patch(&self, id: EventId, app: AppId, patch: EventPatch) -> Result<PatchEventOutcome, AskError> {
        let outcome = self.door.ask(id, Ask { id, question: PatchEvent { app, patch } }).await?;
        if let PatchEventOutcome::Patched(event) = &outcome {
            touch(&self.door.shards, id, Some(event.terms.expires_at));
        }
        Ok(outcome)
    }
}

/// Tells an event's actor, if it is live, that something happened.
pub(crate) fn touch(shards: &Arc<Shards<EventRegistry>>, id: EventId, end: Option<Timestamp>) {
    if let Some(shard) = shards.get(shards.index_of(id)) {
        shard.do_send(Touched { id, end });
    }
}
