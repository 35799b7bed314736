//! What a connector posts: the body of the flow's webhook, and the app that it is for.

use crate::ids::AppId;

/// A report that is well-formed; whether it is true of its flow is the flow's to say.
#[derive(Debug, PartialEq)]
pub struct Report<P> {
    /// `app_id`, which is dropped before sending.
    pub app: AppId,
    /// What is reported.
    pub payload: P,
}
