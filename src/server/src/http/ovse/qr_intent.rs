//! `POST /api/v1/nationalid-ovse/qr-intent`: a QR value for the identity app's own scanner.

use actix_web::HttpResponse;
use actix_web::web::Data;
use sakshi_actors::View;
use sakshi_domain::ids::TxnId;
use serde::Serialize;

use crate::http::body::Body;
use crate::http::called::Called;
use crate::http::error::ApiError;
use crate::http::fields::text;
use crate::http::rate::Rates;
use crate::http::requests::QrIntentRequest;
use crate::service::Service;

/// The value to draw.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QrIntentResponse {
    /// `{qr_host}/getIntent?value=<digits>`.
    qr_payload: String,
}

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
pub async fn qr_intent(called: Called<Body>, service: Data<Service>, rates: Data<Rates>) -> Result<HttpResponse, ApiError> {
    let Called { caller, sent: body } = called;
    rates.polls.take(&caller.app.app_id)?;
    let mut fields = body.fields;
    let id = fields.required("txnId", text(str::parse::<TxnId>));
    let id = fields.finish(id)?;
    let app = &caller.app.app_id;
    match service.transactions.look(id).await? {
        View::Pending(pending) if pending.app == *app => {
            let intent = service.agreement.intent(&pending, service.clock.now()).map_err(|error| ApiError::Internal(error.to_string()))?;
            Ok(HttpResponse::Ok().json(QrIntentResponse { qr_payload: service.agreement.qr_payload(&intent) }))
        }
        View::Expired(opened) if opened.app == *app => Err(ApiError::TransactionExpired),
        View::Completed(record) if record.opened.app == *app => Err(ApiError::AlreadyCompleted),
        _ => Err(ApiError::TransactionNotFound),
    }
}
