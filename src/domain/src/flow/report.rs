//! A connector's report: the body of the flow's webhook, and its app.

use crate::ids::AppId;

/// A well-formed report, not yet checked against its flow.
#[derive(Debug, PartialEq)]
pub struct Report<P> {
    /// `app_id`, which is dropped before sending.
    pub app: AppId,
    /// The reported body.
    pub payload: P,
}
