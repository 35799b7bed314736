//! What the operator looks at: the supervision tree, and what became of a webhook.

use actix_web::{HttpResponse, web};
use sakshi_domain::ids::TxnId;
use sakshi_service::error::ServiceError;
use sakshi_web::error::ApiError;

use super::bearer::Operator;
use super::fields;

pub(super) async fn tree(operator: Operator) -> HttpResponse {
    HttpResponse::Ok().json((operator.0.tree)())
}

pub(super) async fn delivery(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let txn: TxnId = fields::id(&path, "delivery")?;
    let record = operator.0.store.load_delivery(txn.into()).await?;
    record.map(|record| HttpResponse::Ok().json(record)).ok_or(ApiError::Service(ServiceError::NotFound("delivery")))
}
