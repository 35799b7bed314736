//! Fields that every flow has from its opening on.

use serde::{Deserialize, Serialize};

use super::flow_id::FlowId;
use super::transition::ReportRefusal;
use crate::ids::{AppId, ClientId};
use crate::request_id::RequestId;
use crate::retention::ClientRetention;
use crate::time::Timestamp;

/// The owner and origin of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowHeader {
    /// The id of the flow.
    pub id: FlowId,
    /// The client that owns the flow.
    pub client: ClientId,
    /// The app that opened the flow. No other app may read it.
    pub app: AppId,
    /// Time of opening.
    pub opened_at: Timestamp,
    /// The correlation id of the request that opened the flow.
    pub request_id: RequestId,
    /// The client's own retention times, if any.
    #[serde(skip_serializing_if = "ClientRetention::is_usual", default)]
    pub retention: ClientRetention,
}

impl FlowHeader {
    /// Checks that a report names this flow and its app.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`] if either differs. The error does not reveal which.
    pub(crate) fn check_ids(&self, app: &AppId, id: FlowId) -> Result<(), ReportRefusal> {
        if self.app == *app && self.id == id { Ok(()) } else { Err(ReportRefusal::NotThisFlow) }
    }

    /// Returns the correlation id for the webhook. A report may leave it out.
    ///
    /// # Errors
    /// [`ReportRefusal::Contradicts`] if the report has another correlation id.
    pub(crate) fn check_request_id(&self, reported: Option<&RequestId>) -> Result<RequestId, ReportRefusal> {
        match reported {
            Some(reported) if *reported != self.request_id => Err(ReportRefusal::Contradicts("request_id")),
            _ => Ok(self.request_id.clone()),
        }
    }
}
