//! The document locker flow: documents arrive until none is pending (specification, "Document locker
//! payload").

use serde::{Deserialize, Serialize};

use super::dedup::DedupKey;
use super::flow_id::FlowId;
use super::header::FlowHeader;
use super::report::Report;
use super::transition::{Admitted, FlowEnd, ReportDigest, ReportRefusal, Transition};
use crate::request_id::RequestId;
use crate::time::Timestamp;

/// The state of a document locker flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocLockerFlow {
    /// The flow waits for documents.
    Pending {
        /// The owner and origin of the flow.
        #[serde(rename = "opened")]
        header: FlowHeader,
        /// The latest report, if any.
        latest: Option<ReportDigest>,
    },
    /// The flow has ended: documents were fetched, or the fetch has failed.
    Ended {
        /// The owner and origin of the flow.
        #[serde(rename = "opened")]
        header: FlowHeader,
        /// The outcome and its report.
        end: FlowEnd<DocLockerEnd>,
    },
}

/// The outcome of a document locker flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocLockerEnd {
    /// At least one document was fetched.
    Fetched,
    /// No document was fetched.
    Failed,
}

impl DocLockerEnd {
    /// Returns the status in the specification's words.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fetched => "Fetched",
            Self::Failed => "Failed",
        }
    }
}

/// A report on the flow.
pub trait DocLockerReport {
    /// Returns the id of the reported flow.
    fn flow(&self) -> FlowId;

    /// Returns the correlation id.
    fn request_id(&mut self) -> &mut Option<RequestId>;

    /// Returns true if no document is pending.
    fn is_final(&self) -> bool;

    /// Returns true if a document was fetched or may still arrive.
    fn success(&self) -> bool;
}

impl DocLockerFlow {
    /// Creates the state of a newly opened flow.
    #[must_use]
    pub const fn new(header: FlowHeader) -> Self {
        Self::Pending { header, latest: None }
    }

    /// Returns the owner and origin of the flow.
    #[must_use]
    pub const fn header(&self) -> &FlowHeader {
        match self {
            Self::Pending { header, .. } | Self::Ended { header, .. } => header,
        }
    }

    /// Checks a report against the flow and fills in the correlation id.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`] for another flow or app; [`ReportRefusal::Contradicts`] for another correlation
    /// id.
    pub fn admit<P: DocLockerReport>(&self, report: Report<P>) -> Result<Admitted<P>, ReportRefusal> {
        let Report { app, mut payload } = report;
        self.header().check_ids(&app, payload.flow())?;
        let request_id = self.header().check_request_id(payload.request_id().as_ref())?;
        *payload.request_id() = Some(request_id);
        Ok(Admitted::new(payload))
    }

    /// Computes the transition for an admitted report.
    ///
    /// # Errors
    /// [`ReportRefusal::AlreadyEnded`] after the end, unless the report is a copy of the one that ended the flow.
    pub fn report(
        &self,
        report: &Admitted<impl DocLockerReport>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<Self>, ReportRefusal> {
        let header = match self {
            Self::Ended { end, .. } => return end.check_repeat(digest, end.outcome.as_str()),
            Self::Pending { latest, .. } if *latest == Some(digest) => return Ok(Transition::Repeated),
            Self::Pending { header, .. } => header.clone(),
        };
        if !report.payload().is_final() {
            return Ok(Transition::Progressed { next: Self::Pending { header, latest: Some(digest) } });
        }
        let webhook = DedupKey::doclocker(&header.app, header.id);
        let outcome = if report.payload().success() { DocLockerEnd::Fetched } else { DocLockerEnd::Failed };
        Ok(Transition::WebhookDue {
            next: Self::Ended { header, end: FlowEnd { outcome, at: now, report: digest } },
            webhook,
        })
    }
}
