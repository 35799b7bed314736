//! Flows that end upstream, as every store keeps them.
//!
//! What goes into their transitions and what comes out is in `transition`, what is kept in
//! `record`. `reporting` carries a report out on any store: the domain decides on what was read, and
//! one atomic step writes it unless somebody else was faster.

mod record;
pub(crate) mod reporting;
mod transition;
mod written;

pub use record::{FlowDeliveries, FlowRecord, SealedPayload};
pub use transition::{LapseFlowOutcome, OpenFlow, OpenFlowOutcome, ReportFlow, ReportFlowOutcome};
pub(crate) use written::{Opening, PROGRESS};
