//! `GET /admin/v1/audit-log`: the operators' changes.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::web::Json;
use actix_web::{FromRequest, HttpRequest};
use sakshi_domain::limits::{PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_store::{AuditHead, AuditRecord, Store, StoreError};
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use sakshi_wire::operator::audit_log::{AuditLogEntry, AuditLogHead, AuditLogPage};
use serde_json::{Map, Value};

use super::bearer::Operator;

/// The requested range of entries.
#[derive(Debug)]
pub(super) struct Range {
    /// Entries with a higher number.
    after: u64,
    limit: u32,
    since: Option<Timestamp>,
}

impl FromRequest for Range {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(parse_range(request.query_string()))
    }
}

fn parse_range(query: &str) -> Result<Range, ApiError> {
    let mut query = Query::parse(query);
    let after = query.number(&["after"], 0..=i64::MAX.cast_unsigned(), 0);
    let limit = query.number(&["limit"], 1..=PAGE_SIZE_MAX, PAGE_SIZE_DEFAULT);
    let since = query.time("since");
    query.finish().map(|()| Range { after, limit, since })
}

/// Returns a page of the log, oldest entry first.
pub(super) async fn read(Operator(deps): Operator, range: Range) -> Result<Json<AuditLogPage>, ApiError> {
    let head = deps.store.audit_head().await?;
    let from = match range.since {
        Some(since) => number_before(&deps.store, head, since).await?.max(range.after),
        None => range.after,
    };
    let entries = deps.store.audit_log(from, range.limit).await?;
    let entries = entries.iter().map(entry_response).collect::<Result<_, _>>()?;
    Ok(Json(AuditLogPage { entries, head: AuditLogHead { number: head.number, hash: head.hash.to_string() } }))
}

fn parse_entry(text: &str) -> Result<Map<String, Value>, ApiError> {
    serde_json::from_str(text)
        .map_err(|_| StoreError::Corrupt("an entry of the audit log cannot be read".to_owned()).into())
}

fn entry_response(record: &AuditRecord) -> Result<AuditLogEntry, ApiError> {
    let entry = parse_entry(&record.entry)?.into_iter().collect();
    Ok(AuditLogEntry {
        number: record.number,
        previous_hash: record.previous.to_string(),
        hash: record.hash.to_string(),
        entry,
    })
}

/// Returns the number of the last entry before `since`; 0 without one. Entries are in order of time, except for clock
/// differences between nodes.
async fn number_before(store: &Store, head: AuditHead, since: Timestamp) -> Result<u64, ApiError> {
    let (mut before, mut end) = (0, head.number);
    while before < end {
        let middle = before + (end - before) / 2;
        let Some(record) = store.audit_log(middle, 1).await?.pop() else { break };
        let at = parse_entry(&record.entry)?.get("at").and_then(Value::as_str).and_then(Timestamp::parse_iso8601);
        if at.is_some_and(|at| at < since) {
            before = middle + 1;
        } else {
            end = middle;
        }
    }
    Ok(before)
}
