//! What goes into the transitions of flows, and what comes out.

use std::time::Duration;

use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::reported::FlowReport;
use sakshi_domain::flow::transition::ReportRefusal;
use sakshi_domain::payload::esign::EsignPayload;
use sakshi_domain::time::Timestamp;

use crate::transition::IdempotentAnswer;
use crate::vault::Sealed;

/// Opens a flow.
#[derive(Debug)]
pub struct OpenFlow {
    /// The flow at its beginning; its id makes the transition repeatable.
    pub flow: FlowState,
    /// For a document to be signed: what polls show until something is reported, and what a lapse is
    /// reported with.
    pub payload: Option<EsignPayload>,
    /// Until when it is kept while nothing is reported.
    pub until: Timestamp,
    /// What to replay when the client repeats the request under its `Idempotency-Key`.
    pub idempotency: Option<IdempotentAnswer>,
}

/// What became of [`OpenFlow`].
#[derive(Clone, Debug, PartialEq)]
pub enum OpenFlowOutcome {
    /// Opened, now or by an earlier call under the same id.
    Opened,
    /// The idempotency key was used before with this body; nothing was written.
    Replayed(Sealed),
    /// The idempotency key was used before with another body; nothing was written.
    KeyReused,
    /// There is no such client.
    ClientNotFound,
}

/// Takes in a report.
#[derive(Debug)]
pub struct ReportFlow {
    /// What is reported, and of which flow.
    pub report: FlowReport,
    /// How long a result can be fetched.
    pub result_ttl: Duration,
}

/// What became of [`ReportFlow`].
#[derive(Clone, Debug, PartialEq)]
pub enum ReportFlowOutcome {
    /// It is stored.
    Accepted {
        /// The flow from now on.
        flow: Box<FlowState>,
        /// Its delivery, when a webhook was queued by this call.
        queued: Option<QueuedDelivery>,
    },
    /// The same report came before; nothing was written.
    Repeated,
    /// It does not follow from how the flow stands; nothing was written.
    Refused(ReportRefusal),
    /// The app has no such flow (any more).
    NotFound,
}

/// What became of a document whose invitation may have ended.
#[derive(Clone, Debug, PartialEq)]
pub enum LapseFlowOutcome {
    /// It has lapsed, and ends as expired.
    Lapsed {
        /// The flow from now on.
        flow: Box<FlowState>,
        /// Its delivery, when a webhook was queued by this call.
        queued: Option<QueuedDelivery>,
    },
    /// It has not, or it had ended before; nothing was written.
    NotDue,
    /// There is no such flow (any more).
    NotFound,
}
