//! Use cases of events: creating, finding and changing one.

use std::sync::Arc;

use sakshi_domain::event::{Event, EventCounts, EventPatch, EventTerms};
use sakshi_domain::ids::{AppId, EventId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;
use sakshi_store::{CreateEvent, CreateEventOutcome, PatchEventOutcome};
use serde::Serialize;

use crate::authentication::Caller;
use crate::error::ServiceError;
use crate::idempotency::{Answered, IdempotentRequest, written};
use crate::service::Service;

/// Its word in what an idempotency key is good for.
pub const OPERATION: &str = "events";

/// Creates an event on these terms, unless that was done before under the same key. `answer` makes the answer to the caller.
///
/// # Errors
/// When it is not created.
pub async fn create_event<A: Serialize>(
    service: &Service,
    caller: Caller,
    terms: EventTerms,
    now: Timestamp,
    once: Option<IdempotentRequest>,
    answer: impl FnOnce(EventId) -> A,
) -> Result<Answered, ServiceError> {
    let id = service.events.new_id(&caller.client);
    let json = written(&answer(id))?;
    let event = Event { id, client: caller.client, app: caller.app.app_id.clone(), created_at: now, terms, counts: EventCounts::default() };
    let idempotency = once.map(|once| once.keep(&service.vault, &json, now));
    match service.store.create_event(CreateEvent { event, idempotency }).await? {
        CreateEventOutcome::Created => {
            tracing::info!(event.id = %id, "event created");
            Ok(Answered::New(json))
        }
        CreateEventOutcome::Replayed(sealed) => IdempotentRequest::replayed(once.as_ref(), &service.vault, &sealed),
        CreateEventOutcome::KeyReused => Err(ServiceError::IdempotencyKeyReused),
        CreateEventOutcome::ClientNotFound => Err(ServiceError::Unauthorized),
    }
}

/// The event with this id, if the app has it.
///
/// # Errors
/// [`ServiceError::NotFound`] otherwise.
pub async fn own_event(service: &Service, app: &AppId, id: &str) -> Result<Arc<Event>, ServiceError> {
    match service.events.look(event_id(id)?).await? {
        Some(event) if event.app == *app => Ok(event),
        _ => Err(ServiceError::NotFound("event")),
    }
}

/// Changes an event of this app. What is not acceptable of the change is told with `spelled`, which knows how its fields were spelled.
///
/// # Errors
/// [`ServiceError::Invalid`] with every field that is not acceptable; [`ServiceError::NotFound`] unless the app has such an event.
pub async fn change_event(
    service: &Service,
    app: &AppId,
    id: EventId,
    change: EventPatch,
    spelled: impl FnOnce(&Invalid) -> Invalid,
) -> Result<Event, ServiceError> {
    match service.events.patch(id, app.clone(), change).await? {
        PatchEventOutcome::Patched(event) => Ok(event),
        PatchEventOutcome::Refused(invalid) => Err(spelled(&invalid).into()),
        PatchEventOutcome::NotFound => Err(ServiceError::NotFound("event")),
    }
}

/// Reads the id of an event.
///
/// # Errors
/// [`ServiceError::NotFound`] for text that cannot be one.
pub fn event_id(text: &str) -> Result<EventId, ServiceError> {
    text.parse().map_err(|_| ServiceError::NotFound("event"))
}
