//! A refused request of an app, for its developers. It contains no submitted values.

use serde::{Deserialize, Serialize};

use crate::request_id::RequestId;
use crate::time::Timestamp;

/// A refused request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRequest {
    /// Time of the refusal.
    pub at: Timestamp,
    /// The HTTP method.
    pub method: String,
    /// The pattern of the route, without ids; `unmatched` for an unknown path.
    pub route: String,
    /// The HTTP status.
    pub status: u16,
    /// The error code.
    pub code: String,
    /// The paths of the invalid fields.
    pub fields: Vec<String>,
    /// The `errorId` of the response.
    pub request_id: RequestId,
}
