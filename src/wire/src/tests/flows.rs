//! Requests that open flows: their defaults, and every problem by its path.

use sakshi_domain::flow::esign::EsignFlow;
use sakshi_domain::flow::flow_id::FlowId;
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::limits::{FILE_BYTES_MAX, INVITATION_DEFAULT, INVITATION_MAX, SIGNERS_MAX};
use sakshi_domain::request_id::RequestId;
use serde_json::{Value, json};

use super::*;
use crate::doclocker::DocLockerInitRequest;
use crate::esign::EsignRequest;
use crate::estamp::EStampInitRequest;
use crate::wealth::WealthConsentRequest;

fn esign_body() -> Value {
    json!({"documentInfo": {"name": "Loan agreement", "content": "QUJD"}, "documentReferenceId": "loan-7",
        "signerInfo": [{"signerName": "Asha Rao", "signer_ref_id": "borrower"}, {"signerName": "Vikram Sample"}],
        "responseUrl": "https://client.example/hook"})
}

#[test]
fn an_invitation_of_a_signer_lasts_a_week_by_default() {
    let request: EsignRequest = read(&esign_body().to_string());
    assert_eq!(request.signer_info[1].invitation_expire_time_stamp.0, at(NOW) + INVITATION_DEFAULT);
    let client = ClientId::generate();
    let id = FlowId::generate(client.partition(), 0);
    let header = FlowHeader {
        id,
        client,
        app: AppId::generate(),
        opened_at: at(NOW),
        request_id: RequestId::mint(),
        retention: sakshi_domain::retention::ClientRetention::default(),
    };
    let opened = request.open(header);
    let EsignFlow::Pending(pending) = &opened.flow else { panic!() };
    assert_eq!(pending.terms.response_url.as_ref().unwrap().as_str(), "https://client.example/hook");
    assert_eq!((pending.signers.len(), opened.document.content.as_str()), (2, "QUJD"));
    assert_ne!(pending.signers[0].signer, pending.signers[1].signer);
    assert_eq!(json!(pending.terms.signer_references), json!(["borrower", null]));
    let poll = json!(opened.latest);
    assert_eq!(
        (&poll["documentId"], &poll["documentReferenceId"], &poll["documentStatus"]),
        (&json!(id), &json!("loan-7"), &json!("Pending"))
    );
    assert_eq!(poll["signerInfo"][0]["signerRefId"], "borrower");
}

#[test]
fn every_problem_of_an_esign_request_is_reported_by_its_path() {
    assert_eq!(invalid_fields::<EsignRequest>("{}"), ["documentInfo", "signerInfo"]);
    let late = at(NOW) + INVITATION_MAX + std::time::Duration::from_millis(1);
    let body = json!({"documentInfo": {"name": " ", "content": "no Base64!"},
        "signerInfo": [{}, {"signerName": "A", "invitationExpireTimeStamp": NOW}, {"signerName": "B",
            "invitationExpireTimeStamp": late},
            {"signerName": "C", "signerRefId": ""}],
        "responseUrl": "http://client.example/", "documentReferenceId": "x".repeat(129)});
    let expected = [
        "documentInfo.name",
        "documentInfo.content",
        "signerInfo[0].signerName",
        "signerInfo[1].invitationExpireTimeStamp",
        "signerInfo[2].invitationExpireTimeStamp",
        "signerInfo[3].signerRefId",
        "documentReferenceId",
        "responseUrl",
    ];
    assert_eq!(invalid_fields::<EsignRequest>(&body.to_string()), expected);
    for signers in [0, SIGNERS_MAX + 1] {
        let mut body = esign_body();
        body["signerInfo"] = vec![json!({"signerName": "A"}); signers].into();
        assert_eq!(
            problems::<EsignRequest>(&body.to_string()),
            [("signerInfo".to_owned(), "must hold 1 to 20 entries".to_owned())]
        );
    }
}

#[test]
fn a_file_has_at_most_ten_mebibytes() {
    // Three bytes become four characters.
    let with_file = |bytes: usize| {
        let mut body = esign_body();
        body["documentInfo"]["content"] =
            format!("{}{}", "QUFB".repeat(bytes / 3), ["", "QQ==", "QUE="][bytes % 3]).into();
        body.to_string()
    };
    assert!(invalid_fields::<EsignRequest>(&with_file(FILE_BYTES_MAX)).is_empty());
    assert_eq!(invalid_fields::<EsignRequest>(&with_file(FILE_BYTES_MAX + 1)), ["documentInfo.content"]);
}

#[test]
fn a_locker_request_needs_consent_and_names_each_document_once() {
    let body =
        |docs: &[&str], consent: &str| json!({"docs": docs, "consent": consent, "consentText": "I agree."}).to_string();
    let request: DocLockerInitRequest = read(&body(&["driving_licence"], "Y"));
    assert_eq!((request.docs.0[0].as_str(), request.consent.0.text()), ("driving_licence", "I agree."));
    assert_eq!(invalid_fields::<DocLockerInitRequest>(r#"{"docs": ["driving_licence"]}"#), ["consent", "consent_text"]);
    assert_eq!(invalid_fields::<DocLockerInitRequest>(&body(&["a", "b", "a", " "], "Y")), ["docs[2]", "docs[3]"]);
    assert_eq!(invalid_fields::<DocLockerInitRequest>(&body(&[], "N")), ["docs", "consent"]);
    assert_eq!(invalid_fields::<DocLockerInitRequest>(&body(&["a"; 21], "Y")), ["docs"]);
}

#[test]
fn an_e_stamp_request_needs_a_kind_a_document_and_signatories() {
    let body = |api_type: &str| {
        json!({"apiType": api_type, "document": {"documentName": "lease.pdf", "base64FileData": "QUJD"},
            "signatoriesInfo": [{"name": "Asha Rao", "email_id": "asha@example.com", "signType": "electronic"}]})
        .to_string()
    };
    for api_type in ["PhysicalEStamp", "RegistryEStamp"] {
        let written = json!(read::<EStampInitRequest>(&body(api_type)));
        assert_eq!(
            (&written["apiType"], &written["signatoriesInfo"][0]["emailID"]),
            (&json!(api_type), &json!("asha@example.com"))
        );
    }
    for other in ["ESign", "registryestamp", ""] {
        let expected = [("apiType".to_owned(), "must be RegistryEStamp or PhysicalEStamp".to_owned())];
        assert_eq!(problems::<EStampInitRequest>(&body(other)), expected);
    }
    assert_eq!(invalid_fields::<EStampInitRequest>("{}"), ["apiType", "document", "signatoriesInfo"]);
    for address in ["nobody", "@example.com", "asha@", ""] {
        let empty = json!({"apiType": "RegistryEStamp", "document": {}, "signatoriesInfo": [{"emailID": address}]});
        let expected = [
            "document.documentName",
            "document.base64FileData",
            "signatoriesInfo[0].name",
            "signatoriesInfo[0].emailID",
            "signatoriesInfo[0].signType",
        ];
        assert_eq!(invalid_fields::<EStampInitRequest>(&empty.to_string()), expected, "{address}");
    }
}

#[test]
fn a_wealth_consent_request_needs_the_consent_fields() {
    assert_eq!(
        read::<WealthConsentRequest>(r#"{"consent": "Y", "consentText": "I agree."}"#).consent.0.text(),
        "I agree."
    );
    assert_eq!(invalid_fields::<WealthConsentRequest>(r#"{"consent": "yes"}"#), ["consent", "consent_text"]);
}
