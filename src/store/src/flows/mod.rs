//! Flows that end upstream: opening, reporting and reading them.
//!
//! `record` holds what is read of a flow. `reporting` processes a report on any store: the domain
//! decides on what was read, and one atomic step writes it unless another change came first.
//! `encoding` seals what is written.

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
    /// The flow at its beginning; its id makes the operation repeatable.
    pub flow: FlowState,
    /// For a document to be signed: what polls show until something is reported, and what a lapse is
    /// reported with.
    pub payload: Option<EsignOutcome>,
    /// Until when it is kept while nothing is reported.
    pub until: Timestamp,
    /// What to replay when the client repeats the request under its `Idempotency-Key`.
    pub idempotency: Option<IdempotentAnswer>,
}

/// Records a report.
#[derive(Debug)]
pub struct ReportFlow {
    /// The report.
    pub report: FlowReport,
    /// How long a result can be fetched.
    pub result_ttl: Duration,
}

/// The outcome of [`ReportFlow`].
#[derive(Clone, Debug, PartialEq)]
pub enum ReportFlowOutcome {
    /// It is stored.
    Accepted {
        /// The flow from now on.
        flow: Box<FlowState>,
        /// Its delivery, when this call queued a webhook.
        queued: Option<QueuedDelivery>,
    },
    /// The same report came before; nothing was written.
    Repeated,
    /// The flow's state does not allow it; nothing was written.
    Refused(ReportRefusal),
    /// The app has no such flow, or not any more.
    NotFound,
}

/// The outcome of ending a document whose invitation may have ended.
#[derive(Clone, Debug, PartialEq)]
pub enum LapseFlowOutcome {
    /// It has lapsed, and ends as expired.
    Lapsed {
        /// The flow from now on.
        flow: Box<FlowState>,
        /// Its delivery, when this call queued a webhook.
        queued: Option<QueuedDelivery>,
    },
    /// It has not, or it had ended before; nothing was written.
    NotDue,
    /// There is no such flow, or not any more.
    NotFound,
}
