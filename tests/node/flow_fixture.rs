//! Flows and reports for tests: opened in a store as a creation would, reported as a connector would.

use std::time::Duration;

use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::{EsignFlow, EsignPending, EsignReport as _, EsignTerms};
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::flow_state::FlowState;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::flow::wealth_consent::{WealthConsent, WealthTerms};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::request_id::RequestId;
use sakshi_domain::time::Timestamp;
use sakshi_store::{OpenFlow, OpenFlowOutcome, Store};
use sakshi_wire::esign::EsignOutcome;
use serde_json::{Value, json};

/// How long flows wait, and signers are invited.
const WAIT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// An app that opens flows.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    pub(crate) client: ClientId,
    pub(crate) app: AppId,
    pub(crate) now: Timestamp,
}

/// A flow that is open.
#[derive(Clone, Debug)]
pub(crate) struct Flow {
    pub(crate) id: FlowId,
    pub(crate) party: Party,
}

impl Party {
    pub(crate) async fn locker(&self, store: &dyn Store) -> Flow {
        self.open(store, |opened| (FlowState::DocLocker(DocLockerFlow::new(opened)), None)).await
    }

    pub(crate) async fn wealth(&self, store: &dyn Store) -> Flow {
        let asked = |opened| WealthConsent::Asked(WealthTerms { header: opened, consent_handle: "handle-1".parse().unwrap() });
        self.open(store, |opened| (FlowState::Wealth(asked(opened)), None)).await
    }

    pub(crate) async fn document(&self, store: &dyn Store) -> Flow {
        let pending = |opened: FlowHeader| {
            let report = Flow { id: opened.id, party: self.clone() }.document("Pending");
            let mut body = report;
            body.as_object_mut().unwrap().remove("app_id");
            let payload = sakshi_wire::read_report::<EsignOutcome>(body.to_string().as_bytes()).unwrap();
            let opened = EsignTerms { header: opened, reference: None, response_url: None };
            let flow = EsignFlow::Pending(EsignPending::new(opened, payload.signers()));
            (FlowState::ESign(flow), Some(payload))
        };
        self.open(store, pending).await
    }

    async fn open(&self, store: &dyn Store, standing: impl FnOnce(FlowHeader) -> (FlowState, Option<EsignOutcome>)) -> Flow {
        let id = FlowId::generate(self.client.partition(), 0);
        let (client, app, opened_at) = (self.client.clone(), self.app.clone(), self.now);
        let (flow, payload) = standing(FlowHeader { id, client, app, opened_at, request_id: RequestId::mint() });
        let open = OpenFlow { flow, payload, until: self.now + WAIT, idempotency: None };
        assert_eq!(store.open_flow(open).await, Ok(OpenFlowOutcome::Opened));
        Flow { id, party: self.clone() }
    }
}

impl Flow {
    /// A report of documents of the locker.
    pub(crate) fn locker(&self, status: &str) -> Value {
        self.locker_with(status, "UERG".into())
    }

    /// The same with a file in Base64.
    pub(crate) fn locker_with(&self, status: &str, file: String) -> Value {
        let fetched = status == "Fetched";
        let issued = json!({"name": "Card", "type": "file", "size": "3", "date": "2020-01-01", "uri": "u", "doctype": "C", "issuer": "i"});
        json!({"app_id": self.party.app, "success": status != "Failed", "statusCode": 200, "message": status, "data": {
            "transactionId": self.id, "docs": [{
                "docType": "CARD", "status": status, "fetchedAt": fetched.then_some("2026-01-31T09:00:00Z"),
                "dataPdf": fetched.then_some(file), "issued": if fetched { issued } else { Value::Null },
                "details": if fetched { json!({"name": "Asha Rao"}) } else { Value::Null },
            }],
        }})
    }

    /// A report of a document to be signed.
    pub(crate) fn document(&self, status: &str) -> Value {
        let signed = status == "Completed";
        let audit = json!({"name": "Asha Rao", "pincode": "560000", "state": "Karnataka", "yearOfBirth": "1990", "gender": "F"});
        json!({"app_id": self.party.app, "documentId": self.id, "documentReferenceId": null, "content": signed.then_some("UERG"),
        "documentStatus": status, "signerInfo": [{
            "signerId": "signer-1", "signerRefId": null, "signerStatus": status, "signerName": "Asha Rao",
            "invitationExpireTimeStamp": self.party.now + WAIT, "rejectReason": null,
            "nationalIdAuditInfo": if signed { audit } else { Value::Null },
        }]})
    }

    /// A report of a consent.
    pub(crate) fn consent(&self, status: &str) -> Value {
        json!({"app_id": self.party.app, "uniqueIdentifier": self.id, "consentHandle": "handle-1", "status": status,
            "consentId": "consent-1", "consentStartDate": "2026-01-31 09:00:00", "consentEndDate": "2027-01-31 09:00:00",
            "accounts": [{"accountId": "a", "fiType": "DEPOSIT", "fipId": "f", "maskedAccountNumber": "XX1"}], "userSessionId": "s"})
    }
}
