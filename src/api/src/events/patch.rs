//! `PATCH /api/v1/nationalid-ovse/events/{eventId}`: disables, enables, raises the cap, extends.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use sakshi_domain::event::{Event, EventName, EventPatch};
use sakshi_domain::ids::AppId;
use sakshi_service::events::{change_event, event_id};
use sakshi_service::service::Service;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Fields, Spellings, flag, text};
use sakshi_web::terms::{max_guests, timestamp, webhook};

use super::EventResponse;
use crate::requests::PatchEventRequest;

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
pub async fn patch(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let event = change(&service, &caller.app.app_id, &path, body.fields).await?;
    Ok(HttpResponse::Ok().json(EventResponse::new(&event, &service.authority, service.clock.now())))
}

/// Changes an event of this app in these fields.
///
/// # Errors
/// As [`patch`].
pub async fn change(service: &Service, app: &AppId, path: &str, fields: Fields) -> Result<Event, ApiError> {
    let id = event_id(path)?;
    let (change, spellings) = read(fields, service.rules.urls)?;
    Ok(change_event(service, app, id, change, |invalid| spellings.told(invalid)).await?)
}

/// Reads what is to change, and how it was spelled.
///
/// # Errors
/// Every field that is not acceptable, at once.
fn read(mut fields: Fields, addresses: UrlPolicy) -> Result<(EventPatch, Spellings), ApiError> {
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
    use sakshi_service::error::ServiceError;

    use super::*;

    fn changed(json: &str) -> Result<EventPatch, ApiError> {
        read(Fields::of(json.as_bytes())?, UrlPolicy::PUBLIC).map(|(patch, _)| patch)
    }

    #[test]
    fn absent_means_unchanged_and_null_removes_the_webhook_alone() {
        assert_eq!(changed("{}").unwrap(), EventPatch::default());
        assert_eq!(changed(r#"{"webhook_url":null}"#).unwrap().webhook_url, Some(None));
        let refused = changed(r#"{"name":null,"max_guests":null,"is_active":null,"expires_at":null}"#);
        assert!(matches!(refused, Err(ApiError::Service(ServiceError::Invalid(invalid))) if invalid.fields().len() == 4));
    }

    #[test]
    fn the_cap_and_the_end_are_read_in_both_spellings() {
        let patch = changed(r#"{"maxGuests":12,"expiresAt":"2026-12-31T00:00:00Z","isActive":false}"#).unwrap();
        assert_eq!((patch.max_guests.unwrap().get(), patch.is_active), (12, Some(false)));
        assert!(changed(r#"{"cap":1}"#).is_err());
    }
}
