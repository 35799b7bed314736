//! `PATCH /api/v1/nationalid-ovse/events/{eventId}`: disables, enables, raises the cap, extends.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use sakshi_domain::event::{EventName, EventPatch, MaxGuests};
use sakshi_domain::ids::EventId;
use sakshi_domain::invalid::Invalid;
use sakshi_store::PatchEventOutcome;
use serde::Deserialize;

use super::{EventResponse, nullable, timestamp};
use crate::http::body::Body;
use crate::http::called::Called;
use crate::http::error::ApiError;
use crate::service::{GivenAddresses, Service};

/// What is to change; an absent field stays as it is.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub struct PatchEventRequest {
    /// False disables the event at once, true enables it again.
    #[serde(default, alias = "isActive", deserialize_with = "nullable")]
    is_active: Option<Option<bool>>,
    /// At least the registration count.
    #[serde(default, alias = "maxGuests", deserialize_with = "nullable")]
    max_guests: Option<Option<u64>>,
    /// In the future, at most 366 days from now.
    #[serde(default, alias = "expiresAt", deserialize_with = "nullable")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<String>>,
    /// 1 to 200 characters.
    #[serde(default, deserialize_with = "nullable")]
    name: Option<Option<String>>,
    /// A new receiver; null for none.
    #[serde(default, alias = "webhookUrl", deserialize_with = "nullable")]
    webhook_url: Option<Option<String>>,
}

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
pub async fn patch(called: Called<Body<PatchEventRequest>>, path: Path<String>, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let Called { caller, sent: body } = called;
    let id: EventId = path.parse().map_err(|_| ApiError::NotFound("event"))?;
    let change = body.value.into_patch(service.rules.addresses)?;
    match service.events.patch(id, caller.app.app_id.clone(), change).await? {
        PatchEventOutcome::Patched(event) => {
            Ok(HttpResponse::Ok().json(EventResponse::new(&event, &service.agreement, service.clock.now())))
        }
        PatchEventOutcome::Refused(invalid) => Err(invalid.into()),
        PatchEventOutcome::NotFound => Err(ApiError::NotFound("event")),
    }
}

impl PatchEventRequest {
    fn into_patch(self, addresses: GivenAddresses) -> Result<EventPatch, Invalid> {
        let mut invalid = Invalid::none();
        let is_active = given(&mut invalid, "is_active", self.is_active);
        let max_guests =
            given(&mut invalid, "max_guests", self.max_guests).and_then(|count| invalid.check("max_guests", MaxGuests::new(count)));
        let expires_at = given(&mut invalid, "expires_at", self.expires_at).and_then(|text| timestamp(&mut invalid, "expires_at", &text));
        let name = given(&mut invalid, "name", self.name).and_then(|text| invalid.check("name", EventName::parse(&text)));
        let webhook_url = match self.webhook_url {
            None => None,
            Some(None) => Some(None),
            Some(Some(text)) => invalid.check("webhook_url", addresses.webhook(&text)).map(Some),
        };
        invalid.or_ok().map(|()| EventPatch { is_active, max_guests, expires_at, name, webhook_url })
    }
}

/// A field that may be absent, but not null.
fn given<T>(invalid: &mut Invalid, field: &str, value: Option<Option<T>>) -> Option<T> {
    match value {
        None => None,
        Some(None) => invalid.check(field, Err("must not be null")),
        Some(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<EventPatch, Invalid> {
        crate::http::body::parse::<PatchEventRequest>(json.as_bytes()).unwrap().into_patch(GivenAddresses::PUBLIC)
    }

    #[test]
    fn absent_means_unchanged_and_null_removes_the_webhook_alone() {
        assert_eq!(read("{}").unwrap(), EventPatch::default());
        assert_eq!(read(r#"{"webhook_url":null}"#).unwrap().webhook_url, Some(None));
        let refused = read(r#"{"name":null,"max_guests":null,"is_active":null,"expires_at":null}"#).unwrap_err();
        assert_eq!(refused.fields().len(), 4);
    }

    #[test]
    fn the_cap_and_the_end_are_read_in_both_spellings() {
        let patch = read(r#"{"maxGuests":12,"expiresAt":"2026-12-31T00:00:00Z","isActive":false}"#).unwrap();
        assert_eq!((patch.max_guests.unwrap().get(), patch.is_active), (12, Some(false)));
        assert!(crate::http::body::parse::<PatchEventRequest>(br#"{"cap":1}"#).is_err());
    }
}
