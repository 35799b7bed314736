//! Flows and reports that the tests start from.

use std::time::Duration;

use sakshi_domain::clock::Clock as _;
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::{EsignFlow, EsignPending, EsignReport as _, EsignTerms};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::{App, KeyCase};
use sakshi_store::{OpenFlow, OpenFlowOutcome, Tenancy as _};
use sakshi_wire::esign::EsignOutcome;
use sakshi_wire::read_report;
use sakshi_wire::reports::FlowReport;
use serde_json::{Value, json};

use super::{Fixture, WINDOW};

/// How long the signers of the tests are invited.
pub(super) const INVITED: Duration = Duration::from_secs(7_200);

impl Fixture {
    fn begun(&self) -> FlowHeader {
        let (id, client, app) = (self.flows.new_id(&self.client), self.client.clone(), self.app.clone());
        FlowHeader { id, client, app, opened_at: self.clock.now(), request_id: RequestId::mint() }
    }

    /// A document to be signed by two.
    pub(super) fn document(&self, response_url: &str) -> OpenFlow {
        let opened = self.begun();
        let payload: Value = self.document_body(opened.id, ["Pending", "Pending"]);
        let payload = read_report::<EsignOutcome>(&serde_json::to_vec(&payload).unwrap()).unwrap();
        let response_url = Some(HttpUrl::parse(response_url, Schemes::HttpAndHttps).unwrap());
        let opened = EsignTerms { header: opened, reference: None, response_url };
        let flow = FlowState::ESign(EsignFlow::Pending(EsignPending::new(opened, payload.signers())));
        OpenFlow { flow, payload: Some(payload), until: self.clock.now() + INVITED + WINDOW, idempotency: None }
    }

    pub(super) async fn open_document(&self, response_url: &str) -> FlowId {
        self.open_flow(self.document(response_url)).await
    }

    /// Documents of the locker whose webhook goes to this URL.
    pub(super) async fn open_locker(&self, url: &str) -> FlowId {
        let app = App {
            app_id: self.app.clone(),
            client_id: self.client.clone(),
            name: "Test".into(),
            payload_spelling: KeyCase::default(),
            consent_webhook_url: None,
            data_webhook_url: None,
            historical_webhook_url: None,
            created_at: self.clock.now(),
        };
        assert!(self.store.create_app(app).await.unwrap());
        let address = HttpUrl::parse(url, Schemes::HttpAndHttps).unwrap();
        self.store.set_webhook_url(self.app.clone(), ApiType::DocLocker, Some(address)).await.unwrap().unwrap();
        let flow = FlowState::DocLocker(DocLockerFlow::new(self.begun()));
        self.open_flow(OpenFlow { flow, payload: None, until: self.clock.now() + WINDOW, idempotency: None }).await
    }

    async fn open_flow(&self, open: OpenFlow) -> FlowId {
        let id = open.flow.header().id;
        assert_eq!(self.flows.open(open).await, Ok(OpenFlowOutcome::Opened));
        id
    }

    fn document_body(&self, id: FlowId, signers: [&str; 2]) -> Value {
        let signed = signers == ["Completed"; 2];
        let invited_until = self.clock.now() + INVITED;
        let signers = [1, 2].map(|number| {
            json!({"signerId": format!("signer-{number}"), "signerRefId": null, "signerStatus": signers[number - 1],
                "signerName": "Asha Rao", "invitationExpireTimeStamp": invited_until, "rejectReason": null,
                "nationalIdAuditInfo": (signers[number - 1] == "Completed").then(|| json!({
                    "name": "Asha Rao", "pincode": "560001", "state": "KA", "yearOfBirth": "1990", "gender": "F"}))})
        });
        json!({"documentId": id, "documentReferenceId": null, "content": signed.then_some("UERG"),
            "documentStatus": if signed { "Completed" } else { "Pending" }, "signerInfo": signers})
    }

    /// What is reported when these have signed.
    pub(super) fn signed(&self, id: FlowId, signers: [&str; 2]) -> FlowReport {
        self.parsed(ReportKind::ESign, self.document_body(id, signers))
    }

    /// The end of a document, with a file of so many bytes.
    pub(super) fn signed_file(&self, id: FlowId, bytes: usize) -> FlowReport {
        let mut body = self.document_body(id, ["Completed"; 2]);
        body["content"] = json!("QUJD".repeat(bytes / 3));
        self.parsed(ReportKind::ESign, body)
    }

    /// The end of a locker flow, with a file of so many bytes.
    pub(super) fn fetched(&self, id: FlowId, bytes: usize) -> FlowReport {
        let issued =
            json!({"name": "Card", "type": "file", "size": "3", "date": "2020-01-01", "uri": "u", "doctype": "CARD", "issuer": "i"});
        let body = json!({"success": true, "statusCode": 200, "message": "fetched", "data": {"transactionId": id, "docs": [{
            "docType": "CARD", "status": "Fetched", "fetchedAt": "2026-01-31T09:00:00Z", "dataPdf": "QUJD".repeat(bytes / 3),
            "issued": issued, "details": {"name": "Asha Rao"},
        }]}});
        self.parsed(ReportKind::DocLocker, body)
    }

    fn parsed(&self, kind: ReportKind, mut body: Value) -> FlowReport {
        body["app_id"] = json!(self.app);
        FlowReport::parse(kind, &serde_json::to_vec(&body).unwrap()).unwrap()
    }
}
