//! The door to all flows of the node.

use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::reported::FlowReport;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_store::{FlowRecord, OpenFlow, OpenFlowOutcome, ReportFlowOutcome};

use crate::door::{AskError, Door};
use crate::flow::{OpenIt, TakeIn};
use crate::parcel::Parcel;
use crate::registry::{FlowRegistry, Here, LookHere};

/// Asks flows on behalf of one worker.
#[derive(Clone, Debug)]
pub struct Flows {
    pub(crate) door: Door<FlowRegistry>,
    pub(crate) local: usize,
}

impl Flows {
    /// A fresh id whose flow will live on this worker.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> FlowId {
        FlowId::generate(client.partition(), self.door.shards.shard_byte_of(self.local))
    }

    /// Opens a flow: from now on its upstream may report.
    ///
    /// # Errors
    /// [`AskError`]; the flow may then have been opened or not, and may be opened again.
    pub async fn open(&self, open: OpenFlow) -> Result<OpenFlowOutcome, AskError> {
        let id = open.flow.header().id;
        let parcel = Parcel::new(open);
        self.door.ask(id, Here { id, question: OpenIt(parcel.slip()) }).await
    }

    /// Takes in what an upstream reports. Reports of one flow are taken in the order in which they
    /// arrive. One that is still waiting when this future is dropped is forgotten.
    ///
    /// # Errors
    /// [`AskError`] when its fate is not known; it may be reported again.
    pub async fn report(&self, report: FlowReport) -> Result<ReportFlowOutcome, AskError> {
        let id = report.flow();
        let parcel = Parcel::new(report);
        self.door.ask(id, Here { id, question: TakeIn(parcel.slip()) }).await
    }

    /// How the flow of this app stands, and what was reported of it last.
    ///
    /// # Errors
    /// [`AskError`] when that cannot be told now.
    pub async fn look(&self, id: FlowId, app: AppId) -> Result<Option<FlowRecord>, AskError> {
        self.door.ask(id, LookHere { id, app }).await
    }
}
