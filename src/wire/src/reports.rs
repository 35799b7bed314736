//! Reports of connectors: the body of a webhook and its app, and the changes that a report makes to its flow.

use sakshi_domain::flow::esign::EsignFlow;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::{FetchState, FlowState, NextState};
use sakshi_domain::flow::report::Report;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::transition::{Admitted, ReportDigest, ReportRefusal, Transition};
use sakshi_domain::flow::wealth_data::DataFetch;
use sakshi_domain::flow::wealth_historical::HistoricalFetch;
use sakshi_domain::flow::webhook_target::WebhookTarget;
use sakshi_domain::ids::AppId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::body::{Body, Describe, Schemas, choice, reference};
use crate::doclocker::DocLockerOutcome;
use crate::esign::EsignOutcome;
use crate::estamp::EStampOutcome;
use crate::fields::{Fields, read_report};
use crate::wealth::{WealthConsentChange, WealthDataNotice, WealthHistoricalNotice};

/// A connector's body: `app_id` beside the fields of the webhook.
impl<P: Body> Body for Report<P> {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (app, payload) = (fields.take("app_id"), P::read(fields));
        Some(Self { app: app?, payload: payload? })
    }
}

/// A connector's report.
#[derive(Debug, PartialEq)]
pub enum FlowReport {
    /// On a document to be signed.
    ESign(Report<EsignOutcome>),
    /// On documents from a locker.
    DocLocker(Report<DocLockerOutcome>),
    /// On an e-stamp.
    EStamp(Report<EStampOutcome>),
    /// On a wealth-data consent.
    WealthConsent(Report<WealthConsentChange>),
    /// On data under such a consent.
    WealthData(Report<WealthDataNotice>),
    /// On historical data under such a consent.
    WealthHistorical(Report<WealthHistoricalNotice>),
}

/// A report that was checked against its flow. It serialises as the payload that is stored and sent.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AdmittedReport {
    /// On a document to be signed.
    ESign(Admitted<EsignOutcome>),
    /// On documents from a locker.
    DocLocker(Admitted<DocLockerOutcome>),
    /// On an e-stamp.
    EStamp(Admitted<EStampOutcome>),
    /// On a wealth-data consent.
    WealthConsent(Admitted<WealthConsentChange>),
    /// On data under such a consent.
    WealthData(Admitted<WealthDataNotice>),
    /// On historical data under such a consent.
    WealthHistorical(Admitted<WealthHistoricalNotice>),
}

impl Describe for FlowReport {
    fn schema() -> Value {
        reference("FlowReport")
    }

    fn collect(schemas: &mut Schemas) {
        let kinds = [
            reported::<EsignOutcome>(schemas),
            reported::<DocLockerOutcome>(schemas),
            reported::<EStampOutcome>(schemas),
            reported::<WealthConsentChange>(schemas),
            reported::<WealthDataNotice>(schemas),
            reported::<WealthHistoricalNotice>(schemas),
        ];
        schemas.insert("FlowReport".to_owned(), choice("anyOf", "What is reported; the path names its kind.", &kinds));
    }
}

/// Describes the body of a webhook as a connector reports it: `app_id` stands beside it, and nullable fields may be
/// left out.
fn reported<P: Describe>(schemas: &mut Schemas) -> Value {
    let (mut parts, payload) = (Schemas::new(), P::schema());
    P::collect(&mut parts);
    for schema in parts.values_mut() {
        let Some(mut required) = schema.get_mut("required").and_then(Value::as_array_mut).map(std::mem::take) else {
            continue;
        };
        required.retain(|name| {
            let property = &schema["properties"][name.as_str().unwrap_or_default()];
            let choices = property["type"].as_array().or(property["anyOf"].as_array());
            let may_be_null = choices
                .is_some_and(|choices| choices.iter().any(|choice| choice == "null" || choice["type"] == "null"));
            !may_be_null && property.get("default").is_none()
        });
        schema["required"] = required.into();
    }
    let name = payload["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()).unwrap_or_default();
    let mut report = parts.remove(name).unwrap_or_default();
    report["properties"]["app_id"] = AppId::schema();
    report["properties"]["app_id"]["description"] = "The app that the flow was opened for.".into();
    report["required"].as_array_mut().into_iter().for_each(|names| names.push("app_id".into()));
    report["additionalProperties"] = false.into();
    let name = format!("Reported{name}");
    let reference = reference(&name);
    parts.insert(name, report);
    schemas.extend(parts);
    reference
}

impl FlowReport {
    /// Reads a connector's body.
    ///
    /// # Errors
    /// Every problem with its path, unknown fields and unknown states included.
    pub fn parse(kind: ReportKind, bytes: &[u8]) -> Result<Self, Invalid> {
        match kind {
            ReportKind::ESign => read_report::<Report<_>>(bytes).map(Self::ESign),
            ReportKind::DocLocker => read_report::<Report<_>>(bytes).map(Self::DocLocker),
            ReportKind::EStamp => read_report::<Report<_>>(bytes).map(Self::EStamp),
            ReportKind::WealthConsent => read_report::<Report<_>>(bytes).map(Self::WealthConsent),
            ReportKind::WealthData => read_report::<Report<_>>(bytes).map(Self::WealthData),
            ReportKind::WealthHistorical => read_report::<Report<_>>(bytes).map(Self::WealthHistorical),
        }
    }

    /// Returns the kind of report.
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

    /// Returns the flow that it names.
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

    /// Returns the app that it names.
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

    /// Returns the key, within the flow, of the fetch that it is about; `None` when it is about the flow itself.
    #[must_use]
    pub fn fetch_key(&self) -> Option<String> {
        match self {
            Self::ESign(_) | Self::DocLocker(_) | Self::EStamp(_) | Self::WealthConsent(_) => None,
            Self::WealthData(report) => Some(format!("data {}", report.payload.txn_id)),
            Self::WealthHistorical(Report { payload, .. }) => {
                let WealthHistoricalNotice { consent_id, account_id, from_date, to_date, .. } = payload;
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
            (Self::WealthConsent(report), FlowState::Wealth(consent)) => {
                consent.admit(report).map(AdmittedReport::WealthConsent)
            }
            (Self::WealthData(report), FlowState::Wealth(consent)) => {
                consent.admit(report).map(AdmittedReport::WealthData)
            }
            (Self::WealthHistorical(report), FlowState::Wealth(consent)) => {
                consent.admit(report).map(AdmittedReport::WealthHistorical)
            }
            _ => Err(ReportRefusal::NotThisFlow),
        }
    }
}

impl AdmittedReport {
    /// Returns the transition of the flow, or of the fetch that the report is about. `fetch` is the state of that
    /// fetch, if it was reported before.
    ///
    /// # Errors
    /// The reason why the flow refuses it.
    pub fn transition(
        &self,
        flow: &FlowState,
        fetch: Option<FetchState>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<NextState>, ReportRefusal> {
        match (self, flow) {
            (Self::ESign(report), FlowState::ESign(flow)) => {
                next(flow.report(report, digest, now), |flow| NextState::Flow(FlowState::ESign(flow)))
            }
            (Self::DocLocker(report), FlowState::DocLocker(flow)) => {
                next(flow.report(report, digest, now), |flow| NextState::Flow(FlowState::DocLocker(flow)))
            }
            (Self::EStamp(report), FlowState::EStamp(flow)) => {
                next(flow.report(report, digest, now), |flow| NextState::Flow(FlowState::EStamp(flow)))
            }
            (Self::WealthConsent(report), FlowState::Wealth(consent)) => {
                next(consent.report(report, digest, now), |consent| NextState::Flow(FlowState::Wealth(consent)))
            }
            (Self::WealthData(report), FlowState::Wealth(consent)) => {
                let fetch = if let Some(FetchState::Data(fetch)) = fetch { fetch } else { DataFetch::default() };
                next(fetch.report(consent, report, digest), |fetch| NextState::Fetch(FetchState::Data(fetch)))
            }
            (Self::WealthHistorical(report), FlowState::Wealth(consent)) => {
                let fetch =
                    if let Some(FetchState::Historical(fetch)) = fetch { fetch } else { HistoricalFetch::default() };
                next(fetch.report(consent, report, digest), |fetch| NextState::Fetch(FetchState::Historical(fetch)))
            }
            _ => Err(ReportRefusal::NotThisFlow),
        }
    }

    /// Returns its kind and status, without personal data: `wealth-data RAW SUCCESS`.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::ESign(report) => format!("{} {}", ReportKind::ESign, report.payload().document_status),
            Self::DocLocker(report) => format!("{} {}", ReportKind::DocLocker, report.payload().status()),
            Self::EStamp(report) => format!("{} {}", ReportKind::EStamp, report.payload().data.workflow_status),
            Self::WealthConsent(report) => format!("{} {}", ReportKind::WealthConsent, report.payload().status),
            Self::WealthData(report) => {
                let WealthDataNotice { data_type, fi_data_status, .. } = report.payload();
                format!("{} {data_type} {fi_data_status}", ReportKind::WealthData)
            }
            Self::WealthHistorical(report) => format!("{} {}", ReportKind::WealthHistorical, report.payload().status),
        }
    }

    /// Returns the target of its webhook.
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

/// Wraps the next state of a flow or fetch of any kind.
fn next<S>(
    judged: Result<Transition<S>, ReportRefusal>,
    state: impl FnOnce(S) -> NextState,
) -> Result<Transition<NextState>, ReportRefusal> {
    judged.map(|transition| transition.map(state))
}
