//! `PATCH /api/v1/nationalid-ovse/events/{eventId}`: disables, enables, raises the cap, extends.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use sakshi_domain::event::{Event, EventName, EventPatch};
use sakshi_domain::ids::{AppId, EventId};
use sakshi_store::PatchEventOutcome;

use super::EventResponse;
use crate::http::body::Body;
use crate::http::called::Called;
use crate::http::error::ApiError;
use crate::http::fields::{Fields, Spellings, flag, text};
use crate::http::requests::PatchEventRequest;
use crate::http::terms::{max_guests, timestamp, webhook};
use crate::service::{GivenAddresses, Service};

/// Changes an event; every node knows before the answer leaves.
///
/// # Errors
/// 400 with every field that is not acceptable, 404 unless the app has such an event.
#[utoipa::path(
    patch, path = "/api/v1/nationalid-ovse/events/{eventId}", tag = "Events", request_body = PatchEventRequest,
    params(("eventId" = String, Path)),
    responses((status = 200, body = EventResponse, description = "The event as it is from now on."),
              (status = 404, description = "No such event of this app.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn patch(called: Called<Body>, path: Path<String>, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let Called { caller, sent: body } = called;
    let event = change(&service, &caller.app.app_id, &path, body.fields).await?;
    Ok(HttpResponse::Ok().json(EventResponse::new(&event, &service.agreement, service.clock.now())))
}

/// Changes an event of this app in these fields.
///
/// # Errors
/// As [`patch`].
pub(crate) async fn change(service: &Service, app: &AppId, path: &str, fields: Fields) -> Result<Event, ApiError> {
    let id: EventId = path.parse().map_err(|_| ApiError::NotFound("event"))?;
    let (change, spellings) = read(fields, service.rules.addresses)?;
    match service.events.patch(id, app.clone(), change).await? {
        PatchEventOutcome::Patched(event) => Ok(event),
        PatchEventOutcome::Refused(invalid) => Err(spellings.told(&invalid).into()),
        PatchEventOutcome::NotFound => Err(ApiError::NotFound("event")),
    }
}

/// Reads what is to change, and how it was spelled.
///
/// # Errors
/// Every field that is not acceptable, at once.
fn read(mut fields: Fields, addresses: GivenAddresses) -> Result<(EventPatch, Spellings), ApiError> {
    let patch = EventPatch {
        is_active: fields.changed("is_active", flag),
        max_guests: fields.changed("max_guests", max_guests),
        expires_at: fields.changed("expires_at", timestamp),
        name: fields.changed("name", text(EventName::parse)),
        webhook_url: fields.replaced("webhook_url", webhook(addresses)),
    };
    let spellings = fields.spellings();
    fields.finish(Some((patch, spellings)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(json: &str) -> Result<EventPatch, ApiError> {
        read(Fields::of(json.as_bytes())?, GivenAddresses::PUBLIC).map(|(patch, _)| patch)
    }

    #[test]
    fn absent_means_unchanged_and_null_removes_the_webhook_alone() {
        assert_eq!(changed("{}").unwrap(), EventPatch::default());
        assert_eq!(changed(r#"{"webhook_url":null}"#).unwrap().webhook_url, Some(None));
        let refused = changed(r#"{"name":null,"max_guests":null,"is_active":null,"expires_at":null}"#);
        assert!(matches!(refused, Err(ApiError::Validation(invalid)) if invalid.fields().len() == 4));
    }

    #[test]
    fn the_cap_and_the_end_are_read_in_both_spellings() {
        let patch = changed(r#"{"maxGuests":12,"expiresAt":"2026-12-31T00:00:00Z","isActive":false}"#).unwrap();
        assert_eq!((patch.max_guests.unwrap().get(), patch.is_active), (12, Some(false)));
        assert!(changed(r#"{"cap":1}"#).is_err());
    }
}
