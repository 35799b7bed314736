//! Verifications with a synchronous answer (specification, "What the service does" 2). One handler serves all kinds of
//! the table.
//!
//! Nothing is opened or debited, and only the consent is stored. Numbers and names are personal data: only the source
//! gets them, no log does.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::checks::CHECKS;
use sakshi_service::checks::verify as run_check;
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::AuthenticatedBody;
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

/// Verifies a number. The path of the request selects the kind of number.
///
/// # Errors
/// 400 for an invalid field or a missing consent; 422 for a number of the wrong form in a request that is valid
/// otherwise; 429, 501, 502 and 504.
pub(crate) async fn verify(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.count(&request, &caller.app.app_id)?;
    rates.orders.count(&request, &caller.client)?;
    let pattern = request.match_pattern();
    let check = CHECKS.iter().find(|check| pattern.as_deref() == Some(check.path)).ok_or(ServiceError::NotOffered)?;
    let answer = run_check(&service, &caller, check, body.object, |id| adopt_request_id(&request, id)).await?;
    Ok(HttpResponse::Ok().json(answer))
}
