//! Requests that open flows: every problem by its path, and the flow that is opened.

use sakshi_domain::flow::doclocker::DocLockerFlow;
use sakshi_domain::flow::esign::EsignFlow;
use sakshi_domain::flow::estamp::EStampKind;
use sakshi_domain::flow::request::doclocker::DocLockerDraft;
use sakshi_domain::flow::request::esign::{DocumentDraft, EsignDraft, EsignRequest, SignerDraft};
use sakshi_domain::flow::request::estamp::{EStampDraft, FileDraft, SignatoryDraft};
use sakshi_domain::flow::request::wealth::WealthDraft;
use sakshi_domain::flow::wealth_consent::WealthConsent;
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::{INVITATION_DEFAULT, INVITATION_MAX, SIGNERS_MAX};
use serde_json::json;

use crate::fixtures::*;

fn esign_request(draft: EsignDraft) -> Result<EsignRequest, Invalid> {
    draft.check(|url| HttpUrl::parse(url, Schemes::HttpsOnly), early())
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn document(name: &str, content: &str) -> Option<DocumentDraft> {
    Some(DocumentDraft { name: some(name), content: Some(content.into()) })
}

fn signer(name: &str, until: Option<String>) -> SignerDraft {
    SignerDraft { signer_name: some(name), signer_ref_id: None, invitation_expire_time_stamp: until }
}

fn locker(docs: &[&str], consent: Option<&str>, consent_text: Option<&str>) -> DocLockerDraft {
    DocLockerDraft {
        docs: Some(docs.iter().map(|doc| (*doc).to_owned()).collect()),
        consent: consent.map(str::to_owned),
        consent_text: consent_text.map(str::to_owned),
    }
}

fn fields<T: std::fmt::Debug>(refused: Result<T, Invalid>) -> Vec<String> {
    refused.unwrap_err().fields().iter().map(|problem| problem.field.clone()).collect()
}

#[test]
fn an_esign_request_opens_a_flow() {
    let first = SignerDraft { signer_ref_id: some("borrower"), ..signer("Asha Rao", some("2026-02-07T09:30:00Z")) };
    let request = esign_request(EsignDraft {
        document_info: document("Loan agreement", "QUJD"),
        signer_info: Some(vec![first, signer("Vikram Sample", None)]),
        response_url: some("https://client.example/hook"),
        document_reference_id: some("loan-7"),
    });
    let request = request.unwrap();
    assert_eq!(request.signers[1].until, early() + INVITATION_DEFAULT);

    let opened = request.open(opened());
    let EsignFlow::Pending(pending) = &opened.flow else { panic!() };
    assert_eq!(pending.terms.response_url.as_ref().unwrap().as_str(), "https://client.example/hook");
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
fn every_problem_of_an_esign_request_is_told_by_its_path() {
    assert_eq!(fields(esign_request(EsignDraft::default())), ["documentInfo", "signerInfo"]);
    let late = (early() + INVITATION_MAX + std::time::Duration::from_millis(1)).to_string();
    let found = fields(esign_request(EsignDraft {
        document_info: document(" ", "no Base64!"),
        signer_info: Some(vec![
            SignerDraft::default(),
            signer("A", Some(early().to_string())),
            signer("B", Some(late)),
            SignerDraft { signer_ref_id: some(""), ..signer("C", None) },
        ]),
        response_url: some("http://client.example/"),
        document_reference_id: Some("x".repeat(129)),
    }));
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
    for signers in [0, SIGNERS_MAX + 1] {
        let signers = (0..signers).map(|_| signer("A", None)).collect();
        let draft = EsignDraft { document_info: document("A", "QUJD"), signer_info: Some(signers), ..EsignDraft::default() };
        assert_eq!(fields(esign_request(draft)), ["signerInfo"]);
    }
}

#[test]
fn documents_are_fetched_with_consent_and_each_once() {
    let request = locker(&["driving_licence"], Some("Y"), Some("I agree.")).check().unwrap();
    assert_eq!((request.docs[0].as_str(), request.consent.text()), ("driving_licence", "I agree."));
    assert!(matches!(request.open(opened()), DocLockerFlow::Pending { latest: None, .. }));
    assert_eq!(fields(locker(&["driving_licence"], None, None).check()), ["consent", "consent_text"]);
    assert_eq!(fields(locker(&["a", "b", "a", " "], Some("Y"), Some("I agree.")).check()), ["docs[2]", "docs[3]"]);
    assert_eq!(fields(locker(&[], Some("N"), Some("I agree.")).check()), ["docs", "consent"]);
}

#[test]
fn an_e_stamp_is_of_the_registry_or_on_paper() {
    let draft = |api_type: &str| EStampDraft {
        api_type: some(api_type),
        document: Some(FileDraft { document_name: some("lease.pdf"), file_data: Some("QUJD".into()) }),
        signatories_info: Some(vec![SignatoryDraft {
            name: some("Asha Rao"),
            email_id: some("asha@example.com"),
            sign_type: some("electronic"),
        }]),
    };
    let request = draft("PhysicalEStamp").check().unwrap();
    assert_eq!((request.kind, request.open(opened()).terms().kind), (EStampKind::Physical, EStampKind::Physical));
    assert_eq!(draft("RegistryEStamp").check().unwrap().kind, EStampKind::Registry);
    for other in ["ESign", "registryestamp", ""] {
        let refused = draft(other).check().unwrap_err();
        assert_eq!(refused.to_string(), "apiType: must be RegistryEStamp or PhysicalEStamp");
    }
    assert_eq!(fields(EStampDraft::default().check()), ["apiType", "document", "signatoriesInfo"]);
    let found = fields(
        EStampDraft {
            api_type: some("RegistryEStamp"),
            document: Some(FileDraft::default()),
            signatories_info: Some(vec![SignatoryDraft { email_id: some("nobody"), ..SignatoryDraft::default() }]),
        }
        .check(),
    );
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
    let check = |consent: &str, text: Option<&str>| WealthDraft { consent: some(consent), consent_text: text.map(str::to_owned) }.check();
    let flow = check("Y", Some("I agree.")).unwrap().open(opened(), "handle-1".parse().unwrap());
    assert!(matches!(&flow, WealthConsent::Asked(asked) if asked.consent_handle.as_str() == "handle-1"));
    assert_eq!(fields(check("yes", None)), ["consent", "consent_text"]);
}
