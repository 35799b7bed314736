//! Reads the members of an order; every problem is noted under its path.
//!
//! Members that are not known are left alone, as an upstream that is older than the service would.

use sakshi_domain::flow::file::Base64File;
use sakshi_domain::flow::text::{ForeignId, Text};
use sakshi_domain::ids::AppId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use sakshi_domain::flow::flow_id::FlowId;

/// What every order says beside its matter.
#[derive(Clone, Debug)]
pub(super) struct Order {
    /// The flow.
    pub(super) id: FlowId,
    /// The app that it is for.
    pub(super) app: AppId,
    /// The correlation id of the request behind it.
    pub(super) request_id: RequestId,
    /// When it arrived.
    pub(super) taken_at: Timestamp,
}

/// The members of every order as they arrive; the flow's id is named differently in each.
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
        let app = invalid.check("app_id", app.and_then(|app| app.parse::<AppId>().map_err(|problem| problem.to_string())));
        let request_id = invalid.check("request_id", self.request_id.ok_or("is required").and_then(|id| RequestId::parse(&id)));
        Some(Order { id: id?, app: app?, request_id: request_id?, taken_at: now })
    }
}

/// Reads a body.
///
/// # Errors
/// It is not the JSON of an order.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Invalid> {
    let told = |error: serde_json::Error| format!("is not the JSON of an order: line {}, column {}", error.line(), error.column());
    serde_json::from_slice(body).map_err(|error| Invalid::one("body", told(error)))
}

/// A text that must be there.
pub(super) fn text(invalid: &mut Invalid, field: &str, given: Option<&str>) -> Option<Text> {
    let given = given.ok_or_else(|| "is required".to_owned());
    invalid.check(field, given.and_then(Text::not_blank))
}

/// A text that may be absent; `None` only when it is wrong.
pub(super) fn maybe_text(invalid: &mut Invalid, field: &str, given: Option<&str>) -> Option<Option<Text>> {
    given.map_or(Some(None), |given| invalid.check(field, Text::parse(given)).map(Some))
}

/// An id that must be there.
pub(super) fn foreign_id(invalid: &mut Invalid, field: &str, given: Option<&str>) -> Option<ForeignId> {
    invalid.check(field, given.ok_or("is required").and_then(str::parse))
}

/// A file that must be there.
pub(super) fn file(invalid: &mut Invalid, field: &str, given: Option<Box<str>>) -> Option<Base64File> {
    let given = given.ok_or_else(|| "is required".to_owned());
    invalid.check(field, given.and_then(Base64File::new))
}

/// A list of 1 to `most` that must be there; empty when it is wrong.
pub(super) fn list<T>(invalid: &mut Invalid, field: &str, given: Option<Vec<T>>, most: usize) -> Vec<T> {
    let given = given.unwrap_or_default();
    if (1..=most).contains(&given.len()) {
        return given;
    }
    invalid.add(field, format!("must hold 1 to {most} entries"));
    Vec::new()
}

/// What every checked part is worth: the value, unless anything was wrong.
pub(super) fn checked<T>(invalid: Invalid, value: Option<T>) -> Result<T, Invalid> {
    invalid.or_ok()?;
    value.ok_or_else(|| Invalid::one("body", "is incomplete"))
}
