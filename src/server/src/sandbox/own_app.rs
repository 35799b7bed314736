//! What only the operator sees and sets in production, for the calling app alone: the attempts of its webhooks, and its settings.

use std::time::Duration;

use actix_web::web::{Data, Json, Path};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::TxnId;
use sakshi_service::transactions::await_outcome;
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::{Authenticated, AuthenticatedBody};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::tenancy::{AppResponse, PatchAppRequest};
use sakshi_wire::operator::views::{DeliveryResponse, FlowWebhook};
use serde_json::{Value, json};

/// The webhook of a transaction of the app.
pub(super) async fn delivery(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    service: Data<Service>,
) -> Result<Json<DeliveryResponse>, ApiError> {
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    match await_outcome(&service, &caller, id, Duration::ZERO).await {
        Ok(_) | Err(ServiceError::TransactionExpired) => {}
        Err(error) => return Err(error.into()),
    }
    let record = service.store.load_delivery(id.into()).await?;
    Ok(Json(record.ok_or(ServiceError::NotFound("delivery"))?.into()))
}

/// The webhooks of a flow of the app, in the order in which they were queued.
pub(super) async fn deliveries(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    service: Data<Service>,
) -> Result<Json<Value>, ApiError> {
    let id: FlowId = path.parse().map_err(|_| ServiceError::NotFound("flow"))?;
    let found = service.store.flow_deliveries(id).await?.filter(|flow| flow.state.header().app == caller.app.app_id);
    let found = found.ok_or(ServiceError::NotFound("flow"))?.deliveries.into_iter().map(FlowWebhook::from);
    Ok(Json(json!({ "deliveries": found.collect::<Vec<_>>() })))
}

/// Changes the settings of the app: how its payloads are spelled, and where the webhooks of wealth data go.
pub(super) async fn change(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    service: Data<Service>,
) -> Result<Json<AppResponse>, ApiError> {
    let asked: PatchAppRequest = body.sent.request(service.request_context())?;
    let app = service.store.patch_app(caller.app.app_id.clone(), asked.patch()).await?.ok_or(ServiceError::Unauthorized)?;
    tracing::info!(app.id = %app.app_id, "app changed");
    Ok(Json(app.into()))
}
