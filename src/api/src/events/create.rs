//! `POST /api/v1/nationalid-ovse/events`: creates an event and its printable URL.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::event::{EventName, EventTerms, check_end};
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_service::events::{OPERATION, create_event};
use sakshi_service::service::Service;
use sakshi_service::url_policy::UrlPolicy;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Fields, text};
use sakshi_web::idempotency;
use sakshi_web::terms::{claims, language, max_guests, timestamp, webhook};
use serde::Serialize;

use crate::requests::CreateEventRequest;

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
pub async fn create(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let once = idempotency::of(&request, &caller, OPERATION, &body.bytes)?;
    let now = service.clock.now();
    let terms = read(body.fields, now, service.rules.urls)?;
    Ok(idempotency::answer(create_event(&service, caller, terms, now, once, |id| answer(&service, id)).await?))
}

/// The answer to whoever created an event.
#[must_use]
pub fn answer(service: &Service, id: EventId) -> CreateEventResponse {
    CreateEventResponse { event_id: id, qr_url: service.authority.event_url(id) }
}

/// Reads what an organiser asks for.
///
/// # Errors
/// Every field that is not acceptable, at once.
pub fn read(mut fields: Fields, now: Timestamp, addresses: UrlPolicy) -> Result<EventTerms, ApiError> {
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
    use sakshi_service::error::ServiceError;

    use super::*;

    fn refused(json: &str) -> Vec<String> {
        let now = Timestamp::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
        let read = read(Fields::of(json.as_bytes()).unwrap(), now, UrlPolicy::PUBLIC);
        let Err(ApiError::Service(ServiceError::Invalid(invalid))) = read else { panic!("{json}") };
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
