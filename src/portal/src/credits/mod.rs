//! `GET /portal/credits`: the balance, the daily use, and the statement, newest entry first.

mod chart;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::credits::{EntryKind, LedgerEntry};
use sakshi_domain::ids::ClientId;
use sakshi_domain::time::Timestamp;
use sakshi_service::{Service, ServiceError};
use sakshi_store::PageRequest;
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;

use self::chart::Chart;
use super::curl::{Command, Curl};
use super::error::PortalError;
use super::layout::{Layout, Section, page};
use super::paging::{Pages, newest};
use super::portal_user::PortalUser;
use super::when::When;

/// Ledger entries per read for the chart.
const ENTRIES_PER_READ: u32 = 500;
/// Most reads for the chart.
const READS_MAX: u32 = 8;

/// One line of the statement.
struct Row {
    seq: u64,
    kind: &'static str,
    amount: String,
    balance_after: u64,
    reference: String,
    /// True if the reference is a transaction, which has a page.
    is_transaction: bool,
    at: When,
}

impl Row {
    fn new(entry: &LedgerEntry) -> Self {
        let is_transaction = entry.kind == EntryKind::Debit;
        Self {
            seq: entry.seq,
            kind: match entry.kind {
                EntryKind::Grant => "Added",
                EntryKind::Debit => "Verification",
                EntryKind::Adjust => "Corrected",
            },
            amount: if is_transaction {
                format!("\u{2212}{}", entry.amount)
            } else {
                format!("{:+}", entry.amount).replace('-', "\u{2212}")
            },
            balance_after: entry.balance_after,
            reference: entry.reference.clone(),
            is_transaction,
            at: When::minute(entry.at),
        }
    }
}

/// The page of credits.
#[derive(Template)]
#[template(path = "credits.html")]
struct Page {
    layout: Layout,
    balance: u64,
    /// Estimate how long the balance lasts.
    days_left: Option<String>,
    chart: Chart,
    rows: Vec<Row>,
    pages: Pages,
    commands: Vec<Command>,
}

/// Shows a page of the statement.
///
/// # Errors
/// 303 to the sign-in page without a session; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let page_number = Query::parse(request.query_string()).number(&["page"], 1..=u32::MAX, 1);
    let client = &user.caller.client;
    let balance = service.store.balance(client.clone()).await?.ok_or(ServiceError::NotFound("client"))?;
    let statement = newest(page_number, |page| service.store.statement(client.clone(), page)).await?;
    let chart = load_chart(&service, client, service.clock.now()).await?;
    let template = Page {
        layout: user.layout(Section::Credits, &service),
        balance,
        days_left: chart.days_left(balance),
        chart,
        rows: statement.items.iter().map(Row::new).collect(),
        pages: statement.pages,
        commands: Curl(&service.authority.public_base).credits(),
    };
    Ok(page(StatusCode::OK, &template))
}

/// Reads the ledger backwards until the chart is complete or [`READS_MAX`] is reached.
async fn load_chart(service: &Service, client: &ClientId, now: Timestamp) -> Result<Chart, ApiError> {
    let mut chart = Chart::until(now);
    let read = |page| service.store.statement(client.clone(), PageRequest { page, page_size: ENTRIES_PER_READ });
    let first_page = read(1).await?;
    chart.since = first_page.items.first().map(|entry| entry.at);
    let total = first_page.total;
    let last_page = u32::try_from(total.div_ceil(u64::from(ENTRIES_PER_READ))).unwrap_or(u32::MAX);
    let oldest_page = last_page.saturating_sub(READS_MAX).saturating_add(1).max(1);
    let mut oldest_entry_at = None;
    for number in (oldest_page..=last_page).rev() {
        let entries = read(number).await?.items;
        chart.count(&entries);
        oldest_entry_at = entries.first().map(|entry| entry.at);
        if oldest_entry_at.is_none_or(|at| chart.is_before(at)) {
            return Ok(chart);
        }
    }
    chart.cut_at = oldest_entry_at.filter(|_| oldest_page > 1);
    Ok(chart)
}
