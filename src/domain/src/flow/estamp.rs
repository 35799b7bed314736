//! The e-stamp flow: a workflow of the registry, or one on paper, runs until it is completed,
//! refused or out of time (specification, "E-stamp payload"; it has no poll).

use serde::{Deserialize, Serialize};

use super::api_type::ApiType;
use super::dedup::DedupKey;
use super::ended::FlowEnd;
use super::header::FlowHeader;
use super::report::Report;
use super::statuses::WorkflowStatus;
use super::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use super::webhook_target::WebhookTarget;
use crate::payload::estamp::EStampPayload;
use crate::time::Timestamp;

/// Which kind of e-stamp; its reports do not say it, its opening did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EStampKind {
    /// Of the registry.
    #[serde(rename = "RegistryEStamp")]
    Registry,
    /// On paper.
    #[serde(rename = "PhysicalEStamp")]
    Physical,
}

impl EStampKind {
    /// The kind that an API type stands for.
    ///
    /// # Errors
    /// The two that do.
    pub const fn of(api_type: ApiType) -> Result<Self, &'static str> {
        match api_type {
            ApiType::RegistryEStamp => Ok(Self::Registry),
            ApiType::PhysicalEStamp => Ok(Self::Physical),
            ApiType::ESign | ApiType::DocLocker => Err("must be RegistryEStamp or PhysicalEStamp"),
        }
    }

    /// What decides the webhook's address.
    #[must_use]
    pub const fn webhook_target(self) -> WebhookTarget<'static> {
        match self {
            Self::Registry => WebhookTarget::RegistryEStamp,
            Self::Physical => WebhookTarget::PhysicalEStamp,
        }
    }
}

/// What an e-stamp flow was opened with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EStampTerms {
    /// Whose it is.
    #[serde(rename = "opened")]
    pub header: FlowHeader,
    /// Which kind.
    pub kind: EStampKind,
}

/// One e-stamp on its way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EStampFlow {
    /// In progress.
    Pending {
        /// What it was opened with.
        #[serde(rename = "opened")]
        terms: EStampTerms,
        /// The latest report, if there was one.
        latest: Option<ReportDigest>,
    },
    /// It is over.
    Ended {
        /// What it was opened with.
        #[serde(rename = "opened")]
        terms: EStampTerms,
        /// How it ended; never pending.
        end: FlowEnd<WorkflowStatus>,
    },
}

impl EStampFlow {
    /// A flow at its beginning.
    #[must_use]
    pub const fn new(terms: EStampTerms) -> Self {
        Self::Pending { terms, latest: None }
    }

    /// What it was opened with.
    #[must_use]
    pub const fn terms(&self) -> &EStampTerms {
        match self {
            Self::Pending { terms, .. } | Self::Ended { terms, .. } => terms,
        }
    }

    /// Holds a report against the flow.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`].
    pub fn admit(&self, report: Report<EStampPayload>) -> Result<Admitted<EStampPayload>, ReportRefusal> {
        self.terms().header.check_ids(&report.app, report.payload.data.e_stamp_id)?;
        Ok(Admitted::new(report.payload))
    }

    /// What an admitted report makes of the flow.
    ///
    /// # Errors
    /// [`ReportRefusal::AlreadyEnded`] after the end unless it is the report that ended it.
    pub fn report(
        &self,
        report: &Admitted<EStampPayload>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<Self>, ReportRefusal> {
        let terms = match self {
            Self::Ended { end, .. } => return end.judge_repeat(digest, end.how.as_str()),
            Self::Pending { latest, .. } if *latest == Some(digest) => return Ok(Transition::Repeated),
            Self::Pending { terms, .. } => terms.clone(),
        };
        let how = report.payload().data.workflow_status;
        if how == WorkflowStatus::Pending {
            return Ok(Transition::Progressed { next: Self::Pending { terms, latest: Some(digest) } });
        }
        let webhook = DedupKey::estamp(&terms.header.app, terms.header.id);
        Ok(Transition::WebhookDue { next: Self::Ended { terms, end: FlowEnd { how, at: now, report: digest } }, webhook })
    }
}
