//! `/portal/orders`: the eSign, locker, e-stamp and wealth orders of the app, and the history of each.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::delivery::FlowDelivery;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::time::Timestamp;
use sakshi_service::deliveries::ORDERS_MAX;
use sakshi_service::{Service, ServiceError};
use sakshi_store::FlowDeliveries;
use sakshi_web::query::Query;

use super::curl::{Command, Curl};
use super::delivery::{DeliveryLine, DeliveryTag};
use super::error::PortalError;
use super::layout::{Layout, Section, page};
use super::portal_user::PortalUser;
use super::trial::Choice;
use super::when::When;

/// Kinds of orders with their labels. An order is a flow that the client opened: eSign, locker, e-stamp or wealth data.
const KINDS: [(&str, &str); 4] =
    [("esign", "eSign"), ("doclocker", "Document locker"), ("estamp", "E-stamp"), ("wealth", "Wealth data")];

fn kind_label(kind: &str) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("Order", |(_, label)| label)
}

/// The state of an order as a tag.
struct State {
    style: &'static str,
    label: &'static str,
}

impl State {
    fn new(order: &FlowDeliveries) -> Self {
        let label = order.state.status();
        let style = match label {
            "Pending" => "waiting",
            "Failed" | "Rejected" | "Revoked" | "Expired" => "expired",
            _ => "verified",
        };
        Self { style, label }
    }
}

/// An order in the list.
struct Row {
    id: FlowId,
    kind: &'static str,
    state: State,
    opened: When,
    lost_webhooks: usize,
    webhooks: usize,
    last_webhook: Option<DeliveryTag>,
}

impl Row {
    fn new(order: &FlowDeliveries, now: Timestamp) -> Self {
        let lines = order.deliveries.iter().map(|webhook| DeliveryLine::describe(&webhook.delivery));
        Self {
            id: order.state.header().id,
            kind: kind_label(order.state.kind()),
            state: State::new(order),
            opened: When::recent(order.state.header().opened_at, now),
            lost_webhooks: lines.filter(|line| line.is_lost).count(),
            webhooks: order.deliveries.len(),
            last_webhook: order.deliveries.last().map(|webhook| DeliveryTag::summarize(&webhook.delivery)),
        }
    }

    fn short_id(&self) -> String {
        self.id.to_string().rsplit('-').next().unwrap_or_default().to_owned()
    }
}

/// The list of orders.
#[derive(Template)]
#[template(path = "orders.html")]
struct List {
    layout: Layout,
    kinds: Vec<Choice>,
    is_filtered: bool,
    rows: Vec<Row>,
    orders_max: u32,
}

/// Shows the list, newest first.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn list(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let mut query = Query::parse(request.query_string());
    let kind_filter = query.text("kind");
    query.finish()?;
    let mut orders =
        service.store.list_flows(user.caller.client.clone(), user.caller.app.app_id.clone(), ORDERS_MAX).await?;
    orders.retain(|order| kind_filter.as_deref().is_none_or(|kind| kind == order.state.kind()));
    let now = service.clock.now();
    let template = List {
        layout: user.layout(Section::Orders, &service),
        kinds: KINDS
            .map(|(value, label)| Choice {
                value,
                label: label.to_owned(),
                chosen: kind_filter.as_deref() == Some(value),
            })
            .into(),
        is_filtered: kind_filter.is_some(),
        rows: orders.iter().map(|order| Row::new(order, now)).collect(),
        orders_max: ORDERS_MAX,
    };
    Ok(page(StatusCode::OK, &template))
}

/// A webhook of an order.
struct Webhook {
    /// Kind and status of the report that caused the webhook.
    tells: String,
    tag: DeliveryTag,
    origin: String,
    line: DeliveryLine,
}

/// The page of an order.
#[derive(Template)]
#[template(path = "order.html")]
struct Page {
    layout: Layout,
    id: FlowId,
    kind: &'static str,
    state: State,
    opened: When,
    kept_until: When,
    request_id: String,
    webhooks: Vec<Webhook>,
    /// True if a webhook was not delivered.
    has_lost: bool,
    commands: Vec<Command>,
}

/// Shows an order.
///
/// # Errors
/// 404 unless the app has such an order.
pub(crate) async fn show(
    user: PortalUser,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let unknown = || ServiceError::NotFound("order");
    let id: FlowId = path.parse().map_err(|_| unknown())?;
    let order = service.store.flow_deliveries(id).await?;
    let order = order.filter(|order| order.state.header().app == user.caller.app.app_id).ok_or_else(unknown)?;
    let webhook = |FlowDelivery { summary, delivery, .. }: &FlowDelivery| Webhook {
        tells: summary.clone(),
        tag: DeliveryTag::summarize(delivery),
        origin: delivery.origin.clone(),
        line: DeliveryLine::describe(delivery),
    };
    let webhooks: Vec<_> = order.deliveries.iter().map(webhook).collect();
    let header = order.state.header();
    let template = Page {
        layout: user.layout(Section::Orders, &service),
        id,
        kind: kind_label(order.state.kind()),
        opened: When::second(header.opened_at),
        kept_until: When::minute(order.kept_until),
        request_id: header.request_id.as_str().to_owned(),
        has_lost: webhooks.iter().any(|webhook| webhook.line.is_lost),
        webhooks,
        commands: Curl(&service.authority.public_base).order(order.state.kind(), id).into_iter().collect(),
        state: State::new(&order),
    };
    Ok(page(StatusCode::OK, &template))
}
