//! What opens a flow: drafts in both spellings, every problem by its path, and the flow that
//! follows.

use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::EsignFlow;
use sakshi_domain::flow::estamp::EStampKind;
use sakshi_domain::flow::request::doclocker::DocLockerDraft;
use sakshi_domain::flow::request::esign::{EsignDraft, EsignRequest};
use sakshi_domain::flow::request::estamp::EStampDraft;
use sakshi_domain::flow::request::wealth::WealthDraft;
use sakshi_domain::flow::wealth_consent::WealthConsent;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{INVITATION_DEFAULT, INVITATION_MAX, SIGNERS_MAX};
use sakshi_domain::web_address::Schemes;
use serde_json::{Value, json};

use crate::fixtures::*;

fn esign_request(draft: Value) -> Result<EsignRequest, Invalid> {
    serde_json::from_value::<EsignDraft>(draft).unwrap().check(Schemes::HttpsOnly, early())
}

fn fields<T: std::fmt::Debug>(refused: Result<T, Invalid>) -> Vec<String> {
    refused.unwrap_err().fields().iter().map(|problem| problem.field.clone()).collect()
}

#[test]
fn an_esign_request_opens_a_flow_in_either_spelling() {
    let camel = json!({
        "documentInfo": {"name": "Loan agreement", "content": "QUJD"},
        "signerInfo": [{"signerName": "Asha Rao", "signerRefId": "borrower", "invitationExpireTimeStamp": "2026-02-07T09:30:00Z"},
                       {"signerName": "Vikram Sample"}],
        "responseUrl": "https://client.example/hook", "documentReferenceId": "loan-7"});
    let snake = json!({
        "document_info": {"name": "Loan agreement", "content": "QUJD"},
        "signer_info": [{"signer_name": "Asha Rao", "signer_ref_id": "borrower", "invitation_expire_time_stamp": "2026-02-07T09:30:00Z"},
                        {"signer_name": "Vikram Sample"}],
        "response_url": "https://client.example/hook", "document_reference_id": "loan-7"});
    let request = esign_request(camel).unwrap();
    assert_eq!(request, esign_request(snake).unwrap());
    assert_eq!(request.signers[1].until, early() + INVITATION_DEFAULT);

    let opened = request.open(opened());
    let EsignFlow::Pending(pending) = &opened.flow else { panic!() };
    assert_eq!(pending.opened.response_url.as_ref().unwrap().as_str(), "https://client.example/hook");
    assert_eq!(pending.signers.len(), 2);
    assert_ne!(pending.signers[0].signer, pending.signers[1].signer);
    assert_eq!(opened.document.content.as_str(), "QUJD");
    let poll = serde_json::to_value(&opened.latest).unwrap();
    assert_eq!(
        (&poll["documentId"], &poll["documentReferenceId"], &poll["documentStatus"]),
        (&json!(FLOW), &json!("loan-7"), &json!("Pending"))
    );
    assert_eq!(poll["signerInfo"][0]["signerRefId"], "borrower");
}

#[test]
fn the_same_field_in_both_spellings_is_refused() {
    assert!(serde_json::from_str::<EsignDraft>(r#"{"responseUrl": "https://a.example", "response_url": "https://a.example"}"#).is_err());
    assert!(serde_json::from_str::<DocLockerDraft>(r#"{"consent_text": "I agree.", "consentText": "I agree."}"#).is_err());
}

#[test]
fn every_problem_of_an_esign_request_is_told_by_its_path() {
    assert_eq!(fields(esign_request(json!({}))), ["documentInfo", "signerInfo"]);
    let late = (early() + INVITATION_MAX + std::time::Duration::from_millis(1)).to_string();
    let found = fields(esign_request(json!({
        "documentInfo": {"name": " ", "content": "no Base64!"},
        "signerInfo": [{}, {"signerName": "A", "invitationExpireTimeStamp": early().to_string()}, {"signerName": "B", "invitationExpireTimeStamp": late},
                       {"signerName": "C", "signerRefId": ""}],
        "responseUrl": "http://client.example/", "documentReferenceId": "x".repeat(129)})));
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
    assert_eq!(found, expected);
    let many = vec![json!({"signerName": "A"}); SIGNERS_MAX + 1];
    for signers in [json!([]), json!(many)] {
        assert_eq!(fields(esign_request(json!({"documentInfo": {"name": "A", "content": "QUJD"}, "signerInfo": signers}))), ["signerInfo"]);
    }
}

#[test]
fn documents_are_fetched_with_consent_and_each_once() {
    let check = |draft: Value| serde_json::from_value::<DocLockerDraft>(draft).unwrap().check();
    let request = check(json!({"docs": ["driving_licence"], "consent": "Y", "consentText": "I agree."})).unwrap();
    assert_eq!((request.docs[0].as_str(), request.consent.text()), ("driving_licence", "I agree."));
    assert!(matches!(request.open(opened()), DocLockerFlow::Pending { latest: None, .. }));
    assert_eq!(fields(check(json!({"docs": ["driving_licence"]}))), ["consent", "consent_text"]);
    assert_eq!(fields(check(json!({"docs": ["a", "b", "a", " "], "consent": "Y", "consent_text": "I agree."}))), ["docs[2]", "docs[3]"]);
    assert_eq!(fields(check(json!({"docs": [], "consent": "N", "consent_text": "I agree."}))), ["docs", "consent"]);
}

#[test]
fn an_e_stamp_is_of_the_registry_or_on_paper() {
    let check = |draft: Value| serde_json::from_value::<EStampDraft>(draft).unwrap().check();
    let draft = |api_type: &str| {
        json!({"apiType": api_type, "document": {"documentName": "lease.pdf", "base64FileData": "QUJD"},
               "signatoriesInfo": [{"name": "Asha Rao", "emailID": "asha@example.com", "signType": "electronic"}]})
    };
    let request = check(draft("PhysicalEStamp")).unwrap();
    assert_eq!((request.kind, request.open(opened()).opened().kind), (EStampKind::Physical, EStampKind::Physical));
    assert_eq!(check(draft("RegistryEStamp")).unwrap().kind, EStampKind::Registry);
    for other in ["ESign", "registryestamp", ""] {
        let refused = check(draft(other)).unwrap_err();
        assert_eq!(refused.to_string(), "apiType: must be RegistryEStamp or PhysicalEStamp");
    }
    assert_eq!(fields(check(json!({}))), ["apiType", "document", "signatoriesInfo"]);
    let found = fields(check(json!({"apiType": "RegistryEStamp", "document": {}, "signatoriesInfo": [{"email_id": "nobody"}]})));
    let expected = [
        "document.documentName",
        "document.base64FileData",
        "signatoriesInfo[0].name",
        "signatoriesInfo[0].emailID",
        "signatoriesInfo[0].signType",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_wealth_consent_is_asked_for_with_the_consent_fields() {
    let check = |draft: Value| serde_json::from_value::<WealthDraft>(draft).unwrap().check();
    let request = check(json!({"consent": "Y", "consent_text": "I agree."})).unwrap();
    let flow = request.open(opened(), "handle-1".parse().unwrap());
    assert!(matches!(&flow, WealthConsent::Asked(asked) if asked.consent_handle.as_str() == "handle-1"));
    assert_eq!(fields(check(json!({"consent": "yes"}))), ["consent", "consent_text"]);
}
