//! `GET /api/v1/nationalid-ovse/transactions`: the app's transactions, newest first.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use sakshi_domain::transaction::TransactionStatus;
use sakshi_service::Service;
use sakshi_service::statement::count_entries_before;
use sakshi_service::verifications::{Filter, list, reference};
use sakshi_store::TransactionSummary;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::transactions::{TransactionRow, TransactionsPage};
use url::form_urlencoded;

/// Largest value of `cursor`, the default. Integers in the document are signed, with 64 bits.
const CURSOR_MAX: u64 = i64::MAX as u64;

/// Lists the app's stored transactions.
///
/// # Errors
/// 400 for an invalid parameter.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/transactions", tag = "OVSE", operation_id = "listTransactions",
    summary = "List transactions",
    description = "Newest first, including the transactions of guests. Ended transactions are listed for 24 hours. \
        Follow `next` until it is absent; a page may be empty.",
    params(("client_reference_id" = Option<String>, Query, min_length = 1, description = "Only transactions with this \
        reference."),
           ("status" = Option<String>, Query, description = "Only transactions that are `pending`, `passed`, `failed` \
               or `expired`."),
           ("from" = Option<String>, Query, format = "date-time", description = "Opened at this time or later (ISO \
               8601 with an offset; `+` is written `%2B` in a query)."),
           ("to" = Option<String>, Query, format = "date-time", description = "Opened before this time."),
           ("limit" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Maximum number of transactions. \
               Default: 20."),
           ("cursor" = Option<u64>, Query, minimum = 1, description = "Position after the previous page, as in its \
               `next`.")),
    responses((status = 200, body = TransactionsPage, description = "A page of transactions."))
)]
pub(crate) async fn transactions(
    Authenticated(caller): Authenticated,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.polls.count(&request, &caller.app.app_id)?;
    let mut query = Query::parse(request.query_string());
    // An empty reference is refused: with an unset variable, a script would list all transactions.
    let non_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let exact_reference = query.parse_with("client_reference_id", non_empty, "must not be empty");
    let status = query.parse_with(
        "status",
        |word| word.parse::<TransactionStatus>().ok(),
        "must be pending, passed, failed or expired",
    );
    let (from, to) = (query.time("from"), query.time("to"));
    let limit = query.number(&["limit"], 1..=PAGE_SIZE_MAX, PAGE_SIZE_DEFAULT);
    // `before` is its former name.
    let cursor = query.number(&["cursor", "before"], 1..=CURSOR_MAX, CURSOR_MAX);
    query.finish()?;
    let mut before = (cursor < CURSOR_MAX).then_some(cursor);
    if let Some(to) = to {
        // A position is the number of an entry in the client's ledger, from 1.
        let first_excluded = count_entries_before(&service.store, &caller.client, to).await? + 1;
        before = Some(before.map_or(first_excluded, |before| before.min(first_excluded)));
    }
    let filter = Filter { status, exact_reference: exact_reference.clone(), from, ..Filter::default() };
    let listing = list(&service, &caller, &filter, before, limit as usize).await?;
    let next = listing.older.map(|before| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("cursor", &before.to_string()).append_pair("limit", &limit.to_string());
        let filters = [
            ("client_reference_id", exact_reference),
            ("status", status.map(|status| status.to_string())),
            ("from", from.map(|from| from.to_string())),
        ];
        for (name, text) in filters {
            query.extend_pairs(text.map(|text| (name, text)));
        }
        format!("{}?{}", request.path(), query.finish())
    });
    Ok(HttpResponse::Ok()
        .json(TransactionsPage { transactions: listing.verifications.into_iter().map(row).collect(), next }))
}

/// Builds the entry of a transaction in the list.
fn row(TransactionSummary { opened, status, .. }: TransactionSummary) -> TransactionRow {
    TransactionRow {
        txn_id: opened.id,
        status,
        opened_at: opened.opened_at,
        channel: opened.terms.channel.name().to_owned(),
        client_reference_id: reference(&opened).map(str::to_owned),
        event_id: opened.event,
    }
}
