//! `/console/audit-log`: changes by operators, newest first, and the verification of the chain of entries.

use actix_web::{HttpRequest, HttpResponse};
use sakshi_store::{AuditHead, AuditRecord};
use sakshi_web::error::ApiError;
use sakshi_web::field::Field;
use sakshi_web::query::Query;
use serde_json::{Map, Value};
use url::form_urlencoded;

use crate::error::ConsoleError;
use crate::layout::Section;
use crate::staff::Staff;
use crate::view::{Cell, FormView, Part, Table, View};

/// Number of entries on one page.
const ROWS: usize = 25;
/// Maximum number of entries that one page reads.
const ENTRIES_READ_MAX: u64 = 1_000;
/// Number of entries read at once.
const BATCH_SIZE: u32 = 100;
/// Maximum number of entries that one request verifies.
const ENTRIES_VERIFIED_MAX: u64 = 5_000;

/// Filters of entries, with their labels.
const FILTERS: [(&str, &str); 3] = [
    ("operator", "Operator: name or id"),
    ("operation", "Operation, such as grantCredits"),
    ("id", "Id of the changed record"),
];

/// The requested filters.
#[derive(Debug, Default)]
struct AuditFilters {
    operator: String,
    operation: String,
    id: String,
    before: u64,
}

impl AuditFilters {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let mut query = Query::parse(query);
        let mut text = |name| query.text(name).unwrap_or_default();
        let (operator, operation, id) = (text("operator"), text("operation"), text("id"));
        let before = query.number(&["before"], 0..=u64::MAX, 0);
        query.finish().map(|()| Self { operator, operation, id, before })
    }

    fn matches(&self, entry: &Map<String, Value>) -> bool {
        let equals = |name: &str, wanted: &String| {
            entry.get(name).and_then(Value::as_str).is_some_and(|value| value.eq_ignore_ascii_case(wanted))
        };
        let is_operator =
            |wanted: &String| ["operator", "operator_id", "subject"].iter().any(|name| equals(name, wanted));
        let ids = entry.get("ids").and_then(Value::as_object);
        (self.operator.is_empty() || is_operator(&self.operator))
            && (self.operation.is_empty() || equals("operation", &self.operation))
            && (self.id.is_empty() || ids.is_some_and(|ids| ids.values().any(|id| id.as_str() == Some(&self.id))))
    }

    fn values(&self) -> [&String; 3] {
        [&self.operator, &self.operation, &self.id]
    }

    /// Returns the address of the entries before an entry, with the same filters.
    fn path_before(&self, before: u64) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for ((name, _), value) in FILTERS.iter().zip(self.values()).filter(|(_, value)| !value.is_empty()) {
            query.append_pair(name, value);
        }
        format!("/console/audit-log?{}", query.append_pair("before", &before.to_string()).finish())
    }
}

/// Shows a page of the log.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; any error of the store.
pub(crate) async fn show(staff: Staff, request: HttpRequest) -> Result<HttpResponse, ConsoleError> {
    let filters = AuditFilters::parse(request.query_string())?;
    let head = staff.api.store.audit_head().await?;
    let mut before = if filters.before == 0 { head.number + 1 } else { filters.before.min(head.number + 1) };
    let end = before.saturating_sub(ENTRIES_READ_MAX).max(1);
    let mut rows = Vec::new();
    while before > end && rows.len() < ROWS {
        let after = before.saturating_sub(1 + u64::from(BATCH_SIZE)).max(end - 1);
        let limit = u32::try_from(before - 1 - after).unwrap_or(BATCH_SIZE);
        let entries = staff.api.store.audit_log(after, limit).await?;
        for record in entries.iter().rev() {
            before = record.number;
            let entry = parse_entry(record)?;
            if filters.matches(&entry) {
                rows.push(entry_row(record.number, &entry));
                if rows.len() == ROWS {
                    break;
                }
            }
        }
        if entries.is_empty() {
            break;
        }
    }
    let mut search = FormView::query("/console/audit-log", "Filter");
    for ((name, label), value) in FILTERS.into_iter().zip(filters.values()) {
        search = search.field(Field::new(name, label, "search", value.clone(), None));
    }
    let columns = &["No.", "At", "Operator", "Operation", "Stage", "On", "From", "Values"];
    let table = Table { caption: "Entries, newest first", columns, rows };
    let words =
        "Each change has an entry before it (asked) and one with its outcome (answered). Entries contain no secrets.";
    let chain = Part::new("chain", "The chain")
        .words("Each entry contains the hash of the previous entry, so a changed or missing entry is detected.")
        .fact("Entries", Cell::number(head.number))
        .fact("Newest hash", Cell::code(head.hash))
        .link("/console/audit-log/verify", "Verify the whole log");
    let view = View::new(&staff, Some(Section::AuditLog), "Audit log")
        .part(Part::new("filter", "Filter").form(search))
        .part(Part::new("entries", "Entries").words(words).table(table, "No entry matches the filter."))
        .part(chain)
        .page((before > 1).then(|| filters.path_before(before)), "Older");
    Ok(view.ok())
}

fn parse_entry(record: &AuditRecord) -> Result<Map<String, Value>, ApiError> {
    serde_json::from_str(&record.entry).map_err(|_| ApiError::internal("an entry of the audit log cannot be read"))
}

fn entry_row(number: u64, entry: &Map<String, Value>) -> Vec<Cell> {
    let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
    let status = entry.get("status").and_then(Value::as_u64);
    let class = match status {
        Some(200) => "good",
        Some(_) => "bad",
        None => "",
    };
    let stage = [
        text("stage").to_owned(),
        status.map(|status| status.to_string()).unwrap_or_default(),
        text("code").to_owned(),
    ];
    let ids = entry.get("ids").and_then(Value::as_object).into_iter().flatten();
    let links = ids.filter_map(|(_, id)| id.as_str()).map(Cell::search_link);
    let values = ["asked", "before", "after"].into_iter().filter_map(|name| {
        let value = entry.get(name).filter(|value| !value.is_null())?;
        Some(Cell::Code(format!("{name} {value}")))
    });
    let values: Vec<Cell> = values.collect();
    let operator = if text("operator").is_empty() {
        format!("a {}’s token", text("token"))
    } else {
        text("operator").to_owned()
    };
    vec![
        Cell::number(number),
        Cell::text(text("at").get(..19).unwrap_or_default().replace('T', " ")),
        Cell::text(operator),
        Cell::text(text("operation")),
        Cell::tag(class, stage.join(" ").trim()),
        Cell::Many(links.collect()),
        Cell::text(text("from")),
        if values.is_empty() { Cell::None } else { Cell::Many(values) },
    ]
}

/// Checks that the log, whose newest entry is `head`, reaches the entry after which the verification begins. An older
/// entry is checked by its successor, which contains its hash.
///
/// # Errors
/// A description of the fault.
fn check_start(first: AuditHead, head: AuditHead) -> Result<(), String> {
    if first.number > head.number {
        Err(format!("entry {} is missing: the end was cut off", head.number + 1))
    } else if first.number == head.number && first.hash != head.hash {
        Err(format!("entry {} has another hash", head.number))
    } else {
        Ok(())
    }
}

/// Verifies a part of the chain, as `sakshi admin audit-log --verify` does, and links to the next part.
///
/// # Errors
/// [`ConsoleError::SignIn`] without a session; any error of the store.
pub(crate) async fn verify(staff: Staff, request: HttpRequest) -> Result<HttpResponse, ConsoleError> {
    let mut query = Query::parse(request.query_string());
    let number = query.number(&["after"], 0..=i64::MAX.cast_unsigned(), 0);
    let hash = query.parse_with("hash", |text| text.parse().ok(), "must be a hash of 64 hexadecimal digits");
    query.finish()?;
    let first = AuditHead { number, hash: hash.unwrap_or(AuditHead::NONE.hash) };
    let head = staff.api.store.audit_head().await?;
    let (mut verified, mut fault) = (first, check_start(first, head).err());
    while fault.is_none() && verified.number < head.number && verified.number - first.number < ENTRIES_VERIFIED_MAX {
        let entries = staff.api.store.audit_log(verified.number, BATCH_SIZE).await?;
        if entries.is_empty() {
            fault = Some(format!("entry {} is missing", verified.number + 1));
        }
        for record in &entries {
            match verified.verify_next(record) {
                Ok(next) => verified = next,
                Err(error) => {
                    fault = Some(error);
                    break;
                }
            }
        }
    }
    let part = Part::new("chain", "The chain")
        .fact("Checked", Cell::text(format!("entries {} to {} of {}", first.number + 1, verified.number, head.number)))
        .fact("Last hash checked", Cell::code(verified.hash));
    let part = match (&fault, verified.number < head.number) {
        (Some(fault), _) => part.fact("Found", Cell::tag("bad", format!("not as it was written: {fault}"))),
        (None, true) => part.fact("Found", Cell::tag("good", "unchanged so far")).link(
            format!("/console/audit-log/verify?after={}&hash={}", verified.number, verified.hash),
            "Check the next part",
        ),
        (None, false) => part.fact("Found", Cell::tag("good", "every entry follows from the one before")),
    };
    let words = "Anyone who can write to the store could cut off the end of the log. Save number and hash elsewhere, \
        and check later that they are still in the log.";
    let view = View::new(&staff, Some(Section::AuditLog), "Audit log verified").back("/console/audit-log", "Audit log");
    Ok(view.part(part.words(words)).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_link_to_older_entries_keeps_the_filters() {
        let filters = AuditFilters::parse("operator=Asha+Rao&operation=&id=cl_1&before=").unwrap_err();
        assert!(filters.message().contains("not valid"), "{filters:?}");
        let filters = AuditFilters::parse("operator=Asha+Rao&operation=&id=cl_1").unwrap();
        assert_eq!(filters.path_before(41), "/console/audit-log?operator=Asha+Rao&id=cl_1&before=41");
    }

    #[test]
    fn filters_match_by_operator_operation_and_id() {
        let entry = json!({"operator": "Asha Rao", "operator_id": "op_1", "operation": "grantCredits",
            "ids": {"client_id": "cl_1"}});
        let is_match = |query: &str| AuditFilters::parse(query).unwrap().matches(entry.as_object().unwrap());
        for query in ["", "operator=asha+rao", "operator=op_1", "operation=grantcredits&id=cl_1"] {
            assert!(is_match(query), "{query}");
        }
        for query in ["operator=Ravi", "operation=erase", "id=cl_2", "operator=op_1&id=cl_2"] {
            assert!(!is_match(query), "{query}");
        }
    }
}
