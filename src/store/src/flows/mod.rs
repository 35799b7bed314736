//! Flows that end upstream: opening, reporting and reading them.
//!
//! `record` holds the readable state of a flow. `reporting` processes a report on any store: the domain decides, and
//! one atomic step writes it unless another change came first. `encoding` seals the written state.

pub(crate) mod encoding;
pub(crate) mod record;
pub(crate) mod reporting;

use std::time::Duration;

use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::transition::ReportRefusal;
use sakshi_domain::time::Timestamp;
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::reports::FlowReport;

pub use self::record::{FlowDeliveries, FlowRecord, SealedPayload};
use crate::idempotency::IdempotentAnswer;

/// Opens a flow.
#[derive(Debug)]
pub struct OpenFlow {
    /// The flow at its opening; its id makes the operation repeatable.
    pub flow: FlowState,
    /// For a document to be signed: the payload that polls return until the first report, and the base of the report
    /// that the invitation has lapsed.
    pub payload: Option<EsignOutcome>,
    /// Time until which the flow is kept without a report.
    pub until: Timestamp,
    /// Response to replay when the client retries the request under its `Idempotency-Key`.
    pub idempotency: Option<IdempotentAnswer>,
}

/// Records a report.
#[derive(Debug)]
pub struct ReportFlow {
    /// The report.
    pub report: FlowReport,
    /// Time for which a result can be fetched.
    pub result_ttl: Duration,
    /// Time for which a wealth-data consent waits for the next report.
    pub pending_ttl: Duration,
}

/// The outcome of [`ReportFlow`].
#[derive(Clone, Debug, PartialEq)]
pub enum ReportFlowOutcome {
    /// The report is stored.
    Accepted {
        /// The flow after the report.
        flow: Box<FlowState>,
        /// Its delivery, when this call queued a webhook.
        queued: Option<QueuedDelivery>,
    },
    /// The same report came before; nothing was written.
    Repeated,
    /// The flow's state does not allow the report; nothing was written.
    Refused(ReportRefusal),
    /// The app has no such flow, or no longer has it.
    NotFound,
}

/// The outcome of ending a document whose invitation may have lapsed.
#[derive(Clone, Debug, PartialEq)]
pub enum LapseFlowOutcome {
    /// The invitation has lapsed; the document ends as expired.
    Lapsed {
        /// The flow after the lapse.
        flow: Box<FlowState>,
        /// Its delivery, when this call queued a webhook.
        queued: Option<QueuedDelivery>,
    },
    /// The invitation has not lapsed, or the document ended before; nothing was written.
    NotDue,
    /// The flow does not exist, or no longer exists.
    NotFound,
}
