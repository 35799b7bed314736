//! `/console/audit-log`: the changes by operators, newest first, and the check of the chain of entries.

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
/// Largest number of entries that one page reads.
const READ_MAX: u64 = 1_000;
/// Number of entries read at once.
const STEP: u32 = 100;
/// Number of entries that one request checks.
const CHECKED_MAX: u64 = 5_000;

/// Filters of entries, with their labels.
const FILTERS: [(&str, &str); 3] = [
    ("operator", "Operator: name or id"),
    ("operation", "Operation, such as grantCredits"),
    ("id", "Id of what was changed"),
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
    fn of(query: &str) -> Result<Self, ApiError> {
        let mut query = Query::parse(query);
        let mut text = |name| query.text(name).unwrap_or_default();
        let (operator, operation, id) = (text("operator"), text("operation"), text("id"));
        let before = query.number(&["before"], 0..=u64::MAX, 0);
        query.finish().map(|()| Self { operator, operation, id, before })
    }

    fn admits(&self, entry: &Map<String, Value>) -> bool {
        let is = |name: &str, asked: &String| {
            entry.get(name).and_then(Value::as_str).is_some_and(|value| value.eq_ignore_ascii_case(asked))
        };
        let names = |asked: &String| ["operator", "operator_id", "subject"].iter().any(|name| is(name, asked));
        let ids = entry.get("ids").and_then(Value::as_object);
        (self.operator.is_empty() || names(&self.operator))
            && (self.operation.is_empty() || is("operation", &self.operation))
            && (self.id.is_empty() || ids.is_some_and(|ids| ids.values().any(|id| id.as_str() == Some(&self.id))))
    }

    fn values(&self) -> [&String; 3] {
        [&self.operator, &self.operation, &self.id]
    }

    /// Returns the address of the same query, further back.
    fn at(&self, before: u64) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for ((name, _), value) in FILTERS.iter().zip(self.values()).filter(|(_, value)| !value.is_empty()) {
            query.append_pair(name, value);
        }
        format!("/console/audit-log?{}", query.append_pair("before", &before.to_string()).finish())
    }
}

/// Shows a part of the log.
///
/// # Errors
/// Nobody has signed in, or the store is unavailable.
pub(crate) async fn show(staff: Staff, request: HttpRequest) -> Result<HttpResponse, ConsoleError> {
    let asked = AuditFilters::of(request.query_string())?;
    let head = staff.api.store.audit_head().await?;
    let mut before = if asked.before == 0 { head.number + 1 } else { asked.before.min(head.number + 1) };
    let end = before.saturating_sub(READ_MAX).max(1);
    let mut rows = Vec::new();
    while before > end && rows.len() < ROWS {
        let after = before.saturating_sub(1 + u64::from(STEP)).max(end - 1);
        let limit = u32::try_from(before - 1 - after).unwrap_or(STEP);
        let entries = staff.api.store.audit_log(after, limit).await?;
        for record in entries.iter().rev() {
            before = record.number;
            let entry = members(record)?;
            if asked.admits(&entry) {
                rows.push(row(record.number, &entry));
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
    for ((name, label), value) in FILTERS.into_iter().zip(asked.values()) {
        search = search.field(Field::new(name, label, "search", value.clone(), None));
    }
    let columns = &["No.", "At", "Operator", "Operation", "Stage", "On", "From", "Values"];
    let table = Table { caption: "Entries, the newest first", columns, rows };
    let words =
        "Each change has an entry before it (asked) and one with what came of it (answered). Entries name no secret.";
    let chain = Part::new("chain", "The chain")
        .words("Each entry holds the hash of the one before, so one that was changed or left out shows.")
        .fact("Entries", Cell::number(head.number))
        .fact("Newest hash", Cell::code(head.hash))
        .link("/console/audit-log/verify", "Verify the whole log");
    let view = View::new(&staff, Some(Section::AuditLog), "Audit log")
        .part(Part::new("filter", "Filter").form(search))
        .part(Part::new("entries", "Entries").words(words).table(table, "No entry here is of this kind."))
        .part(chain)
        .page((before > 1).then(|| asked.at(before)), "Older");
    Ok(view.ok())
}

fn members(record: &AuditRecord) -> Result<Map<String, Value>, ApiError> {
    serde_json::from_str(&record.entry).map_err(|_| ApiError::internal("an entry of the audit log cannot be read"))
}

fn row(number: u64, entry: &Map<String, Value>) -> Vec<Cell> {
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
    let links = ids
        .filter_map(|(_, id)| id.as_str())
        .map(|id| Cell::Link { href: format!("/console/find?id={id}"), text: id.to_owned() });
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

/// Checks a part of the chain, as `sakshi admin audit-log --verify` does, and links the next part.
///
/// # Errors
/// Nobody has signed in, or the store is unavailable.
pub(crate) async fn verify(staff: Staff, request: HttpRequest) -> Result<HttpResponse, ConsoleError> {
    let mut query = Query::parse(request.query_string());
    let number = query.number(&["after"], 0..=u64::MAX, 0);
    let hash = query.parse_with("hash", |text| text.parse().ok(), "must be a hash of 64 hexadecimal digits");
    query.finish()?;
    let first = AuditHead { number, hash: hash.unwrap_or(AuditHead::NONE.hash) };
    let head = staff.api.store.audit_head().await?;
    let (mut checked, mut fault) = (first, None);
    while fault.is_none() && checked.number < head.number && checked.number - first.number < CHECKED_MAX {
        let entries = staff.api.store.audit_log(checked.number, STEP).await?;
        if entries.is_empty() {
            fault = Some(format!("entry {} is missing", checked.number + 1));
        }
        for record in &entries {
            match checked.followed(record) {
                Ok(next) => checked = next,
                Err(found) => {
                    fault = Some(found);
                    break;
                }
            }
        }
    }
    let part = Part::new("chain", "The chain")
        .fact("Checked", Cell::text(format!("entries {} to {} of {}", first.number + 1, checked.number, head.number)))
        .fact("Hash there", Cell::code(checked.hash));
    let part = match (&fault, checked.number < head.number) {
        (Some(fault), _) => part.fact("Found", Cell::tag("bad", format!("not as it was written: {fault}"))),
        (None, true) => part.fact("Found", Cell::tag("good", "as it was written, so far")).link(
            format!("/console/audit-log/verify?after={}&hash={}", checked.number, checked.hash),
            "Check the next part",
        ),
        (None, false) => part.fact("Found", Cell::tag("good", "every entry follows from the one before")),
    };
    let words = "Who can write the store could cut its end off. Keep number and hash elsewhere, and look whether they \
        are still here later.";
    let view = View::new(&staff, Some(Section::AuditLog), "Audit log verified").back("/console/audit-log", "Audit log");
    Ok(view.part(part.words(words)).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_address_of_older_entries_asks_the_same() {
        let asked = AuditFilters::of("operator=Asha+Rao&operation=&id=cl_1&before=").unwrap_err();
        assert!(asked.message().contains("not valid"), "{asked:?}");
        let asked = AuditFilters::of("operator=Asha+Rao&operation=&id=cl_1").unwrap();
        assert_eq!(asked.at(41), "/console/audit-log?operator=Asha+Rao&id=cl_1&before=41");
    }

    #[test]
    fn a_filter_admits_by_operator_operation_and_id() {
        let entry = json!({"operator": "Asha Rao", "operator_id": "op_1", "operation": "grantCredits",
            "ids": {"client_id": "cl_1"}});
        let admits = |query: &str| AuditFilters::of(query).unwrap().admits(entry.as_object().unwrap());
        for query in ["", "operator=asha+rao", "operator=op_1", "operation=grantcredits&id=cl_1"] {
            assert!(admits(query), "{query}");
        }
        for query in ["operator=Ravi", "operation=erase", "id=cl_2", "operator=op_1&id=cl_2"] {
            assert!(!admits(query), "{query}");
        }
    }
}
