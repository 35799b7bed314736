//! Lost webhooks of a client, by receiver and reason, with the transactions. Also the client's verifications, found by
//! its own reference.

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
use crate::records::{client_of, lost};
use crate::staff::Staff;
use crate::view::{Cell, FormView, Part, Table, View};

/// Number of a client's verifications that are examined for lost webhooks.
const LOOKED_AT: usize = 1_000;

/// A webhook that did not reach its receiver, as far as is known.
pub(crate) struct LostWebhook {
    /// Folder of the page of the verification or order that it reports.
    folder: &'static str,
    id: String,
    delivery: DeliveryRecord,
    attempt: Attempt,
}

/// The webhooks of a client's newest verifications.
pub(crate) struct Lost {
    pub(crate) lost: Vec<LostWebhook>,
    delivered: u64,
    waiting: u64,
    looked_at: usize,
}

/// Examines the webhooks of a client's newest verifications.
pub(crate) async fn lost_of(staff: &Staff, client: &ClientId, most: usize) -> Result<Lost, ConsoleError> {
    let listing = list_of_client(&staff.api.store, client, kept_since(staff), &Filter::default(), None, most).await?;
    let mut found = Lost { lost: Vec::new(), delivered: 0, waiting: 0, looked_at: listing.verifications.len() };
    for TransactionSummary { opened, delivery, .. } in listing.verifications {
        let Some(delivery) = delivery else { continue };
        match (lost(&delivery), delivery.attempt) {
            (Some(attempt), _) => {
                found.lost.push(LostWebhook { folder: "transactions", id: opened.id.to_string(), delivery, attempt });
            }
            (None, Some(_)) => found.delivered += 1,
            (None, None) => found.waiting += 1,
        }
    }
    Ok(found)
}

/// Adds the webhooks of the client's newest orders.
async fn add_orders(staff: &Staff, client: &ClientId, found: &mut Lost) -> Result<(), ConsoleError> {
    for app in staff.api.store.list_apps(client.clone()).await? {
        for order in staff.api.store.list_flows(client.clone(), app.app_id, ORDERS_MAX).await? {
            let id = order.state.header().id.to_string();
            for FlowDelivery { delivery, .. } in order.deliveries {
                match (lost(&delivery), delivery.attempt) {
                    (Some(attempt), _) => {
                        found.lost.push(LostWebhook { folder: "flows", id: id.clone(), delivery, attempt });
                    }
                    (None, Some(_)) => found.delivered += 1,
                    (None, None) => found.waiting += 1,
                }
            }
        }
    }
    found.lost.sort_by_key(|lost| std::cmp::Reverse(lost.delivery.queued_at));
    Ok(())
}

/// Returns the time since which transactions are stored; an earlier one may be gone.
fn kept_since(staff: &Staff) -> Timestamp {
    staff.api.clock.now() - staff.console.kept
}

/// Shows the lost webhooks of a client.
///
/// # Errors
/// 404 for an unknown client.
pub(crate) async fn show(staff: Staff, path: Path<String>) -> Result<HttpResponse, ConsoleError> {
    let id: ClientId = path.parse().map_err(|_| ServiceError::NotFound("client"))?;
    let client = client_of(&staff, &id).await?;
    let mut found = lost_of(&staff, &id, LOOKED_AT).await?;
    add_orders(&staff, &id, &mut found).await?;
    let counts = Part::new("counts", "Webhooks")
        .words(format!(
            "Of the newest {} verifications that are kept, and the newest {ORDERS_MAX} orders of each app. Each \
                webhook is sent once; the client fetches a lost result.",
            found.looked_at
        ))
        .fact("Delivered", Cell::number(found.delivered))
        .fact("Lost", Cell::number(found.lost.len() as u64))
        .fact("Waiting or under way", Cell::number(found.waiting));
    let view = View::new(&staff, Some(Section::Clients), format!("Lost webhooks of {}", client.name))
        .back(format!("/console/clients/{id}"), client.name)
        .part(counts)
        .part(by_receiver(&found.lost))
        .part(each(&found.lost));
    Ok(view.ok())
}

fn by_receiver(found: &[LostWebhook]) -> Part {
    let mut groups: BTreeMap<(&str, &str), (u64, &LostWebhook)> = BTreeMap::new();
    for lost in found {
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
    let columns = &["Receiver", "Reason", "Lost", "What is wrong there", "The newest"];
    let table = Table { caption: "Lost webhooks by receiver and reason", columns, rows };
    Part::new("receivers", "By receiver and reason").table(table, "None was lost.")
}

fn each(found: &[LostWebhook]) -> Part {
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
    let table = Table { caption: "Lost webhooks, the newest first", columns, rows: found.iter().map(row).collect() };
    Part::new("each", "Each of them").table(table, "None was lost.")
}

/// Shows the verifications of a client, newest first, or those with a reference of the client's own.
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
    let client = client_of(&staff, &id).await?;
    let filter = Filter { text: reference.clone(), ..Filter::default() };
    let before = (before > 0).then_some(before);
    let listing = list_of_client(&staff.api.store, &id, kept_since(&staff), &filter, before, LISTED_MAX).await?;
    let row = |found: TransactionSummary| {
        let (class, label) = match found.status {
            TransactionStatus::Pending => ("pending", "waiting"),
            TransactionStatus::Passed => ("good", "verified"),
            TransactionStatus::Failed => ("bad", "not verified"),
            TransactionStatus::Expired => ("", "expired"),
        };
        vec![
            Cell::link("transactions", found.opened.id),
            Cell::at(found.opened.opened_at),
            Cell::tag(class, label),
            Cell::text(found.code.as_deref().unwrap_or_default()),
            Cell::text(found.opened.terms.channel.name()),
            Cell::or_none(own_reference(&found.opened).map(str::to_owned), Cell::Text),
            Cell::or_none(found.opened.event, |event| Cell::link("events", event)),
        ]
    };
    let columns = &["Transaction", "Opened", "State", "Code", "Channel", "Client’s reference", "Event"];
    let table = Table {
        caption: "Verifications, the newest first",
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
    let words = listing.read_back_to.map(|at| format!("Looked back to {at}.")).unwrap_or_default();
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
