//! Status references and answers, without a network. `tests/api/credential_status.rs` tests every refusal.

use std::time::Duration;

use proptest::prelude::*;
use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};

use super::fixture::{Fixture, ISSUER, KID, NOW, sign};
use crate::sdjwt::{
    CredentialState, CredentialStatus, KeyBinding, StatusFault, StatusReference, TrustedIssuer, Verifier, status_key_id,
};

const URL: &str = "https://issuer.example/status/1";
const ID: &str = "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";

/// Verifies a credential with this `status`, and returns what was read of it.
fn status_of(status: Value) -> CredentialStatus {
    let fixture = Fixture::new();
    let mut payload = fixture.payload(&[]);
    payload["status"] = status;
    fixture.verify(&fixture.issue_payload(&payload, &[])).unwrap().status
}

/// Returns the reference in a valid `status`.
fn reference(status: Value) -> StatusReference {
    match status_of(status) {
        CredentialStatus::At(reference) => reference,
        other => panic!("{other:?}"),
    }
}

fn verifier(fixture: &Fixture) -> Verifier {
    Verifier::new(vec![TrustedIssuer { issuer: ISSUER.into(), jwks: fixture.jwks() }], KeyBinding::Off)
}

/// Signs a status answer as the issuer.
fn sign_answer(fixture: &Fixture, typ: &str, payload: &Value) -> Vec<u8> {
    let header = json!({"alg": "ES256", "typ": typ, "kid": KID});
    sign(&fixture.issuer, header.to_string().as_bytes(), payload.to_string().as_bytes()).into_bytes()
}

fn now() -> Timestamp {
    Timestamp::from_millis(NOW * 1_000)
}

#[test]
fn a_status_is_a_url_or_an_index_into_a_list() {
    assert_eq!(reference(URL.into()).url.as_str(), URL);
    assert_eq!(reference(json!({"status_list": {"idx": 7, "uri": URL}})).url.as_str(), URL);
    let list = |list: Value| json!({ "status_list": list });
    for malformed in [
        Value::Null,
        json!(1),
        json!([URL]),
        json!(""),
        json!("issuer.example/1"),
        json!("ftp://issuer.example/1"),
        json!("https://user:word@issuer.example/1"),
        json!(format!("https://issuer.example/{}", "a".repeat(3_000))),
        json!({}),
        list(json!({"idx": 1})),
        list(json!({"idx": -1, "uri": URL})),
        list(json!({"idx": "1", "uri": URL})),
        list(json!({"idx": 1.5, "uri": URL})),
        list(json!({"uri": URL})),
        list(json!([1, URL])),
    ] {
        assert_eq!(status_of(malformed.clone()), CredentialStatus::Malformed, "{malformed}");
    }
    let fixture = Fixture::new();
    let mut payload = fixture.payload(&[]);
    payload.as_object_mut().unwrap().remove("status");
    assert_eq!(fixture.verify(&fixture.issue_payload(&payload, &[])).unwrap().status, CredentialStatus::Absent);
}

#[test]
fn an_answer_may_be_used_until_exp_or_ttl_whichever_is_sooner() {
    let (fixture, reference) = (Fixture::new(), reference(URL.into()));
    let lifetime = |exp: Value, ttl: Value| {
        let mut payload = json!({"sub": ID, "status": "valid", "iat": NOW});
        for (name, value) in [("exp", exp), ("ttl", ttl)] {
            if !value.is_null() {
                payload[name] = value;
            }
        }
        verifier(&fixture)
            .read_status(&reference, &sign_answer(&fixture, "JWT", &payload), now())
            .map(|document| document.lifetime)
    };
    let seconds = |seconds| Ok(Some(Duration::from_secs(seconds)));
    assert_eq!(lifetime(Value::Null, Value::Null), Ok(None));
    assert_eq!(lifetime(json!(NOW + 60), Value::Null), seconds(60));
    assert_eq!(lifetime(Value::Null, json!(30)), seconds(30));
    assert_eq!(lifetime(json!(NOW + 60), json!(30)), seconds(30));
    assert_eq!(lifetime(json!(NOW + 20), json!(30)), seconds(20));
    assert_eq!(lifetime(json!(NOW as f64 + 0.5), Value::Null), Ok(Some(Duration::from_millis(500))));
    for (exp, ttl, fault) in [
        (json!(NOW), Value::Null, StatusFault::Stale),
        (json!("later"), Value::Null, StatusFault::Malformed),
        (Value::Null, json!(0), StatusFault::Malformed),
        (Value::Null, json!(-1), StatusFault::Malformed),
    ] {
        assert_eq!(lifetime(exp, ttl), Err(fault));
    }
}

#[test]
fn a_credential_is_not_accepted_as_a_status_answer() {
    let (fixture, reference) = (Fixture::new(), reference(URL.into()));
    let payload = json!({"id": ID, "status": "valid", "iat": NOW});
    for typ in ["vc+sd-jwt", "dc+sd-jwt", "kb+jwt"] {
        let answer = verifier(&fixture).read_status(&reference, &sign_answer(&fixture, typ, &payload), now());
        assert_eq!(answer.err(), Some(StatusFault::Malformed), "{typ}");
    }
    let answer = verifier(&fixture).read_status(&reference, &sign_answer(&fixture, "JWT", &payload), now()).unwrap();
    assert_eq!(answer.state(&reference), Ok(CredentialState::Valid));
}

#[test]
fn the_key_id_of_an_unverified_answer_is_read() {
    let fixture = Fixture::new();
    let token = sign_answer(&fixture, "JWT", &json!({}));
    let wrapped = json!({"status": String::from_utf8(token.clone()).unwrap()}).to_string();
    assert_eq!(status_key_id(&token).as_deref(), Some(KID));
    assert_eq!(status_key_id(wrapped.as_bytes()).as_deref(), Some(KID));
    for text in ["", "{}", "a.b.c", "{\"a\":1}"] {
        assert_eq!(status_key_id(text.as_bytes()), None);
    }
}

proptest! {
    #[test]
    fn no_answer_makes_the_reader_panic(body in prop::collection::vec(any::<u8>(), 0..300), text in ".{0,200}",
        bits in any::<u8>(), index in any::<u64>()) {
        let fixture = Fixture::new();
        let verifier = verifier(&fixture);
        let list = reference(json!({"status_list": {"idx": index, "uri": URL}}));
        for reference in [&reference(URL.into()), &list] {
            let _ = verifier.read_status(reference, &body, now());
            let _ = verifier.read_status(reference, text.as_bytes(), now());
        }
        let payload = json!({"sub": URL, "iat": NOW, "status_list": {"bits": bits,
            "lst": crate::encoding::base64url(&body)}});
        if let Ok(document) = verifier.read_status(&list, &sign_answer(&fixture, "statuslist+jwt", &payload), now()) {
            let _ = document.state(&list);
        }
    }
}
