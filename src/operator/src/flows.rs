//! `/admin/v1/flows/{flow_id}/deliveries` and `/admin/v1/apps/{app_id}/webhook-urls`: how a flow
//! stands, what became of its webhooks, and where those of an app go. Nothing of what was reported.

use actix_web::{HttpResponse, web};
use sakshi_domain::delivery::FlowDelivery;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::AppId;
use sakshi_service::error::ServiceError;
use sakshi_store::FlowDeliveries;
use sakshi_web::error::ApiError;
use serde_json::{Value, json};

use super::bearer::Operator;
use super::fields;

pub(super) async fn deliveries(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let id: FlowId = fields::id(&path, "flow")?;
    let found = operator.0.store.flow_deliveries(id).await?.ok_or(ServiceError::NotFound("flow"))?;
    let FlowDeliveries { state, kept_until, deliveries } = found;
    let opened = state.header();
    Ok(HttpResponse::Ok().json(json!({
        "flow_id": id, "kind": state.kind(), "state": state.status(), "app_id": opened.app, "client_id": opened.client,
        "request_id": opened.request_id, "opened_at": opened.opened_at, "kept_until": kept_until,
        "deliveries": deliveries.iter().map(row).collect::<Vec<_>>(),
    })))
}

fn row(queued: &FlowDelivery) -> Value {
    let FlowDelivery { webhook, tells, delivery } = queued;
    let state = match (&delivery.attempt, delivery.claimed_at) {
        (Some(attempt), _) => attempt.outcome.as_str(),
        (None, Some(_)) => "under_way",
        (None, None) => "waiting",
    };
    json!({ "id": delivery.id, "tells": tells, "state": state, "status": delivery.attempt.and_then(|attempt| attempt.status),
        "duration_ms": delivery.attempt.map(|attempt| attempt.duration_ms), "origin": delivery.origin,
        "queued_at": delivery.queued_at, "claimed_at": delivery.claimed_at, "webhook": webhook })
}

/// Scheme, host and port alone: the rest of a URL may hold a secret of the client's.
pub(super) async fn webhook_urls(operator: Operator, path: web::Path<String>) -> Result<HttpResponse, ApiError> {
    let app: AppId = fields::id(&path, "app")?;
    let urls = operator.0.store.webhook_urls(app).await?.ok_or(ServiceError::NotFound("app"))?;
    let rows: Vec<Value> = urls.iter().map(|(api_type, url)| json!({ "apiType": api_type, "origin": url.origin() })).collect();
    Ok(HttpResponse::Ok().json(json!({ "webhook_urls": rows })))
}
