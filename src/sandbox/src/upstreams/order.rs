//! Parsing of orders: each problem is collected with its path. Unknown members are ignored, as by an upstream that is
//! older than the service.

use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::ids::AppId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The common part of all orders.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// Id of the flow.
    pub(super) id: FlowId,
    /// App that opens the flow.
    pub(super) app: AppId,
    /// Correlation id of the app's request.
    pub(super) request_id: RequestId,
    pub(super) arrived_at: Timestamp,
}

/// The common members of all orders, as received. The name of the id depends on the upstream.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OrderDraft {
    #[serde(alias = "documentId", alias = "transactionId", alias = "eStampId", alias = "uniqueIdentifier")]
    id: Option<String>,
    app_id: Option<String>,
    request_id: Option<String>,
}

impl OrderDraft {
    /// Parses the common members. `id_field` is the name of the id, for problems.
    pub(super) fn parse(self, id_field: &str, now: Timestamp, invalid: &mut Invalid) -> Option<Order> {
        let id = invalid.check(id_field, self.id.ok_or("is required").and_then(|id| id.parse()));
        let app = self.app_id.ok_or_else(|| "is required".to_owned());
        let app =
            invalid.check("app_id", app.and_then(|app| app.parse::<AppId>().map_err(|problem| problem.to_string())));
        let request_id =
            invalid.check("request_id", self.request_id.ok_or("is required").and_then(|id| RequestId::parse(&id)));
        Some(Order { id: id?, app: app?, request_id: request_id?, arrived_at: now })
    }
}

/// Parses a JSON body.
pub(super) fn parse_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Invalid> {
    let to_problem = |error: serde_json::Error| {
        format!("is not the JSON of an order: line {}, column {}", error.line(), error.column())
    };
    serde_json::from_slice(body).map_err(|error| Invalid::one("body", to_problem(error)))
}

/// Parses a required text.
pub(super) fn parse_text(invalid: &mut Invalid, field: &str, value: Option<&str>) -> Option<Text> {
    let value = value.ok_or_else(|| "is required".to_owned());
    invalid.check(field, value.and_then(Text::not_blank))
}

/// Parses an optional text. Returns `Some(None)` if it is missing, and `None` if it is invalid.
pub(super) fn parse_optional_text(invalid: &mut Invalid, field: &str, value: Option<&str>) -> Option<Option<Text>> {
    value.map_or(Some(None), |value| invalid.check(field, Text::parse(value)).map(Some))
}

/// Parses a required id.
pub(super) fn parse_foreign_id(invalid: &mut Invalid, field: &str, value: Option<&str>) -> Option<ForeignId> {
    invalid.check(field, value.ok_or("is required").and_then(str::parse))
}

/// Parses a required file.
pub(super) fn parse_file(invalid: &mut Invalid, field: &str, value: Option<Box<str>>) -> Option<Base64File> {
    let value = value.ok_or_else(|| "is required".to_owned());
    invalid.check(field, value.and_then(Base64File::new))
}

/// Checks a required list of 1 to `entries_max` entries. Returns an empty list when it is invalid.
pub(super) fn check_list<T>(invalid: &mut Invalid, field: &str, list: Option<Vec<T>>, entries_max: usize) -> Vec<T> {
    let list = list.unwrap_or_default();
    if (1..=entries_max).contains(&list.len()) {
        return list;
    }
    invalid.add(field, format!("must hold 1 to {entries_max} entries"));
    Vec::new()
}

/// Returns the value, or the problems if there are any.
pub(super) fn value_or_problems<T>(invalid: Invalid, value: Option<T>) -> Result<T, Invalid> {
    invalid.or_ok()?;
    value.ok_or_else(|| Invalid::one("body", "is incomplete"))
}

/// Parses the required text to which the person agreed.
pub(super) fn parse_consent_text(invalid: &mut Invalid, value: Option<String>) -> Option<String> {
    invalid.check("consent_text", value.filter(|text| !text.trim().is_empty()).ok_or("is required"))
}
