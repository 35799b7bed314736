//! Reports of connectors: the body of a webhook with its app, and the transitions that a report causes.

use sakshi_domain::flow::dates::LocalTime;
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

/// Reads a connector's body: `app_id` and the fields of the webhook.
impl<P: Body> Body for Report<P> {
    fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let (app, payload) = (fields.take("app_id"), P::read(fields));
        Some(Self { app: app?, payload: payload? })
    }
}

/// A connector's report on a flow.
#[derive(Debug, PartialEq)]
pub enum FlowReport {
    /// A report on a document to be signed.
    ESign(Report<EsignOutcome>),
    /// A report on documents from a locker.
    DocLocker(Report<DocLockerOutcome>),
    /// A report on an e-stamp.
    EStamp(Report<EStampOutcome>),
    /// A report on a wealth-data consent.
    WealthConsent(Report<WealthConsentChange>),
    /// A report on data under a wealth-data consent.
    WealthData(Report<WealthDataNotice>),
    /// A report on historical data under a wealth-data consent.
    WealthHistorical(Report<WealthHistoricalNotice>),
}

/// A report that its flow has admitted. It serialises as the payload to store and send.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AdmittedReport {
    /// A report on a document to be signed.
    ESign(Admitted<EsignOutcome>),
    /// A report on documents from a locker.
    DocLocker(Admitted<DocLockerOutcome>),
    /// A report on an e-stamp.
    EStamp(Admitted<EStampOutcome>),
    /// A report on a wealth-data consent.
    WealthConsent(Admitted<WealthConsentChange>),
    /// A report on data under a wealth-data consent.
    WealthData(Admitted<WealthDataNotice>),
    /// A report on historical data under a wealth-data consent.
    WealthHistorical(Admitted<WealthHistoricalNotice>),
}

impl Describe for FlowReport {
    fn schema() -> Value {
        reference("FlowReport")
    }

    fn collect(schemas: &mut Schemas) {
        let kinds = [
            report_schema::<EsignOutcome>(schemas),
            report_schema::<DocLockerOutcome>(schemas),
            report_schema::<EStampOutcome>(schemas),
            report_schema::<WealthConsentChange>(schemas),
            report_schema::<WealthDataNotice>(schemas),
            report_schema::<WealthHistoricalNotice>(schemas),
        ];
        schemas
            .insert("FlowReport".to_owned(), choice("anyOf", "A report on a flow. The path names its kind.", &kinds));
    }
}

/// Adds the schema of a report, and returns a reference to it: the body of the webhook with `app_id`, in which nullable
/// fields are optional.
fn report_schema<P: Describe>(schemas: &mut Schemas) -> Value {
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
    /// [`Invalid`] with every problem by its path, including unknown fields and unknown statuses.
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

    /// Returns the id of the flow that the report names.
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

    /// Returns the id of the app that the report names.
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

    /// Returns the key of the reported fetch within the flow; `None` if the report is about the flow itself.
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
    /// [`ReportRefusal::NotThisFlow`] for another flow, app or kind of flow; [`ReportRefusal::Contradicts`] for a field
    /// that contradicts the flow.
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
    /// Computes the transition of the flow, or of the reported fetch. `fetch` is the stored state of that fetch, if
    /// any.
    ///
    /// # Errors
    /// [`ReportRefusal`] with the reason why the flow refuses the report.
    pub fn transition(
        &self,
        flow: &FlowState,
        fetch: Option<FetchState>,
        digest: ReportDigest,
        now: Timestamp,
    ) -> Result<Transition<NextState>, ReportRefusal> {
        match (self, flow) {
            (Self::ESign(report), FlowState::ESign(flow)) => {
                map_next_state(flow.report(report, digest, now), |flow| NextState::Flow(FlowState::ESign(flow)))
            }
            (Self::DocLocker(report), FlowState::DocLocker(flow)) => {
                map_next_state(flow.report(report, digest, now), |flow| NextState::Flow(FlowState::DocLocker(flow)))
            }
            (Self::EStamp(report), FlowState::EStamp(flow)) => {
                map_next_state(flow.report(report, digest, now), |flow| NextState::Flow(FlowState::EStamp(flow)))
            }
            (Self::WealthConsent(report), FlowState::Wealth(consent)) => {
                map_next_state(consent.report(report, digest, now), |consent| {
                    NextState::Flow(FlowState::Wealth(consent))
                })
            }
            (Self::WealthData(report), FlowState::Wealth(consent)) => {
                let fetch = if let Some(FetchState::Data(fetch)) = fetch { fetch } else { DataFetch::default() };
                map_next_state(fetch.report(consent, report, digest), |fetch| NextState::Fetch(FetchState::Data(fetch)))
            }
            (Self::WealthHistorical(report), FlowState::Wealth(consent)) => {
                let fetch =
                    if let Some(FetchState::Historical(fetch)) = fetch { fetch } else { HistoricalFetch::default() };
                map_next_state(fetch.report(consent, report, digest), |fetch| {
                    NextState::Fetch(FetchState::Historical(fetch))
                })
            }
            _ => Err(ReportRefusal::NotThisFlow),
        }
    }

    /// Returns the end of the consent that a report on its status states.
    #[must_use]
    pub fn consent_end(&self) -> Option<LocalTime> {
        if let Self::WealthConsent(report) = self { report.payload().consent_end_date } else { None }
    }

    /// Returns the kind and status of the report, without personal data: `wealth-data RAW SUCCESS`.
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

    /// Returns the target of the webhook that is due: the URL in the request, or the kind of URL that the app has
    /// registered.
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

    /// Converts the report back to an unchecked one of this app, for another check after the flow has changed.
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

/// Converts the next state in a transition, from that of one kind of flow or fetch to that of any kind.
fn map_next_state<S>(
    transition: Result<Transition<S>, ReportRefusal>,
    into_next_state: impl FnOnce(S) -> NextState,
) -> Result<Transition<NextState>, ReportRefusal> {
    transition.map(|transition| transition.map(into_next_state))
}
