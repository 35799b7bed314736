//! Use cases of events: create, find and change.

use std::sync::Arc;

use sakshi_domain::event::{Event, EventCounts, EventPatch, EventTerms};
use sakshi_domain::ids::{AppId, EventId};
use sakshi_store::{CreateEvent, CreateOutcome, PatchEventOutcome, has_tag};
use sakshi_wire::ReceivedObject;
use sakshi_wire::events::{CreateEventResponse, EventResponse, PatchEventRequest};

use crate::authentication::Caller;
use crate::idempotency::{CreationAnswer, IdempotentRequest};
use crate::{Service, ServiceError};

/// Name of the operation in the digest of a request with an idempotency key.
pub const OPERATION: &str = "events";

/// Creates an event with these terms, unless an earlier request under the same key has created it.
///
/// # Errors
/// Any [`ServiceError`]; the event is not created.
pub async fn create_event(
    service: &Service,
    caller: Caller,
    mut terms: EventTerms,
    idempotent: Option<IdempotentRequest>,
) -> Result<CreationAnswer<CreateEventResponse>, ServiceError> {
    let (id, now) = (service.events.new_id(&caller.client), service.clock.now());
    let answer = CreationAnswer::new(CreateEventResponse { event_id: id, qr_url: service.authority.event_url(id) })?;
    let app = caller.app.app_id.clone();
    let events_max = caller.limits.events_per_app.or(service.rules.events_per_app);
    terms.retention = caller.limits.retention;
    let event = Event {
        id,
        client: caller.client,
        app: app.clone(),
        created_at: now,
        terms,
        counts: EventCounts::default(),
        is_funded: true,
    };
    let idempotency = idempotent.map(|idempotent| idempotent.to_record(&service.vault, answer.json(), now));
    match service.store.create_event(CreateEvent { event, events_max, idempotency }).await? {
        CreateOutcome::Created => {
            tracing::info!(event.id = %id, app.id = %app, "event created");
            Ok(answer)
        }
        CreateOutcome::Replayed(sealed) => IdempotentRequest::replay(idempotent.as_ref(), &service.vault, &sealed),
        CreateOutcome::KeyReused => Err(ServiceError::IdempotencyKeyReused),
        CreateOutcome::ClientNotFound => Err(ServiceError::Unauthorized),
        CreateOutcome::LimitReached => Err(ServiceError::LIMIT_REACHED),
    }
}

/// Returns the event with this id, if the app has it.
///
/// # Errors
/// [`ServiceError::NotFound`] unless the app has such an event; any error of the store.
pub async fn own_event(service: &Service, app: &AppId, id: &str) -> Result<Arc<Event>, ServiceError> {
    match service.events.get(parse_event_id(id)?).await? {
        Some(event) if event.app == *app => Ok(event),
        _ => Err(ServiceError::NotFound("event")),
    }
}

/// Changes the sent fields of an event of this app.
///
/// # Errors
/// [`ServiceError::Invalid`] with every field that is not acceptable; [`ServiceError::EventChanged`] if the event's
/// terms have none of the entity tags in `only_if`; [`ServiceError::NotFound`] unless the app has such an event.
pub async fn change_event(
    service: &Service,
    app: &AppId,
    id: &str,
    body: ReceivedObject,
    only_if: Option<Vec<String>>,
) -> Result<Event, ServiceError> {
    let id = parse_event_id(id)?;
    let (request, spellings) = body.into_request_with_spellings::<PatchEventRequest>(service.request_context())?;
    if !request.read_only.is_empty() {
        let event =
            service.events.get(id).await?.filter(|event| event.app == *app).ok_or(ServiceError::NotFound("event"))?;
        if !has_tag(&event.terms, only_if.as_deref()) {
            return Err(ServiceError::EventChanged);
        }
        request.check_read_only(&event_response(service, &event)).map_err(|invalid| spellings.translate(&invalid))?;
    }
    match service.events.patch(id, app.clone(), EventPatch { only_if, ..request.patch() }).await? {
        PatchEventOutcome::Patched(event) => Ok(*event),
        PatchEventOutcome::Refused(invalid) => Err(spellings.translate(&invalid).into()),
        PatchEventOutcome::PreconditionFailed => Err(ServiceError::EventChanged),
        PatchEventOutcome::NotFound => Err(ServiceError::NotFound("event")),
    }
}

/// Builds the response with the event's current state, for its organiser.
#[must_use]
pub fn event_response(service: &Service, event: &Event) -> EventResponse {
    EventResponse::new(event, service.authority.event_addresses(event.id), service.clock.now())
}

fn parse_event_id(text: &str) -> Result<EventId, ServiceError> {
    text.parse().map_err(|_| ServiceError::NotFound("event"))
}
