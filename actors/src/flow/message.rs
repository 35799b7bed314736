//! What a flow's actor can be asked. What is opened and reported can be large: it comes as a slip.

use actix::Message;
use sakshi_domain::flow::reported::FlowReport;
use sakshi_store::{LapseFlowOutcome, OpenFlow, OpenFlowOutcome, ReportFlowOutcome, StoreError};

use crate::parcel::Slip;
use crate::registry::Unanswered;

/// What comes back: the answer, the store's trouble, or why nobody answers.
pub(crate) type FlowAnswer<T> = Result<Result<T, StoreError>, Unanswered>;

/// Something that a flow's actor carries out.
pub(crate) trait FlowQuestion: Message<Result = FlowAnswer<Self::Answer>> + Clone + Send + 'static {
    /// What is answered.
    type Answer: Send + 'static;
}

/// Open the flow.
#[derive(Clone, Debug, Message)]
#[rtype(result = "FlowAnswer<OpenFlowOutcome>")]
pub(crate) struct OpenIt(pub(crate) Slip<OpenFlow>);

impl FlowQuestion for OpenIt {
    type Answer = OpenFlowOutcome;
}

/// Take in what an upstream reports.
#[derive(Clone, Debug, Message)]
#[rtype(result = "FlowAnswer<ReportFlowOutcome>")]
pub(crate) struct TakeIn(pub(crate) Slip<FlowReport>);

impl FlowQuestion for TakeIn {
    type Answer = ReportFlowOutcome;
}

/// End the document if an invitation has ended.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "FlowAnswer<LapseFlowOutcome>")]
pub(crate) struct Lapse;

impl FlowQuestion for Lapse {
    type Answer = LapseFlowOutcome;
}
