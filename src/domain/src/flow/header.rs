//! What every flow has in common from the moment it is opened.

use serde::{Deserialize, Serialize};

use super::flow_id::FlowId;
use super::transition::ReportRefusal;
use crate::ids::{AppId, ClientId};
use crate::request_id::RequestId;
use crate::retention::ClientRetention;
use crate::time::Timestamp;

/// Who owns a flow and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowHeader {
    /// Its id.
    pub id: FlowId,
    /// The client that owns it.
    pub client: ClientId,
    /// The app that opened it; no other app may read it.
    pub app: AppId,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// The correlation id of the request that opened it.
    pub request_id: RequestId,
    /// For how long it is kept, when the client has times of its own.
    #[serde(skip_serializing_if = "ClientRetention::is_usual", default)]
    pub retention: ClientRetention,
}

impl FlowHeader {
    /// Checks that a report names this flow and its app.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`] when either differs; the caller does not learn which.
    pub(crate) fn check_ids(&self, app: &AppId, id: FlowId) -> Result<(), ReportRefusal> {
        if self.app == *app && self.id == id { Ok(()) } else { Err(ReportRefusal::NotThisFlow) }
    }

    /// Returns the flow's correlation id, which its webhook carries. A report may leave it out.
    ///
    /// # Errors
    /// [`ReportRefusal::Contradicts`] when the report names another one.
    pub(crate) fn check_request_id(&self, reported: Option<&RequestId>) -> Result<RequestId, ReportRefusal> {
        match reported {
            Some(reported) if *reported != self.request_id => Err(ReportRefusal::Contradicts("request_id")),
            _ => Ok(self.request_id.clone()),
        }
    }
}
