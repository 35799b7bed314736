//! Reads the members of an order and collects every problem by its path. Unknown members are ignored, as
//! an upstream that is older than the service would.

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
    /// The flow.
    pub(super) id: FlowId,
    /// The app that opens the flow.
    pub(super) app: AppId,
    /// The correlation id of the app's request.
    pub(super) request_id: RequestId,
    /// Time of its arrival.
    pub(super) taken_at: Timestamp,
}

/// The members that all orders have in common, as received; the name of the id differs.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OrderDraft {
    #[serde(alias = "documentId", alias = "transactionId", alias = "eStampId", alias = "uniqueIdentifier")]
    id: Option<String>,
    app_id: Option<String>,
    request_id: Option<String>,
}

impl OrderDraft {
    pub(super) fn check(self, id_field: &str, now: Timestamp, invalid: &mut Invalid) -> Option<Order> {
        let id = invalid.check(id_field, self.id.ok_or("is required").and_then(|id| id.parse()));
        let app = self.app_id.ok_or_else(|| "is required".to_owned());
        let app =
            invalid.check("app_id", app.and_then(|app| app.parse::<AppId>().map_err(|problem| problem.to_string())));
        let request_id =
            invalid.check("request_id", self.request_id.ok_or("is required").and_then(|id| RequestId::parse(&id)));
        Some(Order { id: id?, app: app?, request_id: request_id?, taken_at: now })
    }
}

/// Reads a JSON body.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Invalid> {
    let message = |error: serde_json::Error| {
        format!("is not the JSON of an order: line {}, column {}", error.line(), error.column())
    };
    serde_json::from_slice(body).map_err(|error| Invalid::one("body", message(error)))
}

/// Reads a required text.
pub(super) fn text(invalid: &mut Invalid, field: &str, given: Option<&str>) -> Option<Text> {
    let given = given.ok_or_else(|| "is required".to_owned());
    invalid.check(field, given.and_then(Text::not_blank))
}

/// Reads an optional text; the outer `None` means that it is invalid.
pub(super) fn optional_text(invalid: &mut Invalid, field: &str, given: Option<&str>) -> Option<Option<Text>> {
    given.map_or(Some(None), |given| invalid.check(field, Text::parse(given)).map(Some))
}

/// Reads a required id.
pub(super) fn foreign_id(invalid: &mut Invalid, field: &str, given: Option<&str>) -> Option<ForeignId> {
    invalid.check(field, given.ok_or("is required").and_then(str::parse))
}

/// Reads a required file.
pub(super) fn file(invalid: &mut Invalid, field: &str, given: Option<Box<str>>) -> Option<Base64File> {
    let given = given.ok_or_else(|| "is required".to_owned());
    invalid.check(field, given.and_then(Base64File::new))
}

/// Reads a required list of 1 to `most` entries; empty when it is invalid.
pub(super) fn list<T>(invalid: &mut Invalid, field: &str, given: Option<Vec<T>>, most: usize) -> Vec<T> {
    let given = given.unwrap_or_default();
    if (1..=most).contains(&given.len()) {
        return given;
    }
    invalid.add(field, format!("must hold 1 to {most} entries"));
    Vec::new()
}

/// Returns the value, unless there are problems.
pub(super) fn checked<T>(invalid: Invalid, value: Option<T>) -> Result<T, Invalid> {
    invalid.or_ok()?;
    value.ok_or_else(|| Invalid::one("body", "is incomplete"))
}

/// Reads the required declaration that the person agreed to.
pub(super) fn declaration(invalid: &mut Invalid, given: Option<String>) -> Option<String> {
    invalid.check("consent_text", given.filter(|text| !text.trim().is_empty()).ok_or("is required"))
}
