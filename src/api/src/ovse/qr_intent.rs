//! `POST /api/v1/nationalid-ovse/qr-intent`: a QR value for the identity app's own scanner.

use actix_web::HttpResponse;
use actix_web::web::Data;
use sakshi_service::service::Service;
use sakshi_service::transactions;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::ovse::{QrIntentRequest, QrIntentResponse};

/// Signs the intent of a pending transaction afresh and encodes it for a QR code.
///
/// # Errors
/// 404 unless the app has such a transaction, 409 when it is completed, 410 when it has expired.
#[utoipa::path(
    post, path = "/api/v1/nationalid-ovse/qr-intent", tag = "OVSE", request_body = QrIntentRequest,
    responses((status = 200, body = QrIntentResponse, description = "Render the value as a QR code."),
              (status = 404, description = "No such transaction of this app."),
              (status = 409, description = "The transaction is completed."),
              (status = 410, description = "The transaction has expired.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn qr_intent(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.take(&caller.app.app_id)?;
    let asked: QrIntentRequest = body.sent.request(service.rules.urls.at(service.clock.now()))?;
    Ok(HttpResponse::Ok().json(transactions::qr_intent(&service, &caller.app, asked.txn_id).await?))
}
