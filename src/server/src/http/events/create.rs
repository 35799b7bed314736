//! `POST /api/v1/nationalid-ovse/events`: creates an event and its printable URL.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::claims::ClaimSet;
use sakshi_domain::event::{Event, EventCounts, EventName, EventTerms, MaxGuests, check_end};
use sakshi_domain::ids::EventId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;
use sakshi_store::{CreateEvent, CreateEventOutcome};
use serde::{Deserialize, Serialize};

use super::timestamp;
use crate::http::body::Body;
use crate::http::called::Called;
use crate::http::error::ApiError;
use crate::http::idempotency::{OnceOnly, replayed};
use crate::http::language::LanguageField;
use crate::http::schema;
use crate::service::{GivenAddresses, Service};

/// What an organiser asks for.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
pub struct CreateEventRequest {
    /// 1 to 200 characters; shown to guests.
    #[schema(required = true, min_length = 1, max_length = 200)]
    name: Option<String>,
    /// What each guest is asked to share.
    #[schema(schema_with = schema::claims, required = true)]
    claims: Option<Vec<String>>,
    /// The language of the event's pages.
    #[schema(schema_with = schema::language, required = false)]
    language: Option<LanguageField>,
    /// Caps successful verifications, not scans.
    #[serde(alias = "maxGuests")]
    #[schema(required = true, minimum = 1, maximum = 1_000_000)]
    max_guests: Option<u64>,
    /// In the future, at most 366 days from now.
    #[serde(alias = "expiresAt")]
    #[schema(required = true, format = DateTime)]
    expires_at: Option<String>,
    /// Receives one webhook per registered guest.
    #[serde(alias = "webhookUrl")]
    webhook_url: Option<String>,
}

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
    params(("Idempotency-Key" = Option<String>, Header, description = "Repeats of the request under this key get the first answer for 24 hours.")),
    responses((status = 200, body = CreateEventResponse, description = "Print `qr_url` as a QR code.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn create(
    called: Called<Body<CreateEventRequest>>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let Called { caller, sent: body } = called;
    let once = OnceOnly::of(&request, &caller, "events", &body.bytes)?;
    let now = service.clock.now();
    let terms = body.value.into_terms(now, service.rules.addresses)?;
    let id = service.events.new_id(&caller.client);
    let answer = CreateEventResponse { event_id: id, qr_url: service.agreement.event_url(id) };
    let json = serde_json::to_vec(&answer).map_err(|error| ApiError::Internal(error.to_string()))?;
    let event = Event { id, client: caller.client, app: caller.app.app_id.clone(), created_at: now, terms, counts: EventCounts::default() };
    let idempotency = once.map(|once| once.keep(&service.vault, &json, now));
    match service.store.create_event(CreateEvent { event, idempotency }).await? {
        CreateEventOutcome::Created => {
            tracing::info!(event.id = %id, "event created");
            Ok(HttpResponse::Ok().content_type("application/json").body(json))
        }
        CreateEventOutcome::Replayed(sealed) => match once {
            Some(once) => Ok(replayed(once.reveal(&service.vault, &sealed)?)),
            None => Err(ApiError::Internal("a replay without a key".to_owned())),
        },
        CreateEventOutcome::KeyReused => Err(ApiError::IdempotencyKeyReused),
        CreateEventOutcome::ClientNotFound => Err(ApiError::Unauthorized),
    }
}

impl CreateEventRequest {
    fn into_terms(self, now: Timestamp, addresses: GivenAddresses) -> Result<EventTerms, Invalid> {
        let mut invalid = Invalid::none();
        let name = match self.name.as_deref() {
            Some(name) => invalid.check("name", EventName::parse(name)),
            None => invalid.check("name", Err("is required")),
        };
        let claims = match &self.claims {
            Some(claims) => ClaimSet::parse(claims).map_err(|problems| invalid.extend(problems)).ok(),
            None => invalid.check("claims", Err("is required")),
        };
        let language = LanguageField::read(self.language.as_ref(), &mut invalid);
        let max_guests = match self.max_guests {
            Some(count) => invalid.check("max_guests", MaxGuests::new(count)),
            None => invalid.check("max_guests", Err("is required")),
        };
        let expires_at = match self.expires_at.as_deref() {
            Some(text) => timestamp(&mut invalid, "expires_at", text).and_then(|end| invalid.check("expires_at", check_end(end, now))),
            None => invalid.check("expires_at", Err("is required")),
        };
        let webhook_url = self.webhook_url.as_deref().and_then(|text| invalid.check("webhook_url", addresses.webhook(text)));
        match (name, claims, language, max_guests, expires_at) {
            (Some(name), Some(claims), Some(language), Some(max_guests), Some(expires_at)) => {
                invalid.or_ok()?;
                Ok(EventTerms { name, claims, language, max_guests, expires_at, webhook_url, is_active: true })
            }
            _ => Err(invalid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_problem_of_an_event_is_reported_at_once() {
        let json =
            r#"{"name":"","claims":["shoe"],"language":"klingon","max_guests":0,"expires_at":"2020-01-01T00:00:00Z","webhook_url":"x"}"#;
        let request: CreateEventRequest = crate::http::body::parse(json.as_bytes()).unwrap();
        let now = Timestamp::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
        let refused = request.into_terms(now, GivenAddresses::PUBLIC).unwrap_err();
        let fields: Vec<&str> = refused.fields().iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["name", "claims[0]", "language", "max_guests", "expires_at", "webhook_url"]);
        let empty: CreateEventRequest = crate::http::body::parse(b"{}").unwrap();
        assert_eq!(empty.into_terms(now, GivenAddresses::PUBLIC).unwrap_err().fields().len(), 4);
    }
}
