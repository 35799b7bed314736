//! What is true of every flow from the moment it is opened.

use serde::{Deserialize, Serialize};

use super::flow_id::FlowId;
use super::transition::ReportRefusal;
use crate::ids::{AppId, ClientId};
use crate::request_id::RequestId;
use crate::time::Timestamp;

/// Whose flow it is and where it came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowHeader {
    /// Its id.
    pub id: FlowId,
    /// The client that owns it.
    pub client: ClientId,
    /// The app that opened it and alone may read it.
    pub app: AppId,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// The correlation id of the request that opened it.
    pub request_id: RequestId,
}

impl FlowHeader {
    /// Holds the ids of a report against the flow's.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`] when either differs; which one is not told.
    pub fn check_ids(&self, app: &AppId, id: FlowId) -> Result<(), ReportRefusal> {
        if self.app == *app && self.id == id { Ok(()) } else { Err(ReportRefusal::NotThisFlow) }
    }

    /// The correlation id of the flow's webhook, which is that of its opening whatever a report says.
    ///
    /// # Errors
    /// [`ReportRefusal::Contradicts`] when a report says something else.
    pub fn check_request_id(&self, reported: Option<&RequestId>) -> Result<RequestId, ReportRefusal> {
        match reported {
            Some(reported) if *reported != self.request_id => Err(ReportRefusal::Contradicts("request_id")),
            _ => Ok(self.request_id.clone()),
        }
    }
}
