//! `POST /api/v1/pan/verify` (specification, "Other shown endpoints"): asks the PAN source, and
//! answers at once.
//!
//! Nothing is opened, kept or debited. Number, name and date of birth are personal: they go to the
//! source and into no log.

use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use sakshi_domain::pan::{PanDraft, PanQuery, PanRefusal, PanStatus};
use sakshi_domain::payload::envelope::Answer;
use sakshi_domain::request_id::RequestId;
use sakshi_outbound::upstream::pan;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::fields::{Fields, text};
use sakshi_web::rate_limit::RateLimits;

use crate::requests::PanRequest;
use crate::schema::PanAnswer;

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
    let (query, request_id) = read(body.fields, request_id(&request))?;
    request.extensions_mut().insert(request_id.clone());
    let result = pan::verify(source, &query).await.map_err(ServiceError::Source)?;
    metrics::counter!("sakshi_pan_verifications_total", "status" => result.status.as_str()).increment(1);
    Ok(HttpResponse::Ok().json(Answer::ok(message(result.status), &request_id, result)))
}

const fn message(status: PanStatus) -> &'static str {
    match status {
        PanStatus::Valid => "PAN verified",
        PanStatus::Invalid => "PAN is not in use",
        PanStatus::NotFound => "PAN not found",
    }
}

/// Reads what a client asks for.
///
/// # Errors
/// Every field that is not acceptable, at once; then a PAN that is none.
fn read(mut fields: Fields, minted: RequestId) -> Result<(PanQuery, RequestId), ApiError> {
    let draft = PanDraft {
        pan: fields.text("pan"),
        consent: fields.text("consent"),
        consent_text: fields.text("consent_text"),
        name_as_per_pan: fields.text("name_as_per_pan"),
        date_of_birth: fields.text("date_of_birth"),
    };
    let request_id = fields.optional("request_id", text(RequestId::parse)).unwrap_or(minted);
    let query = match draft.check() {
        Ok(query) => Some(Ok(query)),
        Err(PanRefusal::Malformed) => Some(Err(ApiError::Service(ServiceError::MalformedPan))),
        Err(PanRefusal::Invalid(invalid)) => fields.agreed(Err(invalid)),
    };
    Ok((fields.finish(query)??, request_id))
}
