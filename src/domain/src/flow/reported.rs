//! A report of any kind, and how it changes the flow that it is about.

use serde::Serialize;

use super::esign::EsignFlow;
use super::flow_id::FlowId;
use super::flow_state::{FetchState, FlowState, NextState};
use super::report::Report;
use super::report_kind::ReportKind;
use super::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use super::wealth_data::DataFetch;
use super::wealth_historical::HistoricalFetch;
use super::webhook_target::WebhookTarget;
use crate::ids::AppId;
use crate::invalid::Invalid;
use crate::payload::doclocker::DocLockerPayload;
use crate::payload::esign::EsignPayload;
use crate::payload::estamp::EStampPayload;
use crate::payload::wealth_consent::WealthConsentPayload;
use crate::payload::wealth_data::WealthDataPayload;
use crate::payload::wealth_historical::WealthHistoricalPayload;
use crate::time::Timestamp;

/// What a connector reports.
#[derive(Debug, PartialEq)]
pub enum FlowReport {
    /// On a document to be signed.
    ESign(Report<EsignPayload>),
    /// On documents from a locker.
    DocLocker(Report<DocLockerPayload>),
    /// On an e-stamp.
    EStamp(Report<EStampPayload>),
    /// On a wealth-data consent.
    WealthConsent(Report<WealthConsentPayload>),
    /// On data under such a consent.
    WealthData(Report<WealthDataPayload>),
    /// On historical data under such a consent.
    WealthHistorical(Report<WealthHistoricalPayload>),
}

/// A report that was checked against its flow. It serialises as the payload that is stored and sent.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AdmittedReport {
    /// On a document to be signed.
    ESign(Admitted<EsignPayload>),
    /// On documents from a locker.
    DocLocker(Admitted<DocLockerPayload>),
    /// On an e-stamp.
    EStamp(Admitted<EStampPayload>),
    /// On a wealth-data consent.
    WealthConsent(Admitted<WealthConsentPayload>),
    /// On data under such a consent.
    WealthData(Admitted<WealthDataPayload>),
    /// On historical data under such a consent.
    WealthHistorical(Admitted<WealthHistoricalPayload>),
}

impl FlowReport {
    /// Reads a connector's body.
    ///
    /// # Errors
    /// Every problem with its path, unknown fields and unknown states included.
    pub fn parse(kind: ReportKind, bytes: &[u8]) -> Result<Self, Invalid> {
        match kind {
            ReportKind::ESign => Report::parse(bytes).map(Self::ESign),
            ReportKind::DocLocker => Report::parse(bytes).map(Self::DocLocker),
            ReportKind::EStamp => Report::parse(bytes).map(Self::EStamp),
            ReportKind::WealthConsent => Report::parse(bytes).map(Self::WealthConsent),
            ReportKind::WealthData => Report::parse(bytes).map(Self::WealthData),
            ReportKind::WealthHistorical => Report::parse(bytes).map(Self::WealthHistorical),
        }
    }

    /// The kind of report.
    #[must_use]
    pub const fn kind(&self) -> ReportKind {
        match self {
            Self::ESign(_) => ReportKind::ESign,
            Self::DocLocker(_) => ReportKind::DocLocker,
            Self::EStamp(_) => ReportKind::EStamp,
            Self::WealthConsent(_) => ReportKind::WealthConsent,
            Self::WealthData(_) => ReportKind::WealthData,
            Self::WealthHistorical(_) => ReportKind::WealthHistorical,
        }
    }

    /// The flow that it names.
    #[must_use]
    pub const fn flow(&self) -> FlowId {
        match self {
            Self::ESign(report) => report.payload.document_id,
            Self::DocLocker(report) => report.payload.data.transaction_id,
            Self::EStamp(report) => report.payload.data.e_stamp_id,
            Self::WealthConsent(report) => report.payload.unique_identifier,
            Self::WealthData(report) => report.payload.unique_identifier,
            Self::WealthHistorical(report) => report.payload.unique_identifier,
        }
    }

    /// The app that it names.
    #[must_use]
    pub const fn app(&self) -> &AppId {
        match self {
            Self::ESign(report) => &report.app,
            Self::DocLocker(report) => &report.app,
            Self::EStamp(report) => &report.app,
            Self::WealthConsent(report) => &report.app,
            Self::WealthData(report) => &report.app,
            Self::WealthHistorical(report) => &report.app,
        }
    }

    /// Identifies, within the flow, the fetch that it is about; `None` when it is about the flow itself.
    #[must_use]
    pub fn fetch_key(&self) -> Option<String> {
        match self {
            Self::ESign(_) | Self::DocLocker(_) | Self::EStamp(_) | Self::WealthConsent(_) => None,
            Self::WealthData(report) => Some(format!("data {}", report.payload.txn_id)),
            Self::WealthHistorical(Report { payload, .. }) => {
                let WealthHistoricalPayload { consent_id, account_id, from_date, to_date, .. } = payload;
                Some(format!("historical {consent_id} {account_id} {from_date} {to_date}"))
            }
        }
    }

    /// Checks the report against its flow.
    ///
    /// # Errors
    /// [`ReportRefusal::NotThisFlow`], also for a flow of another kind; [`ReportRefusal::Contradicts`].
    pub fn admit(self, flow: &FlowState) -> Result<AdmittedReport, ReportRefusal> {
        match (self, flow) {
            (Self::ESign(report), FlowState::ESign(flow)) => flow.admit(report).map(AdmittedReport::ESign),
            (Self::DocLocker(report), FlowState::DocLocker(flow)) => flow.admit(report).map(AdmittedReport::DocLocker),
            (Self::EStamp(report), FlowState::EStamp(flow)) => flow.admit(report).map(AdmittedReport::EStamp),
            (Self::WealthConsent(report), FlowState::Wealth(consent)) => consent.admit(report).map(AdmittedReport::WealthConsent),
            (Self::WealthData(report), FlowState::Wealth(consent)) => DataFetch::admit(consent, report).map(AdmittedReport::WealthData),
            (Self::WealthHistorical(report), FlowState::Wealth(consent)) => {
                HistoricalFetch::admit(consent, report).map(AdmittedReport::WealthHistorical)
            }
            _ => Err(ReportRefusal::NotThisFlow),
        }
    }
}

impl AdmittedReport {
    /// How the report changes the flow, or the fetch that it is about. `fetch` is the state of that
    /// fetch, if it was reported before.
    ///
    /// # Errors
    /// Why the flow refuses it.
    pub fn transition(
        &self,
        flow: &FlowState,
        fetch: Option<FetchState>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<NextState>, ReportRefusal> {
        match (self, flow) {
            (Self::ESign(report), FlowState::ESign(flow)) => {
                flow.report(report, digest, now).map(|transition| transition.map(|next| NextState::Flow(FlowState::ESign(next))))
            }
            (Self::DocLocker(report), FlowState::DocLocker(flow)) => {
                flow.report(report, digest, now).map(|transition| transition.map(|next| NextState::Flow(FlowState::DocLocker(next))))
            }
            (Self::EStamp(report), FlowState::EStamp(flow)) => {
                flow.report(report, digest, now).map(|transition| transition.map(|next| NextState::Flow(FlowState::EStamp(next))))
            }
            (Self::WealthConsent(report), FlowState::Wealth(consent)) => {
                consent.report(report, digest, now).map(|transition| transition.map(|next| NextState::Flow(FlowState::Wealth(next))))
            }
            (Self::WealthData(report), FlowState::Wealth(consent)) => {
                let fetch = if let Some(FetchState::Data(fetch)) = fetch { fetch } else { DataFetch::default() };
                let judged = fetch.report(consent, report, digest);
                judged.map(|transition| transition.map(|next| NextState::Fetch(FetchState::Data(next))))
            }
            (Self::WealthHistorical(report), FlowState::Wealth(consent)) => {
                let fetch = if let Some(FetchState::Historical(fetch)) = fetch { fetch } else { HistoricalFetch::default() };
                let judged = fetch.report(consent, report, digest);
                judged.map(|transition| transition.map(|next| NextState::Fetch(FetchState::Historical(next))))
            }
            _ => Err(ReportRefusal::NotThisFlow),
        }
    }

    /// Its kind and the status that it reports, without personal data: `wealth-data RAW SUCCESS`.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::ESign(report) => format!("{} {}", ReportKind::ESign, report.payload().document_status),
            Self::DocLocker(report) => format!("{} {}", ReportKind::DocLocker, report.payload().standing()),
            Self::EStamp(report) => format!("{} {}", ReportKind::EStamp, report.payload().data.workflow_status),
            Self::WealthConsent(report) => format!("{} {}", ReportKind::WealthConsent, report.payload().status),
            Self::WealthData(report) => {
                let WealthDataPayload { data_type, fi_data_status, .. } = report.payload();
                format!("{} {data_type} {fi_data_status}", ReportKind::WealthData)
            }
            Self::WealthHistorical(report) => format!("{} {}", ReportKind::WealthHistorical, report.payload().status),
        }
    }

    /// What decides where its webhook goes.
    #[must_use]
    pub fn webhook_target<'a>(&self, flow: &'a FlowState) -> WebhookTarget<'a> {
        match (self, flow) {
            (Self::EStamp(_), FlowState::EStamp(flow)) => flow.terms().kind.webhook_target(),
            (Self::EStamp(_), _) => WebhookTarget::RegistryEStamp,
            (Self::ESign(_), FlowState::ESign(EsignFlow::Pending(pending))) => {
                WebhookTarget::ESign { response_url: pending.terms.response_url.as_ref() }
            }
            (Self::ESign(_), FlowState::ESign(EsignFlow::Ended(ended))) => {
                WebhookTarget::ESign { response_url: ended.terms.response_url.as_ref() }
            }
            (Self::ESign(_), _) => WebhookTarget::ESign { response_url: None },
            (Self::DocLocker(_), _) => WebhookTarget::DocLocker,
            (Self::WealthConsent(_), _) => WebhookTarget::WealthConsent,
            (Self::WealthData(_), _) => WebhookTarget::WealthData,
            (Self::WealthHistorical(_), _) => WebhookTarget::WealthHistorical,
        }
    }

    /// Turns it back into a report of this app, to check it again after the flow has changed.
    #[must_use]
    pub fn into_report(self, app: AppId) -> FlowReport {
        match self {
            Self::ESign(report) => FlowReport::ESign(report.into_report(app)),
            Self::DocLocker(report) => FlowReport::DocLocker(report.into_report(app)),
            Self::EStamp(report) => FlowReport::EStamp(report.into_report(app)),
            Self::WealthConsent(report) => FlowReport::WealthConsent(report.into_report(app)),
            Self::WealthData(report) => FlowReport::WealthData(report.into_report(app)),
            Self::WealthHistorical(report) => FlowReport::WealthHistorical(report.into_report(app)),
        }
    }
}
