//! The handle through which the use cases reach flows.

use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_store::{CreateOutcome, FlowRecord, OpenFlow, ReportFlowOutcome};
use sakshi_wire::reports::FlowReport;

use super::actor::FlowActor;
use super::message::{GetFlow, OpenFlowTicket, ReportTicket};
use super::shard::AskFlow;
use crate::router::{AskError, ShardRouter};
use crate::take_once::TakeOnce;

/// Sends questions about flows to their shards, on behalf of one HTTP worker.
#[derive(Clone, Debug)]
pub struct Flows(pub(crate) ShardRouter<FlowActor>);

impl Flows {
    /// A new id, whose flow will be served by this worker's shard.
    #[must_use]
    pub fn new_id(&self, client: &ClientId) -> FlowId {
        FlowId::generate(client.partition(), self.0.new_shard_byte())
    }

    /// Opens a flow: from now on its upstream may report.
    ///
    /// # Errors
    /// [`AskError`]; the flow may then have been opened or not, and may be opened again.
    pub async fn open(&self, open: OpenFlow) -> Result<CreateOutcome, AskError> {
        let id = open.flow.header().id;
        let value = TakeOnce::new(open);
        self.0.ask(id, AskFlow { id, question: OpenFlowTicket(value.ticket()) }).await
    }

    /// Records what an upstream reports. Reports of one flow are recorded in the order in which they
    /// arrive. A report that still waits when this future is dropped is discarded.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; the report may then have been recorded or not, and may be sent again.
    pub async fn report(&self, report: FlowReport) -> Result<ReportFlowOutcome, AskError> {
        let id = report.flow();
        let value = TakeOnce::new(report);
        self.0.ask(id, AskFlow { id, question: ReportTicket(value.ticket()) }).await
    }

    /// The flow of this app as it is now, and the last report about it.
    ///
    /// # Errors
    /// [`AskError`] when there is no answer; asking again is safe.
    pub async fn get(&self, id: FlowId, app: AppId) -> Result<Option<FlowRecord>, AskError> {
        self.0.ask(id, GetFlow { id, app }).await
    }
}
