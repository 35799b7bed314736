//! A refused request of an app, as its developers look it up. It has no value that was sent.

use serde::{Deserialize, Serialize};

use crate::request_id::RequestId;
use crate::time::Timestamp;

/// One refused request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedRequest {
    /// When it was refused.
    pub at: Timestamp,
    /// The HTTP method.
    pub method: String,
    /// The pattern of its route, without ids; `unmatched` when there is no such path.
    pub route: String,
    /// The HTTP status.
    pub status: u16,
    /// The code of the error table.
    pub code: String,
    /// The fields that were not acceptable, by path.
    pub fields: Vec<String>,
    /// The `errorId` of the answer.
    pub request_id: RequestId,
}
