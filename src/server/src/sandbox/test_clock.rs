//! `POST /sandbox/transactions/{txnId}/expire`: ends the window of a transaction at once, so that a test need not wait
//! 15 minutes.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use sakshi_domain::ids::TxnId;
use sakshi_service::{Service, ServiceError, transactions};
use sakshi_web::error::ApiError;
use serde_json::json;

/// Ends the window, and responds once the identity app, pollers and the verify page see it as expired.
pub(super) async fn expire(path: Path<String>, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let id: TxnId = path.parse().map_err(|_| ApiError::Service(ServiceError::TransactionNotFound))?;
    let expired_at = transactions::expire(&service, id).await.map_err(ApiError::Service)?;
    Ok(HttpResponse::Ok().json(json!({ "success": true, "txnId": id, "expiresAt": expired_at })))
}
