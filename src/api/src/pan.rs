//! `POST /api/v1/pan/verify` (specification, "Other shown endpoints"): asks the PAN source, and
//! answers at once.
//!
//! Nothing is opened, kept or debited. Number, name and date of birth are personal: they go to the
//! source and into no log.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::error::ServiceError;
use sakshi_service::pan::verify_pan;
use sakshi_service::service::Service;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::pan::{PanAnswer, PanRequest};

/// Verifies a PAN. That it is not known is an answer, with `status` `not_found`.
///
/// # Errors
/// 400 for a field that is not acceptable or a missing consent, and only then 422 for what is no PAN; 429, 501, 502 and 504.
#[utoipa::path(
    post, path = "/api/v1/pan/verify", tag = "PAN", operation_id = "verify_pan", request_body = PanRequest,
    responses((status = 200, body = PanAnswer, description = "What the source says of it; decide by `data.status`."),
              (status = 400, description = "A field is not acceptable, or there is no consent."),
              (status = 422, description = "The request is in order, and `pan` is no PAN."),
              (status = 429, description = "The app asks more often per second than it may."),
              (status = 501, description = "This service has no PAN source."),
              (status = 502, description = "The PAN source failed; the request may be repeated."),
              (status = 504, description = "The PAN source did not answer in time; the request may be repeated.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn verify(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.take(&caller.app.app_id)?;
    let source = service.upstreams.pan.as_ref().ok_or(ServiceError::NotOffered)?;
    let asked: PanRequest = body.sent.request(service.rules.urls.at(service.clock.now()))?;
    let named = asked.request_id.clone();
    let query = asked.query().map_err(|_| ServiceError::MalformedPan)?;
    let request_id = adopt_request_id(&request, named);
    Ok(HttpResponse::Ok().json(verify_pan(source, &query, request_id).await?))
}
