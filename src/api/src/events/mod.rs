//! Events for organisers (specification, "Event"): create, read, list and change; [`registrations`] lists the guests,
//! [`doors`] check them in.

pub(crate) mod doors;
pub(crate) mod registrations;

use actix_web::http::header::{ETAG, EntityTag, Header as _, IF_MATCH, IfMatch};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::event::Event;
use sakshi_domain::invalid::Invalid;
use sakshi_service::Service;
use sakshi_service::events::{OPERATION, change_event, create_event, event_response, own_event};
use sakshi_service::idempotency::{CreationAnswer, replay_refused};
use sakshi_store::event_tag;
use sakshi_web::authenticated::{Authenticated, AuthenticatedBody};
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::query::{Query, next_page, parse_page};
use sakshi_web::rate_limit::RateLimits;
use sakshi_web::subject::note_event;
use sakshi_wire::events::{CreateEventRequest, CreateEventResponse, EventResponse, EventsPage, PatchEventRequest};

/// Creates an event; costs nothing.
///
/// # Errors
/// 400 with every invalid field; 422 when the `Idempotency-Key` came with another body.
#[utoipa::path(
    post, path = "/api/v1/nationalid-ovse/events", tag = "Events", operation_id = "createEvent",
    request_body = CreateEventRequest,
    summary = "Create an event",
    description = "Costs nothing; each scan costs one credit. Print `qr_url` as a QR code, or show the page at the \
        event's `kiosk_url` on a screen.",
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = CreateEventResponse, description = "Created."))
)]
pub(crate) async fn create(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.orders.count(&request, &caller.client)?;
    let idempotent = idempotency::idempotent_request(&request, &caller, OPERATION, &body.bytes)?;
    let event = match body.object.into_request::<CreateEventRequest>(service.request_context()) {
        Ok(event) => event,
        Err(refusal) => {
            let answer = replay_refused::<CreateEventResponse>(&service, &caller, idempotent.as_ref(), refusal).await?;
            return Ok(idempotency::creation_response(answer));
        }
    };
    let creation = create_event(&service, caller, event.terms(service.rules.time_zone), idempotent).await?;
    if let CreationAnswer::New { answer, .. } = &creation {
        note_event(&request, answer.event_id);
    }
    Ok(idempotency::creation_response(creation))
}

/// Returns an event with its counts.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}", tag = "Events", operation_id = "getEvent",
    summary = "Get an event",
    description = "Includes the status and the counts of the event.",
    params(("eventId" = String, Path, description = "The `event_id` of `createEvent`.")),
    responses((status = 200, body = EventResponse, description = "The event.", headers(("ETag" = String,
        description = "Changes with the settings of the event, and not with its counts. \
            Send it as `If-Match` with a change."))),
              (status = 404, description = "The application has no such event."))
)]
pub(crate) async fn show(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Query::parse(request.query_string()).finish()?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    Ok(event_http_response(&service, &event))
}

/// Lists the app's events.
///
/// # Errors
/// 400 when the page is out of bounds.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events", tag = "Events", operation_id = "listEvents",
    summary = "List events",
    description = "Oldest first. Follow `next` until it is absent.",
    params(("page" = Option<u32>, Query, minimum = 1), ("page_size" = Option<u32>, Query, minimum = 1)),
    responses((status = 200, body = EventsPage, description = "A page of events."))
)]
pub(crate) async fn list(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.count(&request, &caller.app.app_id)?;
    let page = parse_page(request.query_string())?;
    let list = service.store.list_events(caller.app.app_id.clone(), page).await?;
    let events = list.items.iter().map(|event| event_response(&service, event)).collect();
    let next = next_page(request.path(), page, list.total);
    Ok(HttpResponse::Ok().json(EventsPage {
        page: page.page,
        page_size: page.page_size,
        total: list.total,
        events,
        next,
    }))
}

/// Changes an event. Every node has the change before the response is sent.
///
/// # Errors
/// 400 with every invalid field, 404 unless the app has such an event.
#[utoipa::path(
    patch, path = "/api/v1/nationalid-ovse/events/{eventId}", tag = "Events", operation_id = "updateEvent",
    request_body = PatchEventRequest,
    summary = "Change an event",
    description = "Changes the given fields. Every node has the change before the call returns. A whole response of \
        `getEvent` is accepted: unchanged read-only fields are ignored.",
    params(("eventId" = String, Path),
           ("If-Match" = Option<String>, Header, description = "The `ETag` of `getEvent`. The event is changed only if \
               it still has this tag. Guests do not change the tag.")),
    responses((status = 200, body = EventResponse, description = "The changed event.", headers(("ETag" = String,
        description = "Changes with the settings of the event, and not with its counts."))),
              (status = 404, description = "The application has no such event."))
)]
pub(crate) async fn patch(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    request: HttpRequest,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let event = change_event(&service, &caller.app.app_id, &path, body.object, if_match_tags(&request)?).await?;
    Ok(event_http_response(&service, &event))
}

/// Builds the response with an event, and with the entity tag of its terms.
fn event_http_response(service: &Service, event: &Event) -> HttpResponse {
    let tag = EntityTag::new_strong(event_tag(&event.terms));
    HttpResponse::Ok().insert_header((ETAG, tag.to_string())).json(event_response(service, event))
}

/// Returns the entity tags in `If-Match` (RFC 9110 §13.1.1), or `None` if any tag matches.
///
/// # Errors
/// 400 if the header is not a list of tags.
fn if_match_tags(request: &HttpRequest) -> Result<Option<Vec<String>>, ApiError> {
    if !request.headers().contains_key(IF_MATCH) {
        return Ok(None);
    }
    match IfMatch::parse(request) {
        Ok(IfMatch::Any) => Ok(None),
        // A weak tag matches nothing.
        Ok(IfMatch::Items(tags)) if !tags.is_empty() => {
            Ok(Some(tags.iter().filter(|tag| !tag.weak).map(|tag| tag.tag().to_owned()).collect()))
        }
        _ => {
            Err(ApiError::from(Invalid::one("If-Match", "must be * or entity tags, such as the `ETag` of `getEvent`")))
        }
    }
}
