//! The operator's views: the supervision tree, events with their guests, the state of flows, outcomes of webhooks, and
//! an app's webhook URLs. Reported content is never shown.

use actix_web::web::Json;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, TxnId};
use sakshi_domain::limits::PAGE_SIZE_MAX;
use sakshi_domain::refused_request::RefusedRequest;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::App;
use sakshi_service::ServiceError;
use sakshi_store::{FlowDeliveries, PageRequest, Store, TransactionRecord};
use sakshi_web::error::ApiError;
use sakshi_wire::operator::nodes::NodesResponse;
use sakshi_wire::operator::views::{
    AppEvent, AppEventsPage, DeliveryResponse, FlowResponse, RefusedRequestResponse, RefusedRequests,
    TransactionResponse, TreeNode, WebhookOrigin, WebhookOrigins,
};

use super::arguments::{Id, Paged};
use super::bearer::Operator;

pub(super) async fn tree(Operator(deps): Operator) -> Json<TreeNode> {
    Json((deps.tree)())
}

pub(super) async fn nodes(Operator(deps): Operator) -> Json<NodesResponse> {
    Json(deps.nodes().await)
}

/// Returns the state of a transaction. Shared data stays encrypted.
pub(super) async fn transaction(
    Operator(deps): Operator,
    Id(txn_id): Id<TxnId>,
) -> Result<Json<TransactionResponse>, ApiError> {
    let record = deps.store.load_transaction(txn_id).await?.ok_or(ServiceError::TransactionNotFound)?;
    let delivery = deps.store.load_delivery(txn_id.into()).await?;
    let (status, opened, completion) = match record {
        TransactionRecord::Pending(opened) => ("pending", opened, None),
        TransactionRecord::Expired(opened) => ("expired", opened, None),
        TransactionRecord::Completed(record) => {
            ("completed", record.opened, Some((record.verified_at, record.passed, record.refused)))
        }
    };
    let client_name = deps.store.load_client(opened.client.clone()).await?.map(|client| client.name);
    let app_name = deps.store.load_app(opened.app.clone()).await?.map(|app| app.name);
    let event_name = match opened.event {
        Some(event) => deps.store.load_event(event).await?.map(|event| event.terms.name.as_str().to_owned()),
        None => None,
    };
    Ok(Json(TransactionResponse {
        txn_id,
        client_name,
        app_name,
        event_name,
        claims: opened.terms.claims.iter().map(|claim| claim.name().into()).collect(),
        webhook_origin: opened.terms.webhook_url.as_ref().map(|url| url.origin()),
        status: status.into(),
        channel: opened.terms.channel.name().into(),
        trace_id: opened.terms.trace().and_then(|trace| Some(trace.split('-').nth(1)?.to_owned())),
        request_id: opened.terms.request_id,
        client_id: opened.client,
        app_id: opened.app,
        event_id: opened.event,
        opened_at: opened.opened_at,
        expires_at: opened.expires_at,
        verified_at: completion.map(|(at, ..)| at),
        verification_passed: completion.map(|(_, passed, _)| passed),
        refused: completion.and_then(|(.., refused)| refused).map(|refused| refused.code().into()),
        delivery: delivery.map(Into::into),
    }))
}

pub(super) async fn request(
    Operator(deps): Operator,
    Id(id): Id<RequestId>,
) -> Result<Json<RefusedRequests>, ApiError> {
    let requests = find_refused(&deps.store, &id).await?;
    if requests.is_empty() {
        return Err(ServiceError::NotFound("refused request").into());
    }
    Ok(Json(RefusedRequests { requests }))
}

/// Returns requests that were refused with this id, newest first. It searches the records of every app, so it is for
/// single lookups by an operator.
///
/// # Errors
/// The store is unavailable.
pub async fn find_refused(store: &Store, id: &RequestId) -> Result<Vec<RefusedRequestResponse>, ApiError> {
    let mut requests = Vec::new();
    for number in 1.. {
        let page = store.list_clients(PageRequest { page: number, page_size: PAGE_SIZE_MAX }).await?;
        for client in &page.items {
            for app in store.list_apps(client.client_id.clone()).await? {
                let refusals = store.refusals(app.app_id.clone()).await?;
                let matching = refusals.into_iter().filter(|refused| refused.request_id == *id);
                requests.extend(matching.map(|refused| refused_request_response(&app, refused)));
            }
        }
        if page.items.len() < PAGE_SIZE_MAX as usize {
            break;
        }
    }
    requests.sort_by_key(|request| std::cmp::Reverse(request.at));
    Ok(requests)
}

fn refused_request_response(app: &App, refused: RefusedRequest) -> RefusedRequestResponse {
    let RefusedRequest { at, method, route, status, code, fields, request_id } = refused;
    let (client_id, app_id) = (app.client_id.clone(), app.app_id.clone());
    RefusedRequestResponse { at, client_id, app_id, method, route, status, code, fields, request_id }
}

pub(super) async fn delivery(Operator(deps): Operator, Id(txn): Id<TxnId>) -> Result<Json<DeliveryResponse>, ApiError> {
    let record = deps.store.load_delivery(txn.into()).await?;
    Ok(Json(record.ok_or(ServiceError::NotFound("delivery"))?.into()))
}

pub(super) async fn deliveries(
    Operator(deps): Operator,
    Id(flow_id): Id<FlowId>,
) -> Result<Json<FlowResponse>, ApiError> {
    let flow = deps.store.flow_deliveries(flow_id).await?.ok_or(ServiceError::NotFound("flow"))?;
    let FlowDeliveries { state, kept_until, deliveries } = flow;
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

/// Returns scheme, host and port of the URLs only: paths and queries may contain secrets of the client.
pub(super) async fn webhook_urls(
    Operator(deps): Operator,
    Id(app): Id<AppId>,
) -> Result<Json<WebhookOrigins>, ApiError> {
    let urls = deps.store.webhook_urls(app).await?.ok_or(ServiceError::NotFound("app"))?;
    let webhook_urls = urls.iter().map(|(api_type, url)| WebhookOrigin { api_type, origin: url.origin() }).collect();
    Ok(Json(WebhookOrigins { webhook_urls }))
}

pub(super) async fn events(
    Operator(deps): Operator,
    Id(app): Id<AppId>,
    paged: Paged,
) -> Result<Json<AppEventsPage>, ApiError> {
    deps.store.load_app(app.clone()).await?.ok_or(ServiceError::NotFound("app"))?;
    let list = deps.store.list_events(app, paged.page).await?;
    let now = deps.clock.now();
    let events = list.items.iter().map(|event| AppEvent::new(event, now)).collect();
    let PageRequest { page, page_size } = paged.page;
    Ok(Json(AppEventsPage { page, page_size, total: list.total, events, next: paged.next(list.total) }))
}
