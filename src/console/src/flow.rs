//! `/console/flows/{flow_id}`: a flow and its webhooks, without any reported data.

use actix_web::HttpResponse;
use actix_web::web::Path;
use sakshi_domain::delivery::FlowDelivery;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_service::ServiceError;
use sakshi_web::delivery::DeliveryLine;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::{app_cell, client_cell};
use crate::staff::Staff;
use crate::view::{Cell, Part, Table, View};

/// Shows a flow.
///
/// # Errors
/// 404 if the flow does not exist or is deleted.
pub(crate) async fn show(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: FlowId = path.parse().map_err(|_| ServiceError::NotFound("flow"))?;
    let flow = staff.api.store.flow_deliveries(id).await?.ok_or(ServiceError::NotFound("flow"))?;
    let header = flow.state.header();
    let about = Part::new("about", "Flow")
        .fact("Id", Cell::code(id))
        .fact("Kind", Cell::text(flow.state.kind()))
        .fact("Client", client_cell(&staff, &header.client).await?)
        .fact("App", app_cell(&staff, &header.app).await?)
        .fact("Opened", Cell::at(header.opened_at))
        .fact("Request", Cell::link("requests", header.request_id.as_str()))
        .fact("Stored until", Cell::at(flow.kept_until));
    let row = |FlowDelivery { summary, delivery, .. }: FlowDelivery| {
        let line = DeliveryLine::describe(&delivery);
        let class = if line.is_lost { "lost" } else { "" };
        let state = delivery.attempt.map_or("waiting", |attempt| attempt.outcome.as_str());
        vec![
            Cell::text(if summary.is_empty() { "webhook".to_owned() } else { summary }),
            Cell::tag(class, state),
            Cell::code(delivery.origin),
            Cell::or_none(delivery.claimed_at, Cell::at),
            Cell::text(line.words),
        ]
    };
    let columns = &["Reports", "Outcome", "Receiver", "Attempt", "Details"];
    let table = Table { caption: "Webhooks", columns, rows: flow.deliveries.into_iter().map(row).collect() };
    let polls = match &flow.state {
        FlowState::ESign(_) | FlowState::DocLocker(_) => "The client polls for lost outcomes.",
        FlowState::EStamp(_) | FlowState::Wealth(_) => "This flow has no poll: the client does not get lost outcomes.",
    };
    let webhooks = Part::new("webhooks", "Webhooks").words(format!("Each webhook is sent once. {polls}"));
    let view = View::new(&staff, Some(Section::Clients), format!("Flow: {}", flow.state.kind()))
        .tag(Cell::tag("", flow.state.status()))
        .part(about)
        .part(webhooks.table(table, "No webhook was queued yet."));
    Ok(view.ok())
}
