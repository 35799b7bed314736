//! The members around `data` (specification, "Document locker payload" and "E-stamp payload").

use serde::Serialize;

use crate::flow::reading::fields::Sentence;
use crate::flow::reading::{Fields, FromJson, Json};
use crate::flow::text::Text;
use crate::request_id::RequestId;

/// How a flow went, beside its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Envelope {
    /// Whether the flow gave what was asked for, or still may.
    pub success: bool,
    /// An HTTP status that says the same in another way.
    #[serde(rename = "statusCode")]
    pub status_code: StatusCode,
    /// A sentence.
    pub message: Text,
}

impl Envelope {
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (success, status_code, message) = (fields.required("success"), fields.required("statusCode"), fields.required("message"));
        Some(Self { success: success?, status_code: status_code?, message: message? })
    }
}

/// An HTTP status, 100 to 599.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct StatusCode(u16);

impl FromJson for StatusCode {
    fn from_json(json: Json) -> Result<Self, Sentence> {
        let number = if let Json::Number(number) = json { number.as_u64() } else { None };
        let status = number.and_then(|number| u16::try_from(number).ok()).filter(|status| (100..600).contains(status));
        status.map(Self).ok_or_else(|| "must be a whole number from 100 to 599".into())
    }
}

/// An answer that is given at once, in the form of the webhooks: `{success, statusCode, message,
/// request_id, data}`.
#[derive(Debug, Serialize)]
pub struct Answer<'a, D> {
    success: bool,
    #[serde(rename = "statusCode")]
    status_code: u16,
    message: &'a str,
    request_id: &'a RequestId,
    data: D,
}

impl<'a, D: Serialize> Answer<'a, D> {
    /// The answer of a request that was carried out.
    #[must_use]
    pub const fn ok(message: &'a str, request_id: &'a RequestId, data: D) -> Self {
        Self { success: true, status_code: 200, message, request_id, data }
    }
}
