//! Rule 8: the KB-JWT and its policy.

use sakshi_domain::limits::KEY_BINDING_CHARS_MAX;
use serde_json::{Value, json};

use super::Fixture;
use super::fixture::{NOW, good_disclosures, jwk, sign};
use crate::sdjwt::{CredentialRefusal, KeyBinding};

fn with_binding(change: impl FnOnce(&mut Value, &mut Value)) -> Option<CredentialRefusal> {
    let fixture = Fixture::new();
    let presented = fixture.good();
    let (mut header, mut payload) = (fixture.binding_header(), fixture.binding_payload(&presented));
    change(&mut header, &mut payload);
    fixture.verify(&fixture.bind(&presented, &header, &payload)).err()
}

fn with_holder_key(change: impl FnOnce(&mut Value)) -> CredentialRefusal {
    let fixture = Fixture::new();
    let disclosures = good_disclosures();
    let mut payload = fixture.payload(&disclosures);
    change(&mut payload);
    let presented = fixture.issue_payload(&payload, &disclosures);
    fixture.refusal(&fixture.bind(&presented, &fixture.binding_header(), &fixture.binding_payload(&presented)))
}

#[test]
fn a_key_binding_for_this_transaction_is_accepted() {
    let fixture = Fixture::new();
    assert!(fixture.verify(&fixture.good_bound()).unwrap().holder_bound);
}

#[test]
fn the_policy_decides_about_presence() {
    let mut fixture = Fixture::new();
    let (bare, bound) = (fixture.good(), fixture.good_bound());
    for (policy, of_bare, of_bound) in [
        (KeyBinding::Off, None, Some(CredentialRefusal::KeyBindingUnexpected)),
        (KeyBinding::WhenPresent, None, None),
        (KeyBinding::Required, Some(CredentialRefusal::KeyBindingMissing), None),
    ] {
        fixture.policy = policy;
        assert_eq!(fixture.verify(&bare).err(), of_bare, "{policy:?}");
        assert_eq!(fixture.verify(&bound).err(), of_bound, "{policy:?}");
    }
}

#[test]
fn a_key_binding_that_is_no_jws_is_refused() {
    let fixture = Fixture::new();
    let presented = fixture.good();
    let not_json = sign(&fixture.holder, b"{}", b"[]");
    for text in ["x", "a.b", "a.b.c.d", "..", "e30=.e30.e30", &not_json] {
        assert_eq!(fixture.refusal(&format!("{presented}{text}")), CredentialRefusal::KeyBindingMalformed, "{text}");
    }
}

#[test]
fn a_key_binding_has_a_largest_length() {
    let fixture = Fixture::new();
    let presented = fixture.good();
    let of_length = |length: usize| {
        // Base64 has no text of every length, so the header is tried with some, too.
        let candidates = (0..4).map(|more| {
            let (mut header, mut payload) = (fixture.binding_header(), fixture.binding_payload(&presented));
            header["pad"] = "x".repeat(more).into();
            payload["pad"] = "".into();
            let rest = fixture.bind("", &header, &payload).len();
            payload["pad"] = "x".repeat((length - rest) * 3 / 4).into();
            fixture.bind(&presented, &header, &payload)
        });
        candidates.into_iter().find(|bound| bound.len() == presented.len() + length).unwrap()
    };
    assert!(fixture.verify(&of_length(KEY_BINDING_CHARS_MAX)).is_ok());
    assert_eq!(fixture.refusal(&of_length(KEY_BINDING_CHARS_MAX + 1)), CredentialRefusal::KeyBindingMalformed);
    assert_eq!(fixture.refusal(&of_length(KEY_BINDING_CHARS_MAX + 100)), CredentialRefusal::KeyBindingMalformed);
}

#[test]
fn its_header_must_say_es256_and_kb_jwt_and_nothing_critical() {
    for algorithm in [json!("none"), json!("HS256"), json!("ES384"), json!(null)] {
        assert_eq!(with_binding(|header, _| header["alg"] = algorithm), Some(CredentialRefusal::KeyBindingAlgorithm));
    }
    for typ in [json!("JWT"), json!("vc+sd-jwt"), json!(null)] {
        assert_eq!(with_binding(|header, _| header["typ"] = typ), Some(CredentialRefusal::KeyBindingType));
    }
    assert_eq!(with_binding(|header, _| header["crit"] = json!(["exp"])), Some(CredentialRefusal::KeyBindingCritical));
}

#[test]
fn its_key_is_the_one_that_the_issuer_confirmed() {
    let fixture = Fixture::new();
    let presented = fixture.good();
    let payload = fixture.binding_payload(&presented);
    let mut header = fixture.binding_header();
    header["jwk"] = jwk(&fixture.issuer);
    let forged = sign(&fixture.issuer, header.to_string().as_bytes(), payload.to_string().as_bytes());
    assert_eq!(fixture.refusal(&format!("{presented}{forged}")), CredentialRefusal::KeyBindingSignature);
}

#[test]
fn a_missing_and_an_unusable_holder_key_are_told_apart() {
    assert_eq!(with_holder_key(|payload| payload["cnf"] = json!({})), CredentialRefusal::HolderKeyMissing);
    assert_eq!(
        with_holder_key(|payload| drop(payload.as_object_mut().unwrap().remove("cnf"))),
        CredentialRefusal::HolderKeyMissing
    );
    assert_eq!(with_holder_key(|payload| payload["cnf"] = json!("key")), CredentialRefusal::HolderKeyMissing);
    for change in [
        |jwk: &mut Value| jwk["crv"] = json!("P-384"),
        |jwk: &mut Value| jwk["kty"] = json!("RSA"),
        |jwk: &mut Value| jwk["x"] = json!("AA"),
        |jwk: &mut Value| jwk["y"] = jwk["x"].clone(),
        |jwk: &mut Value| *jwk = json!("text"),
    ] {
        assert_eq!(with_holder_key(|payload| change(&mut payload["cnf"]["jwk"])), CredentialRefusal::HolderKeyUnusable);
    }
}

#[test]
fn it_must_be_for_this_transaction_and_audience() {
    for nonce in [json!("3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11"), json!(""), json!(null)] {
        assert_eq!(with_binding(|_, payload| payload["nonce"] = nonce), Some(CredentialRefusal::KeyBindingNonce));
    }
    for audience in [json!("https://verify.example/"), json!(["https://verify.example"]), json!(null)] {
        assert_eq!(with_binding(|_, payload| payload["aud"] = audience), Some(CredentialRefusal::KeyBindingAudience));
    }
}

#[test]
fn it_must_have_been_made_within_five_minutes() {
    for (made_at, accepted) in [
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
        assert_eq!(with_binding(|_, payload| payload["iat"] = made_at.clone()), expected, "{made_at}");
    }
}

#[test]
fn an_expiry_and_a_start_of_its_own_count() {
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
        assert_eq!(with_binding(|_, payload| payload[name] = time.clone()), expected, "{name} {time}");
    }
}

#[test]
fn it_must_cover_exactly_what_is_presented() {
    let fixture = Fixture::new();
    assert_eq!(with_binding(|_, payload| payload["sd_hash"] = json!("x")), Some(CredentialRefusal::KeyBindingHash));
    let bound = fixture.good_bound();
    let (presented, binding) = bound.split_at(bound.rfind('~').unwrap() + 1);
    let fewer = presented.strip_suffix(&format!("{}~", good_disclosures()[2])).unwrap();
    assert_eq!(fixture.refusal(&format!("{fewer}{binding}")), CredentialRefusal::KeyBindingHash);
}
