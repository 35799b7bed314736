//! `POST /api/v1/nationalid-ovse/events`: creates an event and its printable URL.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::event::{Event, EventCounts, EventName, EventTerms, check_end};
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{CreateEvent, CreateEventOutcome};
use serde::Serialize;

use crate::http::body::Body;
use crate::http::called::Called;
use crate::http::caller::Caller;
use crate::http::error::ApiError;
use crate::http::fields::{Fields, text};
use crate::http::idempotency::{Answered, OnceOnly};
use crate::http::requests::CreateEventRequest;
use crate::http::terms::{claims, language, max_guests, timestamp, webhook};
use crate::service::{GivenAddresses, Service};

/// Its word in what an idempotency key is good for.
pub(crate) const OPERATION: &str = "events";

/// The created event.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct CreateEventResponse {
    /// Identifies the event.
    #[schema(value_type = String)]
    event_id: EventId,
    /// To be printed as a QR code. With `/kiosk` appended it is a page for a screen at the entrance, which shows the places
    /// left when `?places=1` follows.
    qr_url: String,
}

/// Creates an event; costs nothing.
///
/// # Errors
/// 400 with every field that is not acceptable; 422 when the `Idempotency-Key` came with another body.
#[utoipa::path(
    post, path = "/api/v1/nationalid-ovse/events", tag = "Events", request_body = CreateEventRequest,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = CreateEventResponse, description = "Print `qr_url` as a QR code.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn create(called: Called<Body>, request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let Called { caller, sent: body } = called;
    let once = OnceOnly::of(&request, &caller, OPERATION, &body.bytes)?;
    let now = service.clock.now();
    let terms = read(body.fields, now, service.rules.addresses)?;
    Ok(begin(&service, caller, terms, now, once).await?.into())
}

/// Creates an event on these terms, unless that was done before under the same key.
///
/// # Errors
/// When it is not created.
pub(crate) async fn begin(
    service: &Service,
    caller: Caller,
    terms: EventTerms,
    now: Timestamp,
    once: Option<OnceOnly>,
) -> Result<Answered, ApiError> {
    let id = service.events.new_id(&caller.client);
    let answer = CreateEventResponse { event_id: id, qr_url: service.agreement.event_url(id) };
    let json = serde_json::to_vec(&answer).map_err(|error| ApiError::Internal(error.to_string()))?;
    let event = Event { id, client: caller.client, app: caller.app.app_id.clone(), created_at: now, terms, counts: EventCounts::default() };
    let idempotency = once.map(|once| once.keep(&service.vault, &json, now));
    match service.store.create_event(CreateEvent { event, idempotency }).await? {
        CreateEventOutcome::Created => {
            tracing::info!(event.id = %id, "event created");
            Ok(Answered::Now(json))
        }
        CreateEventOutcome::Replayed(sealed) => match once {
            Some(once) => once.reveal(&service.vault, &sealed).map(Answered::Before),
            None => Err(ApiError::Internal("a replay without a key".to_owned())),
        },
        CreateEventOutcome::KeyReused => Err(ApiError::IdempotencyKeyReused),
        CreateEventOutcome::ClientNotFound => Err(ApiError::Unauthorized),
    }
}

/// Reads what an organiser asks for.
///
/// # Errors
/// Every field that is not acceptable, at once.
pub(crate) fn read(mut fields: Fields, now: Timestamp, addresses: GivenAddresses) -> Result<EventTerms, ApiError> {
    let name = fields.required("name", text(EventName::parse));
    let claims = fields.required("claims", claims);
    let language = fields.optional("language", language).unwrap_or_default();
    let max_guests = fields.required("max_guests", max_guests);
    let expires_at = fields.required("expires_at", |value| Ok(check_end(timestamp(value)?, now)?));
    let webhook_url = fields.optional("webhook_url", webhook(addresses));
    let terms = name.zip(claims).zip(max_guests.zip(expires_at)).map(|((name, claims), (max_guests, expires_at))| EventTerms {
        name,
        claims,
        language,
        max_guests,
        expires_at,
        webhook_url,
        is_active: true,
    });
    fields.finish(terms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> Vec<String> {
        let now = Timestamp::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
        let read = read(Fields::of(json.as_bytes()).unwrap(), now, GivenAddresses::PUBLIC);
        let Err(ApiError::Validation(invalid)) = read else { panic!("{json}") };
        invalid.fields().iter().map(|problem| problem.field.clone()).collect()
    }

    #[test]
    fn every_problem_of_an_event_is_reported_at_once() {
        let json =
            r#"{"name":"","claims":["shoe"],"language":"klingon","max_guests":0,"expires_at":"2020-01-01T00:00:00Z","webhook_url":"x"}"#;
        assert_eq!(refused(json), ["name", "claims[0]", "language", "max_guests", "expires_at", "webhook_url"]);
        assert_eq!(refused("{}").len(), 4);
    }
}
