//! Fields that every flow has from its opening on.

use serde::{Deserialize, Serialize};

use super::flow_id::FlowId;
use super::transition::ReportRefusal;
use crate::ids::{AppId, ClientId};
use crate::request_id::RequestId;
use crate::retention::ClientRetention;
use crate::time::Timestamp;

/// Owner and origin of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowHeader {
    /// Its id.
    pub id: FlowId,
    /// The client that owns it.
    pub client: ClientId,
    /// The app that opened it; no other app may read it.
    pub app: AppId,
    /// Time of opening.
    pub opened_at: Timestamp,
    /// The correlation id of the request that opened it.
    pub request_id: RequestId,
    /// The client's own retention times, if any.
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
