//! A refused request of an app, for its developers. It contains no submitted value.

use serde::{Deserialize, Serialize};

use crate::request_id::RequestId;
use crate::time::Timestamp;

/// One refused request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRequest {
    /// Time of refusal.
    pub at: Timestamp,
    /// The HTTP method.
    pub method: String,
    /// The pattern of its route, without ids; `unmatched` for an unknown path.
    pub route: String,
    /// The HTTP status.
    pub status: u16,
    /// The code of the error table.
    pub code: String,
    /// The invalid fields, by path.
    pub fields: Vec<String>,
    /// The `errorId` of the response.
    pub request_id: RequestId,
}
