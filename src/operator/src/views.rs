//! What the operator looks at: the supervision tree, events with their guests, how a flow stands, what became of webhooks, and
//! where those of an app go. Nothing of what was reported.

use actix_web::web::Json;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, TxnId};
use sakshi_service::ServiceError;
use sakshi_store::FlowDeliveries;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::views::{AppEvent, AppEventsPage, DeliveryResponse, FlowResponse, TreeNode, WebhookOrigin, WebhookOrigins};

use super::arguments::{Id, Paged};
use super::bearer::Operator;

pub(super) async fn tree(Operator(deps): Operator) -> Json<TreeNode> {
    Json((deps.tree)())
}

pub(super) async fn delivery(Operator(deps): Operator, Id(txn): Id<TxnId>) -> Result<Json<DeliveryResponse>, ApiError> {
    let record = deps.store.load_delivery(txn.into()).await?;
    Ok(Json(record.ok_or(ServiceError::NotFound("delivery"))?.into()))
}

pub(super) async fn deliveries(Operator(deps): Operator, Id(flow_id): Id<FlowId>) -> Result<Json<FlowResponse>, ApiError> {
    let found = deps.store.flow_deliveries(flow_id).await?.ok_or(ServiceError::NotFound("flow"))?;
    let FlowDeliveries { state, kept_until, deliveries } = found;
    let opened = state.header();
    Ok(Json(FlowResponse {
        flow_id,
        kind: state.kind().into(),
        state: state.status().into(),
        app_id: opened.app.clone(),
        client_id: opened.client.clone(),
        request_id: opened.request_id.clone(),
        opened_at: opened.opened_at,
        kept_until,
        deliveries: deliveries.into_iter().map(Into::into).collect(),
    }))
}

/// Scheme, host and port alone: the rest of a URL may hold a secret of the client's.
pub(super) async fn webhook_urls(Operator(deps): Operator, Id(app): Id<AppId>) -> Result<Json<WebhookOrigins>, ApiError> {
    let urls = deps.store.webhook_urls(app).await?.ok_or(ServiceError::NotFound("app"))?;
    let webhook_urls = urls.iter().map(|(api_type, url)| WebhookOrigin { api_type, origin: url.origin() }).collect();
    Ok(Json(WebhookOrigins { webhook_urls }))
}

pub(super) async fn events(Operator(deps): Operator, Id(app): Id<AppId>, Paged(page): Paged) -> Result<Json<AppEventsPage>, ApiError> {
    deps.store.load_app(app.clone()).await?.ok_or(ServiceError::NotFound("app"))?;
    let found = deps.store.list_events(app, page).await?;
    let now = deps.clock.now();
    let events = found.items.iter().map(|event| AppEvent::new(event, now)).collect();
    Ok(Json(AppEventsPage { page: page.page, page_size: page.page_size, total: found.total, events }))
}
