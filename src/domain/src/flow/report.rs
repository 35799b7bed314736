//! A connector's report: the body of the flow's webhook, with the app.

use crate::ids::AppId;

/// A well-formed report, not yet checked against its flow.
#[derive(Debug, PartialEq)]
pub struct Report<P> {
    /// The app of the flow: `app_id` in the report, which is not part of the webhook.
    pub app: AppId,
    /// The reported body.
    pub payload: P,
}
