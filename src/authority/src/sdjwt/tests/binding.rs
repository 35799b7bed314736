//! Rule 8: the KB-JWT and its policy.

use sakshi_domain::limits::KEY_BINDING_CHARS_MAX;
use serde_json::{Value, json};

use super::Fixture;
use super::fixture::{NOW, jwk, sign, valid_disclosures};
use crate::sdjwt::{CredentialRefusal, KeyBinding};

/// Returns the refusal of a credential with a changed key binding; `None` if it is accepted.
fn refusal_with_binding(change: impl FnOnce(&mut Value, &mut Value)) -> Option<CredentialRefusal> {
    let fixture = Fixture::new();
    let presented = fixture.credential();
    let (mut header, mut payload) = (fixture.binding_header(), fixture.binding_payload(&presented));
    change(&mut header, &mut payload);
    fixture.verify(&fixture.bind(&presented, &header, &payload)).err()
}

/// Returns the refusal of a credential with a changed payload and a valid key binding.
fn refusal_with_payload(change: impl FnOnce(&mut Value)) -> CredentialRefusal {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let mut payload = fixture.payload(&disclosures);
    change(&mut payload);
    let presented = fixture.issue_payload(&payload, &disclosures);
    fixture.refusal(&fixture.bind(&presented, &fixture.binding_header(), &fixture.binding_payload(&presented)))
}

#[test]
fn a_key_binding_for_this_transaction_is_accepted() {
    let fixture = Fixture::new();
    assert!(fixture.verify(&fixture.bound_credential()).unwrap().holder_bound);
}

#[test]
fn the_policy_forbids_allows_or_requires_a_key_binding() {
    let mut fixture = Fixture::new();
    let (bare, bound) = (fixture.credential(), fixture.bound_credential());
    for (policy, bare_refusal, bound_refusal) in [
        (KeyBinding::Off, None, Some(CredentialRefusal::KeyBindingUnexpected)),
        (KeyBinding::WhenPresent, None, None),
        (KeyBinding::Required, Some(CredentialRefusal::KeyBindingMissing), None),
    ] {
        fixture.policy = policy;
        assert_eq!(fixture.verify(&bare).err(), bare_refusal, "{policy:?}");
        assert_eq!(fixture.verify(&bound).err(), bound_refusal, "{policy:?}");
    }
}

#[test]
fn a_key_binding_that_is_not_a_jws_is_refused() {
    let fixture = Fixture::new();
    let presented = fixture.credential();
    let not_an_object = sign(&fixture.holder, b"{}", b"[]");
    for text in ["x", "a.b", "a.b.c.d", "..", "e30=.e30.e30", &not_an_object] {
        assert_eq!(fixture.refusal(&format!("{presented}{text}")), CredentialRefusal::KeyBindingMalformed, "{text}");
    }
}

#[test]
fn a_key_binding_has_a_maximum_length() {
    let fixture = Fixture::new();
    let presented = fixture.credential();
    let with_length = |length: usize| {
        // Base64 does not have texts of every length, so the header is padded, too.
        let candidates = (0..4).map(|header_padding| {
            let (mut header, mut payload) = (fixture.binding_header(), fixture.binding_payload(&presented));
            header["pad"] = "x".repeat(header_padding).into();
            payload["pad"] = "".into();
            let unpadded_length = fixture.bind("", &header, &payload).len();
            payload["pad"] = "x".repeat((length - unpadded_length) * 3 / 4).into();
            fixture.bind(&presented, &header, &payload)
        });
        candidates.into_iter().find(|bound| bound.len() == presented.len() + length).unwrap()
    };
    assert!(fixture.verify(&with_length(KEY_BINDING_CHARS_MAX)).is_ok());
    assert_eq!(fixture.refusal(&with_length(KEY_BINDING_CHARS_MAX + 1)), CredentialRefusal::KeyBindingMalformed);
    assert_eq!(fixture.refusal(&with_length(KEY_BINDING_CHARS_MAX + 100)), CredentialRefusal::KeyBindingMalformed);
}

#[test]
fn the_header_must_have_es256_and_kb_jwt_and_no_crit() {
    for algorithm in [json!("none"), json!("HS256"), json!("ES384"), json!(null)] {
        assert_eq!(
            refusal_with_binding(|header, _| header["alg"] = algorithm),
            Some(CredentialRefusal::KeyBindingAlgorithm)
        );
    }
    for typ in [json!("JWT"), json!("vc+sd-jwt"), json!(null)] {
        assert_eq!(refusal_with_binding(|header, _| header["typ"] = typ), Some(CredentialRefusal::KeyBindingType));
    }
    assert_eq!(
        refusal_with_binding(|header, _| header["crit"] = json!(["exp"])),
        Some(CredentialRefusal::KeyBindingCritical)
    );
}

#[test]
fn only_the_holder_key_in_the_credential_verifies_the_key_binding() {
    let fixture = Fixture::new();
    let presented = fixture.credential();
    let payload = fixture.binding_payload(&presented);
    let mut header = fixture.binding_header();
    header["jwk"] = jwk(&fixture.issuer);
    let forged = sign(&fixture.issuer, header.to_string().as_bytes(), payload.to_string().as_bytes());
    assert_eq!(fixture.refusal(&format!("{presented}{forged}")), CredentialRefusal::KeyBindingSignature);
}

#[test]
fn a_missing_and_an_unusable_holder_key_have_different_refusals() {
    assert_eq!(refusal_with_payload(|payload| payload["cnf"] = json!({})), CredentialRefusal::HolderKeyMissing);
    assert_eq!(
        refusal_with_payload(|payload| drop(payload.as_object_mut().unwrap().remove("cnf"))),
        CredentialRefusal::HolderKeyMissing
    );
    assert_eq!(refusal_with_payload(|payload| payload["cnf"] = json!("key")), CredentialRefusal::HolderKeyMissing);
    for change in [
        |jwk: &mut Value| jwk["crv"] = json!("P-384"),
        |jwk: &mut Value| jwk["kty"] = json!("RSA"),
        |jwk: &mut Value| jwk["x"] = json!("AA"),
        |jwk: &mut Value| jwk["y"] = jwk["x"].clone(),
        |jwk: &mut Value| *jwk = json!("text"),
    ] {
        assert_eq!(
            refusal_with_payload(|payload| change(&mut payload["cnf"]["jwk"])),
            CredentialRefusal::HolderKeyUnusable
        );
    }
}

#[test]
fn nonce_and_audience_must_match() {
    for nonce in [json!("3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11"), json!(""), json!(null)] {
        assert_eq!(
            refusal_with_binding(|_, payload| payload["nonce"] = nonce),
            Some(CredentialRefusal::KeyBindingNonce)
        );
    }
    for audience in [json!("https://verify.example/"), json!(["https://verify.example"]), json!(null)] {
        assert_eq!(
            refusal_with_binding(|_, payload| payload["aud"] = audience),
            Some(CredentialRefusal::KeyBindingAudience)
        );
    }
}

#[test]
fn iat_must_be_within_five_minutes() {
    for (issued_at, accepted) in [
        (json!(NOW - 300), true),
        (json!(NOW + 300), true),
        (json!(NOW as f64 - 0.5), true),
        (json!(NOW as f64 + 301.5), false),
        (json!(NOW - 301), false),
        (json!(NOW + 301), false),
        (json!(i64::MIN), false),
        (json!(u64::MAX), false),
        (json!("now"), false),
        (json!(null), false),
    ] {
        let expected = if accepted { None } else { Some(CredentialRefusal::KeyBindingTime) };
        assert_eq!(refusal_with_binding(|_, payload| payload["iat"] = issued_at.clone()), expected, "{issued_at}");
    }
}

#[test]
fn exp_and_nbf_must_allow_the_current_time() {
    for (name, time, accepted) in [
        ("exp", json!(NOW + 1), true),
        ("exp", json!(NOW as f64 + 0.5), true),
        ("exp", json!(NOW), false),
        ("exp", json!(NOW - 3_600), false),
        ("exp", json!("later"), false),
        ("exp", json!(null), false),
        ("nbf", json!(NOW + 300), true),
        ("nbf", json!(NOW + 301), false),
        ("nbf", json!("now"), false),
    ] {
        let expected = if accepted { None } else { Some(CredentialRefusal::KeyBindingTime) };
        assert_eq!(refusal_with_binding(|_, payload| payload[name] = time.clone()), expected, "{name} {time}");
    }
}

#[test]
fn sd_hash_must_cover_exactly_the_presented_disclosures() {
    let fixture = Fixture::new();
    assert_eq!(
        refusal_with_binding(|_, payload| payload["sd_hash"] = json!("x")),
        Some(CredentialRefusal::KeyBindingHash)
    );
    let bound = fixture.bound_credential();
    let (presented, binding) = bound.split_at(bound.rfind('~').unwrap() + 1);
    let fewer = presented.strip_suffix(&format!("{}~", valid_disclosures()[2])).unwrap();
    assert_eq!(fixture.refusal(&format!("{fewer}{binding}")), CredentialRefusal::KeyBindingHash);
}
