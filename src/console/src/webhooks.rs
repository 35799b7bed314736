//! Lost webhooks of a client, by receiver and reason. Also the list of a client's verifications, with a search by the
//! client's own reference.

use std::collections::BTreeMap;

use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::delivery::{Attempt, DeliveryRecord, FlowDelivery};
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::TransactionStatus;
use sakshi_service::ServiceError;
use sakshi_service::deliveries::ORDERS_MAX;
use sakshi_service::verifications::{Filter, LISTED_MAX, list_of_client, reference as own_reference};
use sakshi_store::TransactionSummary;
use sakshi_web::delivery::advice;
use sakshi_web::field::Field;
use sakshi_web::query::Query;
use url::form_urlencoded;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::records::{find_client, lost_attempt};
use crate::staff::Staff;
use crate::view::{Cell, FormView, Part, Table, View};

/// Maximum number of a client's verifications that are examined for lost webhooks.
const VERIFICATIONS_MAX: usize = 1_000;

/// A webhook that is not known to have reached its receiver.
pub(crate) struct LostWebhook {
    /// Folder of the page of the verification or order that the webhook reports.
    folder: &'static str,
    id: String,
    delivery: DeliveryRecord,
    attempt: Attempt,
}

/// State of the webhooks of a client's newest verifications.
pub(crate) struct WebhookSummary {
    pub(crate) lost: Vec<LostWebhook>,
    delivered: u64,
    waiting: u64,
    verifications: usize,
}

/// Examines the webhooks of a client's newest verifications, at most `max`.
pub(crate) async fn webhooks_of_newest(
    staff: &Staff,
    client: &ClientId,
    max: usize,
) -> Result<WebhookSummary, ConsoleError> {
    let listing = list_of_client(&staff.api.store, client, stored_since(staff), &Filter::default(), None, max).await?;
    let mut webhooks =
        WebhookSummary { lost: Vec::new(), delivered: 0, waiting: 0, verifications: listing.verifications.len() };
    for TransactionSummary { opened, delivery, .. } in listing.verifications {
        let Some(delivery) = delivery else { continue };
        match (lost_attempt(&delivery), delivery.attempt) {
            (Some(attempt), _) => {
                webhooks.lost.push(LostWebhook {
                    folder: "transactions",
                    id: opened.id.to_string(),
                    delivery,
                    attempt,
                });
            }
            (None, Some(_)) => webhooks.delivered += 1,
            (None, None) => webhooks.waiting += 1,
        }
    }
    Ok(webhooks)
}

/// Adds the webhooks of the client's newest orders (flows at an upstream, such as e-signatures).
async fn add_orders(staff: &Staff, client: &ClientId, webhooks: &mut WebhookSummary) -> Result<(), ConsoleError> {
    for app in staff.api.store.list_apps(client.clone()).await? {
        for order in staff.api.store.list_flows(client.clone(), app.app_id, ORDERS_MAX).await? {
            let id = order.state.header().id.to_string();
            for FlowDelivery { delivery, .. } in order.deliveries {
                match (lost_attempt(&delivery), delivery.attempt) {
                    (Some(attempt), _) => {
                        webhooks.lost.push(LostWebhook { folder: "flows", id: id.clone(), delivery, attempt });
                    }
                    (None, Some(_)) => webhooks.delivered += 1,
                    (None, None) => webhooks.waiting += 1,
                }
            }
        }
    }
    webhooks.lost.sort_by_key(|lost| std::cmp::Reverse(lost.delivery.queued_at));
    Ok(())
}

/// Returns the time since which all transactions are stored; earlier transactions may be deleted.
fn stored_since(staff: &Staff) -> Timestamp {
    staff.api.clock.now() - staff.console.transaction_retention
}

/// Shows the lost webhooks of a client.
///
/// # Errors
/// 404 for an unknown client.
pub(crate) async fn show(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: ClientId = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    let client = find_client(&staff, &id).await?;
    let mut webhooks = webhooks_of_newest(&staff, &id, VERIFICATIONS_MAX).await?;
    add_orders(&staff, &id, &mut webhooks).await?;
    let counts = Part::new("counts", "Webhooks")
        .words(format!(
            "Of the newest {} stored verifications, and the newest {ORDERS_MAX} orders of each app. Each webhook is \
                sent once; the client polls for a lost result. E-stamps and wealth data have no poll.",
            webhooks.verifications
        ))
        .fact("Delivered", Cell::number(webhooks.delivered))
        .fact("Lost", Cell::number(webhooks.lost.len() as u64))
        .fact("Waiting or in flight", Cell::number(webhooks.waiting));
    let view = View::new(&staff, Some(Section::Clients), format!("Lost webhooks of {}", client.name))
        .back(format!("/console/clients/{id}"), client.name)
        .part(counts)
        .part(receivers_part(&webhooks.lost))
        .part(list_part(&webhooks.lost));
    Ok(view.ok())
}

/// Counts the lost webhooks by receiver and reason.
fn receivers_part(webhooks: &[LostWebhook]) -> Part {
    // Number and newest webhook, by receiver and reason.
    let mut groups: BTreeMap<(&str, &str), (u64, &LostWebhook)> = BTreeMap::new();
    for lost in webhooks {
        let reason = lost.attempt.failure.map_or(lost.attempt.outcome.as_str(), |failure| failure.reason.as_str());
        groups.entry((&lost.delivery.origin, reason)).or_insert((0, lost)).0 += 1;
    }
    let row = |((origin, reason), (count, newest)): ((&str, &str), (u64, &LostWebhook))| {
        let words = newest.attempt.failure.map_or("", advice);
        vec![
            Cell::code(origin),
            Cell::tag("lost", reason),
            Cell::number(count),
            Cell::text(words),
            Cell::link(newest.folder, &newest.id),
        ]
    };
    let rows = groups.into_iter().map(row).collect();
    let columns = &["Receiver", "Reason", "Lost", "Problem", "Newest"];
    let table = Table { caption: "Lost webhooks by receiver and reason", columns, rows };
    Part::new("receivers", "By receiver and reason").table(table, "No webhook was lost.")
}

fn list_part(webhooks: &[LostWebhook]) -> Part {
    let row = |lost: &LostWebhook| {
        vec![
            Cell::link(lost.folder, &lost.id),
            Cell::or_none(lost.delivery.claimed_at, Cell::at),
            Cell::code(&lost.delivery.origin),
            Cell::tag("lost", lost.attempt.outcome.as_str()),
            Cell::or_none(lost.attempt.status, Cell::number),
        ]
    };
    let columns = &["Verification or order", "Attempt", "Receiver", "Outcome", "Status"];
    let table = Table { caption: "Lost webhooks, newest first", columns, rows: webhooks.iter().map(row).collect() };
    Part::new("each", "All lost webhooks").table(table, "No webhook was lost.")
}

/// Shows the verifications of a client, newest first, optionally only those with a reference of the client.
///
/// # Errors
/// 404 for an unknown client.
pub(crate) async fn verifications(
    staff: Staff,
    path: Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, ConsoleError> {
    let id: ClientId = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    let mut query = Query::parse(request.query_string());
    let (reference, before) = (query.text("reference"), query.number(&["before"], 0..=u64::MAX, 0));
    query.finish()?;
    let client = find_client(&staff, &id).await?;
    let filter = Filter { text: reference.clone(), ..Filter::default() };
    let before = (before > 0).then_some(before);
    let listing = list_of_client(&staff.api.store, &id, stored_since(&staff), &filter, before, LISTED_MAX).await?;
    let row = |summary: TransactionSummary| {
        let (class, label) = match summary.status {
            TransactionStatus::Pending => ("pending", "waiting"),
            TransactionStatus::Passed => ("good", "verified"),
            TransactionStatus::Failed => ("bad", "not verified"),
            TransactionStatus::Expired => ("", "expired"),
        };
        vec![
            Cell::link("transactions", summary.opened.id),
            Cell::at(summary.opened.opened_at),
            Cell::tag(class, label),
            Cell::text(summary.code.as_deref().unwrap_or_default()),
            Cell::text(summary.opened.terms.channel.name()),
            Cell::or_none(own_reference(&summary.opened).map(str::to_owned), Cell::Text),
            Cell::or_none(summary.opened.event, |event| Cell::link("events", event)),
        ]
    };
    let columns = &["Transaction", "Opened", "State", "Code", "Channel", "Client’s reference", "Event"];
    let table = Table {
        caption: "Verifications, newest first",
        columns,
        rows: listing.verifications.into_iter().map(row).collect(),
    };
    let folder = format!("/console/clients/{id}/verifications");
    let search = FormView::query(folder.clone(), "Search").field(Field::new(
        "reference",
        "The client’s own reference or an id, or a part of it",
        "search",
        reference.clone().unwrap_or_default(),
        None,
    ));
    let words = listing.read_back_to.map(|at| format!("Searched back to {at}.")).unwrap_or_default();
    let older = listing.older.map(|before| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if let Some(reference) = &reference {
            query.append_pair("reference", reference);
        }
        format!("{folder}?{}", query.append_pair("before", &before.to_string()).finish())
    });
    let part = Part::new("list", "Found").words(words).table(table, "Nothing was found here.");
    let view = View::new(&staff, Some(Section::Clients), format!("Verifications of {}", client.name));
    let view = view.part(Part::new("search", "Search in all apps").form(search));
    Ok(view.back(format!("/console/clients/{id}"), client.name).part(part).page(older, "Older").ok())
}
