//! Responses and webhooks of a single verification.

use std::sync::Arc;

use sakshi_domain::channel::Channel;
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::ids::{AppId, ClientId, TxnId};
use sakshi_domain::language::Language;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::tenancy::KeyCase;
use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::{
    AnswerDigest, Completed, Failure, OptionalTerms, Outcome, Pending, Terms, VerifiedClaims,
};
use serde_json::{Map, Value, json};

use crate::ovse::{OutcomeData, OvsePayload, OvsePending, OvseResult};

fn completed_transaction(outcome: Outcome) -> Completed {
    let extras = OptionalTerms { client_reference_id: Some("order-7".into()), ..OptionalTerms::default() };
    let terms = Terms {
        claims: ClaimSet::from_iter([Claim::Name]),
        channel: Channel::Web,
        language: Language::ENGLISH,
        face_auth: true,
        webhook_url: None,
        request_id: RequestId::parse("req-1").unwrap(),
        extras: Some(Box::new(extras)),
    };
    let opened = Pending {
        id: "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11".parse().unwrap(),
        client: ClientId::generate(),
        app: AppId::generate(),
        event: None,
        opened_at: Timestamp::from_millis(0),
        expires_at: Timestamp::from_millis(900_000),
        terms,
    };
    Completed { opened, verified_at: Timestamp::from_millis(1_000), outcome, answer: AnswerDigest([0; 32]) }
}

fn verified_transaction() -> Completed {
    let claims: Map<String, Value> = [("residentName".to_owned(), json!("Asha Rao"))].into_iter().collect();
    completed_transaction(Outcome::Verified(Arc::new(VerifiedClaims::new(claims))))
}

#[test]
fn the_default_spelling_has_snake_case_keys_in_data() {
    assert_eq!(
        serde_json::to_value(OvsePayload::new(&verified_transaction(), KeyCase::SnakeCase)).unwrap(),
        json!({"success": true, "statusCode": 200, "message": "Verification successful", "request_id": "req-1",
            "data": {
            "txn_id": "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11", "pending": false, "verification_passed": true,
            "verified_claims": {"residentName": "Asha Rao"}, "verified_at": "1970-01-01T00:00:01.000Z",
            "client_reference_id": "order-7"}})
    );
}

#[test]
fn the_other_spelling_has_camel_case_keys_in_data() {
    let body = serde_json::to_value(OvsePayload::new(&verified_transaction(), KeyCase::CamelCase)).unwrap();
    let keys: Vec<&str> = body["data"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut expected = ["txnId", "pending", "verificationPassed", "verifiedClaims", "verifiedAt", "clientReferenceId"];
    expected.sort_unstable();
    let mut keys = keys;
    keys.sort_unstable();
    assert_eq!(keys, expected);
}

#[test]
fn a_failure_has_its_reason_twice_and_its_code_once() {
    let failed = completed_transaction(Outcome::NotVerified(Failure::new("User Reject", Some("301"))));
    let body = serde_json::to_value(OvsePayload::new(&failed, KeyCase::SnakeCase)).unwrap();
    assert_eq!((body["success"].clone(), body["statusCode"].clone()), (json!(false), json!(200)));
    assert_eq!(body["message"], "User Reject");
    assert_eq!(body["data"]["message"], "User Reject");
    assert_eq!(body["data"]["error_code"], "301");
    assert_eq!(body["data"]["verification_passed"], false);
    assert_eq!(body["data"]["verified_claims"], json!({}));
}

#[test]
fn a_pending_response_has_the_id_in_both_spellings() {
    let id: TxnId = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11".parse().unwrap();
    let pending = serde_json::to_value(OvsePending::new(id)).unwrap();
    assert_eq!(
        pending,
        json!({"success": true, "pending": true, "data": {"txnId": id, "txn_id": id, "pending": true}})
    );
}

#[test]
fn every_payload_matches_the_described_result() {
    let failed = completed_transaction(Outcome::NotVerified(Failure::new("User Reject", Some("301"))));
    for (completed, case) in [
        (verified_transaction(), KeyCase::SnakeCase),
        (verified_transaction(), KeyCase::CamelCase),
        (failed, KeyCase::CamelCase),
    ] {
        let written = serde_json::to_value(OvsePayload::new(&completed, case)).unwrap();
        let read: OvseResult = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), written, "no member is added or lost");
        let OvseResult::Outcome(outcome) = read else { panic!("{written}") };
        assert_eq!(matches!(outcome.data, OutcomeData::Snake(_)), case == KeyCase::SnakeCase);
    }
    let pending =
        serde_json::to_value(OvsePending::new("3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11".parse().unwrap())).unwrap();
    assert!(matches!(serde_json::from_value(pending).unwrap(), OvseResult::Pending(_)));
}
