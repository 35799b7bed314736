//! Flows, reports and helpers for the properties.

use std::time::Duration;

use sakshi_domain::delivery::QueuedDelivery;
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::{EsignFlow, EsignPending, EsignReport as _, EsignTerms};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::flow::wealth_consent::{WealthConsent, WealthTerms};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::retention::ClientRetention;
use sakshi_domain::tenancy::App;
use sakshi_domain::time::Timestamp;
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::read_report;
use sakshi_wire::reports::FlowReport;
use serde_json::{Value, json};

use super::TestStore;
use super::fixture::{RESULT_TTL, build_app, client_with, url};
use crate::{CreateOutcome, FlowRecord, OpenFlow, ReportFlow, ReportFlowOutcome};

/// Lifetime of an open flow and of its invitations.
pub(crate) const FLOW_TTL: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Time from the opening of a wealth-data consent to its end, as its upstream reports it.
pub(crate) const CONSENT_TERM: Duration = Duration::from_secs(365 * 24 * 3_600);

/// The ids of a client and of its app, which has webhook URLs for wealth data.
#[derive(Clone, Debug)]
pub(crate) struct ClientApp {
    pub(crate) client: ClientId,
    pub(crate) app: AppId,
}

pub(crate) async fn create_client_app(test: &impl TestStore) -> ClientApp {
    let client = client_with(test, 0).await;
    let hook = |host: &str| Some(url(&format!("https://{host}.example/hook")));
    let app = App {
        consent_webhook_url: hook("consent"),
        data_webhook_url: hook("data"),
        historical_webhook_url: hook("historical"),
        ..build_app(test, &client)
    };
    assert!(test.store().create_app(app.clone()).await.unwrap());
    ClientApp { client, app: app.app_id }
}

/// Registers a URL for every API type, concurrently.
pub(crate) async fn register_webhooks(test: &impl TestStore, client_app: &ClientApp) {
    let set = ApiType::ALL.iter().map(|api_type| {
        let hook = url(&format!("https://{}.example/hook", api_type.as_str().to_lowercase()));
        test.store().set_webhook_url(client_app.app.clone(), *api_type, Some(hook))
    });
    for urls in futures_util::future::join_all(set).await {
        assert!(urls.unwrap().is_some());
    }
}

/// A flow that can be opened and reported.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) id: FlowId,
    pub(crate) app: AppId,
    state: FlowState,
    invited_until: Timestamp,
    /// The flow whose ids the upstream uses in reports.
    upstream: FlowId,
}

impl Flow {
    /// Makes the upstream (the authority) report this flow under the ids of another flow.
    pub(crate) const fn with_upstream_ids_of(mut self, other: &Self) -> Self {
        self.upstream = other.upstream;
        self
    }

    pub(crate) fn opening(&self, test: &impl TestStore) -> OpenFlow {
        let payload = matches!(self.state, FlowState::ESign(_)).then(|| document_body(self, "Pending"));
        OpenFlow { flow: self.state.clone(), payload, until: test.now() + FLOW_TTL + RESULT_TTL, idempotency: None }
    }
}

/// Builds a flow of an app with the state that `state` returns.
fn build_flow(test: &impl TestStore, client_app: &ClientApp, state: impl FnOnce(FlowHeader) -> FlowState) -> Flow {
    let id = FlowId::generate(client_app.client.partition(), 5);
    let (client, app, request_id) = (client_app.client.clone(), client_app.app.clone(), RequestId::mint());
    let state = state(FlowHeader {
        id,
        client,
        app: app.clone(),
        opened_at: test.now(),
        request_id,
        retention: ClientRetention::default(),
    });
    Flow { id, app, state, invited_until: test.now() + FLOW_TTL, upstream: id }
}

/// Builds a flow that fetches documents from the document locker.
pub(crate) fn locker_flow(test: &impl TestStore, client_app: &ClientApp) -> Flow {
    build_flow(test, client_app, |header| FlowState::DocLocker(DocLockerFlow::new(header)))
}

/// Returns a document-locker flow with the retention of a client.
pub(crate) fn locker_with_retention(test: &impl TestStore, client_app: &ClientApp, retention: ClientRetention) -> Flow {
    build_flow(test, client_app, |header| FlowState::DocLocker(DocLockerFlow::new(FlowHeader { retention, ..header })))
}

/// Builds a flow that asks for consent to wealth data.
pub(crate) fn wealth_flow(test: &impl TestStore, client_app: &ClientApp) -> Flow {
    let terms = |header| WealthTerms { header, consent_handle: "handle-1".parse().unwrap() };
    build_flow(test, client_app, |header| FlowState::Wealth(WealthConsent::Requested(terms(header))))
}

/// Builds a flow that has a document signed. A response URL receives its webhook instead of the app's URL.
pub(crate) fn document_flow(test: &impl TestStore, client_app: &ClientApp, response_url: Option<&str>) -> Flow {
    let mut flow = locker_flow(test, client_app);
    let terms = EsignTerms {
        header: flow.state.header().clone(),
        reference: None,
        response_url: response_url.map(url),
        signer_references: Vec::new(),
    };
    let signers = document_body(&flow, "Pending").signers();
    flow.state = FlowState::ESign(EsignFlow::Pending(EsignPending::new(terms, signers)));
    flow
}

/// Returns the outcome of a signing as the upstream reports it.
fn document_body(flow: &Flow, status: &str) -> EsignOutcome {
    read_report(&serde_json::to_vec(&document_json(flow, status)).unwrap()).unwrap()
}

/// Returns a report of the signing provider about a document with one signer.
fn document_json(flow: &Flow, status: &str) -> Value {
    json!({"documentId": flow.id, "documentReferenceId": null, "content": null, "documentStatus": status,
        "signerInfo": [{
        "signerId": "signer-1", "signerRefId": null, "signerStatus": status, "signerName": "Asha Rao",
        "invitationExpireTimeStamp": flow.invited_until, "rejectReason": null, "nationalIdAuditInfo": null,
    }]})
}

/// Opens a flow. Asserts success.
pub(crate) async fn open_flow(test: &impl TestStore, flow: Flow) -> Flow {
    assert_eq!(test.store().open_flow(flow.opening(test)).await, Ok(CreateOutcome::Created));
    flow
}

/// A report of a flow's progress by its upstream, in short form. Equal `content` numbers stand for equal content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShortReport {
    /// The document locker's status of a fetch.
    Locker { status: &'static str, content: u8 },
    /// A fetched document of this many bytes.
    Large(usize),
    /// The signing status of a document.
    Document(&'static str),
    /// The status of a consent for wealth data.
    Consent { status: &'static str, content: u8 },
    /// Wealth data, raw or analysed, of a numbered fetch.
    Data { fetch: u8, form: &'static str, content: u8 },
    /// Historical wealth data of a numbered account.
    Historical { account: u8, content: u8 },
}

/// Returns a time in UTC as wealth-data reports write it, without the zone.
fn local_time(at: Timestamp) -> String {
    at.to_string()[.."2026-01-31T09:00:00".len()].replace('T', " ")
}

/// Builds the report of a flow by its upstream.
pub(crate) fn build_report(flow: &Flow, report: ShortReport) -> ReportFlow {
    let agreed_at = flow.state.header().opened_at;
    let (kind, mut body) = match report {
        ShortReport::Document(status) => (ReportKind::ESign, document_json(flow, status)),
        ShortReport::Locker { status, content } => (ReportKind::DocLocker, locker_json(flow, status, content)),
        ShortReport::Large(bytes) => {
            let mut body = locker_json(flow, "Fetched", 1);
            body["data"]["docs"][0]["dataPdf"] = json!("QUJD".repeat(bytes / 3));
            (ReportKind::DocLocker, body)
        }
        ShortReport::Consent { status, content } => (
            ReportKind::WealthConsent,
            json!({"uniqueIdentifier": flow.id, "consentHandle": "handle-1", "status": status,
                "consentId": format!("consent-{}", flow.upstream),
                "consentStartDate": local_time(agreed_at), "consentEndDate": local_time(agreed_at + CONSENT_TERM),
                "accounts": [{"accountId": "a", "fiType": "DEPOSIT", "fipId": "f", "maskedAccountNumber": "XX1"}],
                "userSessionId": format!("session-{content}")}),
        ),
        ShortReport::Data { fetch, form, content } => (
            ReportKind::WealthData,
            json!({"uniqueIdentifier": flow.id, "consentId": format!("consent-{}", flow.upstream),
                "consentHandle": "handle-1", "sessionId": "s",
                "accountId": "a", "fiType": "DEPOSIT", "fiDataStatus": "SUCCESS", "dataType": form,
                "dataOrigin": "aggregator",
                "fipId": "f", "desc": format!("content {content}"), "errMsg": null, "errStage": null,
                "fiRequestTrigger": null,
                "maskedAccountNumber": "XX1", "txnId": format!("fetch-{fetch}-{}", flow.upstream)}),
        ),
        ShortReport::Historical { account, content } => (
            ReportKind::WealthHistorical,
            json!({"uniqueIdentifier": flow.id, "accountId": format!("account-{account}"),
                "consentId": format!("consent-{}", flow.upstream),
                "status": "HISTORICAL_DATA_FETCH_SUCCESS", "fromDate": "2020-04-01", "toDate": "2026-01-31",
                "fiType": "DEPOSIT",
                "consentHandleId": "handle-1", "maskedAccountNumber": "XX1", "fipId": format!("fip-{content}")}),
        ),
    };
    body["app_id"] = json!(flow.app);
    let report = FlowReport::parse(kind, &serde_json::to_vec(&body).unwrap()).unwrap();
    ReportFlow { report, result_ttl: RESULT_TTL, pending_ttl: FLOW_TTL }
}

/// Returns a report of the locker provider about one issued document.
fn locker_json(flow: &Flow, status: &str, content: u8) -> Value {
    let is_fetched = status == "Fetched";
    let issued = json!({"name": "Card", "type": "file", "size": "3", "date": "2020-01-01", "uri": "u",
        "doctype": "CARD", "issuer": "i"});
    json!({"success": status != "Failed", "statusCode": 200, "message": format!("content {content}"), "data": {
        "transactionId": flow.id, "docs": [{
            "docType": "CARD", "status": status, "fetchedAt": is_fetched.then_some("2026-01-31T09:00:00Z"),
            "dataPdf": is_fetched.then_some("UERG"), "issued": if is_fetched { issued } else { Value::Null },
            "details": if is_fetched { json!({"name": "Asha Rao"}) } else { Value::Null },
        }],
    }})
}

/// Reports a flow. Asserts that the report is accepted, and returns the delivery that it queued.
pub(crate) async fn accept_report(test: &impl TestStore, flow: &Flow, report: ShortReport) -> Option<QueuedDelivery> {
    match test.store().report_flow(build_report(flow, report)).await.unwrap() {
        ReportFlowOutcome::Accepted { queued, .. } => queued,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn load_flow(test: &impl TestStore, flow: &Flow) -> Option<FlowRecord> {
    test.store().load_flow(flow.id, flow.app.clone()).await.unwrap()
}
