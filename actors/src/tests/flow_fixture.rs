//! Flows and reports for the tests.

use sakshi_domain::clock::Clock as _;
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::http_url::{HttpUrl, Schemes};
pub(super) use sakshi_kit::flow_records::INVITED;
use sakshi_kit::flow_records::{Party, TestFlow};
use sakshi_kit::records;
use sakshi_store::{CreateOutcome, OpenFlow};
use sakshi_wire::reports::FlowReport;
use serde_json::{Value, json};

use super::Fixture;

impl Fixture {
    fn test_flow(&self, id: FlowId) -> TestFlow {
        TestFlow { id, party: Party { client: self.client.clone(), app: self.app.clone(), now: self.clock.now() } }
    }

    fn new_flow(&self) -> TestFlow {
        self.test_flow(self.flows.new_id(&self.client))
    }

    /// Builds the opening of a document that two people must sign.
    pub(super) fn document_opening(&self, response_url: &str) -> OpenFlow {
        self.new_flow().document_opening(2, Some(HttpUrl::parse(response_url, Schemes::HttpAndHttps).unwrap()))
    }

    pub(super) async fn open_document(&self, response_url: &str) -> FlowId {
        self.open_flow(self.document_opening(response_url)).await
    }

    /// Opens a flow of the document locker whose webhook goes to this URL.
    pub(super) async fn open_locker_flow(&self, url: &str) -> FlowId {
        assert!(self.store.create_app(records::app(self.app.clone(), self.client.clone())).await.unwrap());
        let address = HttpUrl::parse(url, Schemes::HttpAndHttps).unwrap();
        self.store.set_webhook_url(self.app.clone(), ApiType::DocLocker, Some(address)).await.unwrap().unwrap();
        self.open_flow(self.new_flow().locker_opening()).await
    }

    async fn open_flow(&self, open: OpenFlow) -> FlowId {
        let id = open.flow.header().id;
        assert_eq!(self.flows.open(open).await, Ok(CreateOutcome::Created));
        id
    }

    /// Builds the body of a document's report; the document is completed if both signers have signed.
    fn document_body(&self, id: FlowId, signers: [&str; 2]) -> Value {
        let status = if signers == ["Completed"; 2] { "Completed" } else { "Pending" };
        self.test_flow(id).document_report_with(status, &signers)
    }

    /// Builds the report of a document whose signers have these statuses.
    pub(super) fn signed_report(&self, id: FlowId, signers: [&str; 2]) -> FlowReport {
        parse_report(ReportKind::ESign, &self.document_body(id, signers))
    }

    /// Builds the final report of a document, with a file of `bytes` bytes.
    pub(super) fn signed_report_with_file(&self, id: FlowId, bytes: usize) -> FlowReport {
        let mut body = self.document_body(id, ["Completed"; 2]);
        body["content"] = json!("QUJD".repeat(bytes / 3));
        parse_report(ReportKind::ESign, &body)
    }

    /// Builds the final report of a locker flow, with a file of `bytes` bytes.
    pub(super) fn locker_report(&self, id: FlowId, bytes: usize) -> FlowReport {
        parse_report(
            ReportKind::DocLocker,
            &self.test_flow(id).locker_report_with_file("Fetched", "QUJD".repeat(bytes / 3)),
        )
    }
}

fn parse_report(kind: ReportKind, body: &Value) -> FlowReport {
    FlowReport::parse(kind, &serde_json::to_vec(body).unwrap()).unwrap()
}
