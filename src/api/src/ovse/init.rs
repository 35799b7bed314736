//! `POST /api/v1/nationalid-ovse/init`: opens a transaction and debits its credit.

use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest, HttpResponse};
use sakshi_service::service::Service;
use sakshi_service::transactions::{OPERATION, open_transaction};
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::idempotency;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::ovse::{InitRequest, InitResponse};

/// Opens a transaction.
///
/// # Errors
/// 400, 401, 402, 422, 429 and 503 of the error table; only an answer of 200 has cost a credit.
#[utoipa::path(
    post, path = "/api/v1/nationalid-ovse/init", tag = "OVSE", request_body = InitRequest,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses((status = 200, body = InitResponse, description = "The transaction is open and one credit was debited."),
              (status = 400, description = "Unknown claim, invalid channel, or another field that is not acceptable."),
              (status = 402, description = "Insufficient credits."),
              (status = 422, description = "The Idempotency-Key came before with another body."),
              (status = 429, description = "The app opens more transactions per second than it may.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn init(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.init.take(&caller.app.app_id)?;
    let once = idempotency::of(&request, &caller, OPERATION, &body.bytes)?;
    let asked: InitRequest = body.sent.request(service.rules.urls.at(service.clock.now()))?;
    let terms = asked.terms(request_id(&request));
    request.extensions_mut().insert(terms.request_id.clone());
    Ok(idempotency::answer(open_transaction(&service, caller, terms, once).await?))
}
