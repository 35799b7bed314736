//! `POST /api/v1/nationalid-ovse/events`: creates an event and its printable URL.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::events::{OPERATION, create_event};
use sakshi_service::service::Service;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_wire::events::{CreateEventRequest, CreateEventResponse};

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
    let asked: CreateEventRequest = body.sent.request(service.rules.urls.at(service.clock.now()))?;
    Ok(idempotency::answer(create_event(&service, caller, asked.terms(), once).await?))
}
