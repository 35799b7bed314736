//! The e-stamp flow: a workflow of the registry, or on paper, which ends as completed, rejected or expired
//! (specification, "E-stamp payload"). It has no poll endpoint.

use serde::{Deserialize, Serialize};

use super::api_type::ApiType;
use super::dedup::DedupKey;
use super::flow_id::FlowId;
use super::header::FlowHeader;
use super::report::Report;
use super::statuses::WorkflowStatus;
use super::transition::{Admitted, FlowEnd, ReportDigest, ReportRefusal, Transition};
use super::webhook_target::WebhookTarget;
use crate::time::Timestamp;

/// The kind of e-stamp. The request names it; reports do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EStampKind {
    /// Registry e-stamp.
    #[serde(rename = "RegistryEStamp")]
    Registry,
    /// E-stamp on paper.
    #[serde(rename = "PhysicalEStamp")]
    Physical,
}

impl EStampKind {
    /// Returns the kind for an API type.
    ///
    /// # Errors
    /// A message that names the two API types of e-stamps.
    pub const fn from_api_type(api_type: ApiType) -> Result<Self, &'static str> {
        match api_type {
            ApiType::RegistryEStamp => Ok(Self::Registry),
            ApiType::PhysicalEStamp => Ok(Self::Physical),
            ApiType::ESign | ApiType::DocLocker => Err("must be RegistryEStamp or PhysicalEStamp"),
        }
    }

    /// Returns the target of the webhook.
    #[must_use]
    pub const fn webhook_target(self) -> WebhookTarget<'static> {
        match self {
            Self::Registry => WebhookTarget::RegistryEStamp,
            Self::Physical => WebhookTarget::PhysicalEStamp,
        }
    }
}

/// The opening terms of an e-stamp flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EStampTerms {
    /// The owner and origin of the flow.
    #[serde(rename = "opened")]
    pub header: FlowHeader,
    /// The kind of e-stamp.
    pub kind: EStampKind,
}

/// The state of an e-stamp flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EStampFlow {
    /// The workflow is in progress.
    Pending {
        /// The opening terms.
        #[serde(rename = "opened")]
        terms: EStampTerms,
        /// The latest report, if any.
        latest: Option<ReportDigest>,
    },
    /// The workflow is completed, rejected or expired.
    Ended {
        /// The opening terms.
        #[serde(rename = "opened")]
        terms: EStampTerms,
        /// The outcome, which is never pending, and its report.
        end: FlowEnd<WorkflowStatus>,
    },
}

/// A report on the flow.
pub trait EStampReport {
    /// Returns the id of the reported flow.
    fn stamp(&self) -> FlowId;

    /// Returns the status of the e-stamp.
    fn status(&self) -> WorkflowStatus;
}

impl EStampFlow {
    /// Creates the state of a newly opened flow.
    #[must_use]
    pub const fn new(terms: EStampTerms) -> Self {
        Self::Pending { terms, latest: None }
    }

    /// Returns the opening terms.
    #[must_use]
    pub const fn terms(&self) -> &EStampTerms {
        match self {
            Self::Pending { terms, .. } | Self::Ended { terms, .. } => terms,
        }
    }

    /// Checks a report against the flow.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`] for another flow or app.
    pub fn admit<P: EStampReport>(&self, report: Report<P>) -> Result<Admitted<P>, ReportRefusal> {
        self.terms().header.check_ids(&report.app, report.payload.stamp())?;
        Ok(Admitted::new(report.payload))
    }

    /// Computes the transition for an admitted report.
    ///
    /// # Errors
    /// [`ReportRefusal::AlreadyEnded`] after the end, unless the report is a copy of the one that ended the flow.
    pub fn report(
        &self,
        report: &Admitted<impl EStampReport>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<Self>, ReportRefusal> {
        let terms = match self {
            Self::Ended { end, .. } => return end.check_repeat(digest, end.outcome.as_str()),
            Self::Pending { latest, .. } if *latest == Some(digest) => return Ok(Transition::Repeated),
            Self::Pending { terms, .. } => terms.clone(),
        };
        let status = report.payload().status();
        if status == WorkflowStatus::Pending {
            return Ok(Transition::Progressed { next: Self::Pending { terms, latest: Some(digest) } });
        }
        let webhook = DedupKey::estamp(&terms.header.app, terms.header.id);
        Ok(Transition::WebhookDue {
            next: Self::Ended { terms, end: FlowEnd { outcome: status, at: now, report: digest } },
            webhook,
        })
    }
}
