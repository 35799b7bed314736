//! Webhook attempts and settings of the calling app, which only the operator reads and changes in production.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Json, Path};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::TxnId;
use sakshi_outbound::client::WebhookClient;
use sakshi_service::transactions::{self, await_outcome};
use sakshi_service::{Service, ServiceError};
use sakshi_web::authenticated::{Authenticated, AuthenticatedBody};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::tenancy::{AppResponse, PatchAppRequest};
use sakshi_wire::operator::views::{DeliveryResponse, FlowWebhook};
use serde_json::{Value, json};

/// Returns the webhook of one of the app's transactions.
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

/// Sends the webhook of a completed transaction again, with the same body. The response marks it as repeated.
/// Outside the sandbox no webhook is sent twice.
pub(super) async fn send_again(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    service: Data<Service>,
    webhooks: Data<Arc<WebhookClient>>,
) -> Result<Json<Value>, ApiError> {
    let id: TxnId = path.parse().map_err(|_| ServiceError::TransactionNotFound)?;
    let attempt = transactions::send_again(&service, &caller.app, id, &webhooks).await?.ok_or_else(|| {
        let message = "The transaction is pending: it has sent no webhook yet.".to_owned();
        ApiError::Other { status: StatusCode::CONFLICT, code: "not_completed", message }
    })?;
    Ok(Json(json!({ "repeated": true, "outcome": attempt.outcome.as_str(), "status": attempt.status })))
}

/// Returns the webhooks of one of the app's flows, in the order in which they were queued.
pub(super) async fn deliveries(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    service: Data<Service>,
) -> Result<Json<Value>, ApiError> {
    let id: FlowId = path.parse().map_err(|_| ServiceError::NotFound("flow"))?;
    let webhooks = service.store.flow_deliveries(id).await?.filter(|flow| flow.state.header().app == caller.app.app_id);
    let webhooks = webhooks.ok_or(ServiceError::NotFound("flow"))?.deliveries.into_iter().map(FlowWebhook::from);
    Ok(Json(json!({ "deliveries": webhooks.collect::<Vec<_>>() })))
}

/// Changes the settings of the app: the spelling of its payloads, and the URLs for wealth-data webhooks.
pub(super) async fn change_settings(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    service: Data<Service>,
) -> Result<Json<AppResponse>, ApiError> {
    let patch: PatchAppRequest = body.object.into_request(service.request_context())?;
    let app =
        service.store.patch_app(caller.app.app_id.clone(), patch.patch()).await?.ok_or(ServiceError::Unauthorized)?;
    tracing::info!(app.id = %app.app_id, "app changed");
    Ok(Json(app.into()))
}
