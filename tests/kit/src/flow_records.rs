//! Flows opened in a store without HTTP, and reports about them as a connector would send them.

use std::time::Duration;

use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::{EsignFlow, EsignPending, EsignReport as _, EsignTerms};
use sakshi_domain::flow::estamp::{EStampFlow, EStampKind, EStampTerms};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::http_url::HttpUrl;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{CreateOutcome, OpenFlow, Store};
use sakshi_wire::esign::EsignOutcome;
use serde_json::{Value, json};

/// Duration of signers' invitations.
pub const INVITED: Duration = Duration::from_secs(7_200);

/// An app that opens flows at the time `now`.
#[derive(Clone, Debug)]
pub struct Party {
    pub client: ClientId,
    pub app: AppId,
    pub now: Timestamp,
}

/// A flow of an app.
#[derive(Clone, Debug)]
pub struct TestFlow {
    pub id: FlowId,
    pub party: Party,
}

impl Party {
    /// Returns a flow with a new id.
    fn new_flow(&self) -> TestFlow {
        TestFlow { id: FlowId::generate(self.client.partition(), 0), party: self.clone() }
    }

    /// Opens a flow of the document locker in the store.
    pub async fn open_locker(&self, store: &Store) -> TestFlow {
        let flow = self.new_flow();
        flow.open(store, flow.locker_opening()).await
    }

    /// Opens a document with one signer in the store.
    pub async fn open_document(&self, store: &Store) -> TestFlow {
        let flow = self.new_flow();
        flow.open(store, flow.document_opening(1, None)).await
    }

    /// Opens an e-stamp of the registry in the store.
    pub async fn open_stamp(&self, store: &Store) -> TestFlow {
        let flow = self.new_flow();
        let terms = EStampTerms { header: flow.header(), kind: EStampKind::Registry };
        flow.open(store, flow.opening(FlowState::EStamp(EStampFlow::new(terms)), None)).await
    }
}

impl TestFlow {
    async fn open(&self, store: &Store, open: OpenFlow) -> Self {
        assert_eq!(store.open_flow(open).await, Ok(CreateOutcome::Created));
        self.clone()
    }

    fn header(&self) -> FlowHeader {
        let Party { client, app, now } = self.party.clone();
        FlowHeader {
            id: self.id,
            client,
            app,
            opened_at: now,
            request_id: RequestId::mint(),
            retention: sakshi_domain::retention::ClientRetention::default(),
        }
    }

    fn opening(&self, flow: FlowState, payload: Option<EsignOutcome>) -> OpenFlow {
        OpenFlow { flow, payload, until: self.party.now + INVITED * 2, idempotency: None }
    }

    /// Builds the opening of a document locker flow.
    pub fn locker_opening(&self) -> OpenFlow {
        self.opening(FlowState::DocLocker(DocLockerFlow::new(self.header())), None)
    }

    /// Builds the opening of a document with this number of signers.
    pub fn document_opening(&self, signers: usize, response_url: Option<HttpUrl>) -> OpenFlow {
        let mut body = self.document_report_with("Pending", &vec!["Pending"; signers]);
        body.as_object_mut().expect("an object").remove("app_id");
        let payload = sakshi_wire::read_report::<EsignOutcome>(body.to_string().as_bytes()).expect("a report");
        let terms = EsignTerms { header: self.header(), reference: None, response_url, signer_references: Vec::new() };
        let flow = EsignFlow::Pending(EsignPending::new(terms, payload.signers()));
        self.opening(FlowState::ESign(flow), Some(payload))
    }

    /// Builds a report of documents of the locker.
    pub fn locker_report(&self, status: &str) -> Value {
        self.locker_report_with_file(status, "UERG".into())
    }

    /// As [`TestFlow::locker_report`], with a file in Base64.
    pub fn locker_report_with_file(&self, status: &str, file: String) -> Value {
        let is_fetched = status == "Fetched";
        let issued = json!({"name": "Card", "type": "file", "size": "3", "date": "2020-01-01", "uri": "u",
            "doctype": "C", "issuer": "i"});
        json!({"app_id": self.party.app, "success": status != "Failed", "statusCode": 200, "message": status, "data": {
            "transactionId": self.id, "docs": [{
                "docType": "CARD", "status": status, "fetchedAt": is_fetched.then_some("2026-01-31T09:00:00Z"),
                "dataPdf": is_fetched.then_some(file), "issued": if is_fetched { issued } else { Value::Null },
                "details": if is_fetched { json!({"name": "Asha Rao"}) } else { Value::Null },
            }],
        }})
    }

    /// Builds a report of a document with one signer.
    pub fn document_report(&self, status: &str) -> Value {
        self.document_report_with(status, &[status])
    }

    /// Builds a report of a document whose signers have these statuses.
    pub fn document_report_with(&self, status: &str, signers: &[&str]) -> Value {
        let audit = json!({"name": "Asha Rao", "pincode": "560000", "state": "Karnataka", "yearOfBirth": "1990",
            "gender": "F"});
        let signer = |(number, status): (usize, &&str)| {
            json!({"signerId": format!("signer-{number}"), "signerRefId": null, "signerStatus": status,
                "signerName": "Asha Rao",
                "invitationExpireTimeStamp": self.party.now + INVITED, "rejectReason": null,
                "nationalIdAuditInfo": if *status == "Completed" { audit.clone() } else { Value::Null }})
        };
        json!({"app_id": self.party.app, "documentId": self.id, "documentReferenceId": null,
            "content": (status == "Completed").then_some("UERG"), "documentStatus": status,
            "signerInfo": (1..).zip(signers).map(signer).collect::<Vec<_>>()})
    }
}
