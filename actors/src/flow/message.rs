//! What a flow can be asked. What is opened and reported can be large, so it comes as a ticket.

use actix::Message;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::ids::AppId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{CreateOutcome, FlowRecord, LapseFlowOutcome, OpenFlow, ReportFlowOutcome};
use sakshi_wire::reports::FlowReport;

use crate::router::Answered;
use crate::take_once::TakeTicket;

/// Open the flow.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Answered<CreateOutcome>")]
pub(crate) struct OpenFlowTicket(pub(crate) TakeTicket<OpenFlow>);

/// Record what an upstream reports.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Answered<ReportFlowOutcome>")]
pub(crate) struct ReportTicket(pub(crate) TakeTicket<FlowReport>);

/// End the document if an invitation has ended.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "Answered<LapseFlowOutcome>")]
pub(crate) struct Lapse;

/// What is the flow of this app now? The store answers, without an actor.
#[derive(Clone, Debug, Message)]
#[rtype(result = "Answered<Option<FlowRecord>>")]
pub(crate) struct GetFlow {
    pub(crate) id: FlowId,
    pub(crate) app: AppId,
}

/// Wake a flow's actor at its deadline.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct WakeAt {
    pub(crate) id: FlowId,
    pub(crate) at: Timestamp,
}
