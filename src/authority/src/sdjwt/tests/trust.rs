//! Rule 7: issuer and times. Also the keys of issuers.

use serde_json::{Value, json};

use super::fixture::{ISSUER, KID, NOW, jwk, valid_disclosures};
use super::{Fixture, disclosure};
use crate::sdjwt::{CredentialRefusal, JwkProblem, Jwks, JwksError, KeyBinding, TrustedIssuer, Verifier};

/// Returns the refusal of a credential with a changed payload; `None` if it is accepted.
fn refusal_with_payload(change: impl FnOnce(&mut Value)) -> Option<CredentialRefusal> {
    let fixture = Fixture::new();
    let disclosures = valid_disclosures();
    let mut payload = fixture.payload(&disclosures);
    change(&mut payload);
    fixture.verify(&fixture.issue_payload(&payload, &disclosures)).err()
}

fn remove_member(payload: &mut Value, name: &str) {
    payload.as_object_mut().unwrap().remove(name);
}

#[test]
fn the_issuer_must_be_trusted_and_in_plain_text() {
    for issuer in [json!("https://issuer.example/"), json!("https://other.example"), json!(null), json!([ISSUER])] {
        assert_eq!(refusal_with_payload(|payload| payload["iss"] = issuer), Some(CredentialRefusal::IssuerNotTrusted));
    }
    let fixture = Fixture::new();
    let disclosures = vec![disclosure(&json!(["s", "iss", ISSUER]))];
    let mut payload = fixture.payload(&disclosures);
    remove_member(&mut payload, "iss");
    assert_eq!(fixture.refusal(&fixture.issue_payload(&payload, &disclosures)), CredentialRefusal::IssuerNotTrusted);
}

#[test]
fn the_key_of_an_issuer_cannot_sign_for_another_issuer() {
    let (first, second) = (Fixture::new(), Fixture::new());
    let trusted = vec![
        TrustedIssuer { issuer: "https://first.example".into(), jwks: first.jwks() },
        TrustedIssuer { issuer: ISSUER.into(), jwks: second.jwks() },
    ];
    let verifier = Verifier::new(trusted, first.policy);
    assert_eq!(
        verifier.verify(&first.credential(), &first.expectation()).unwrap_err(),
        CredentialRefusal::SignatureInvalid
    );
    assert!(verifier.verify(&second.credential(), &second.expectation()).is_ok());
    let nobody = Verifier::new(Vec::new(), first.policy);
    assert_eq!(
        nobody.verify(&first.credential(), &first.expectation()).unwrap_err(),
        CredentialRefusal::IssuerNotTrusted
    );
}

#[test]
fn replaced_keys_apply_immediately_and_only_to_their_issuer() {
    let (old, new) = (Fixture::new(), Fixture::new());
    let verifier = Verifier::new(vec![TrustedIssuer { issuer: ISSUER.into(), jwks: old.jwks() }], old.policy);
    verifier.replace_keys("https://other.example", &new.jwks());
    assert!(
        verifier.verify(&old.credential(), &old.expectation()).is_ok()
            && verifier.verify(&new.credential(), &new.expectation()).is_err()
    );
    verifier.replace_keys(ISSUER, &new.jwks());
    assert!(
        verifier.verify(&old.credential(), &old.expectation()).is_err()
            && verifier.verify(&new.credential(), &new.expectation()).is_ok()
    );
}

#[test]
fn exp_is_required_and_must_be_in_the_future() {
    assert_eq!(refusal_with_payload(|payload| remove_member(payload, "exp")), Some(CredentialRefusal::ExpiryMissing));
    for expiry in [json!("2099-01-01"), json!(null), json!("9999999999"), json!([9_999_999_999_u64])] {
        assert_eq!(refusal_with_payload(|payload| payload["exp"] = expiry), Some(CredentialRefusal::TimeNotANumber));
    }
    for (expiry, refusal) in [
        (json!(NOW), Some(CredentialRefusal::Expired)),
        (json!(NOW as f64), Some(CredentialRefusal::Expired)),
        (json!(-1), Some(CredentialRefusal::Expired)),
        (json!(i64::MIN), Some(CredentialRefusal::Expired)),
        (json!(NOW + 1), None),
        (json!(NOW as f64 + 0.5), None),
        (json!(u64::MAX), None),
    ] {
        assert_eq!(refusal_with_payload(|payload| payload["exp"] = expiry.clone()), refusal, "{expiry}");
    }
}

#[test]
fn nbf_and_iat_may_be_at_most_60_seconds_ahead() {
    for (name, refusal) in [("nbf", CredentialRefusal::NotYetValid), ("iat", CredentialRefusal::IssuedInFuture)] {
        assert_eq!(refusal_with_payload(|payload| payload[name] = json!(NOW + 60)), None);
        assert_eq!(refusal_with_payload(|payload| payload[name] = json!(NOW + 61)), Some(refusal));
        assert_eq!(
            refusal_with_payload(|payload| payload[name] = json!("soon")),
            Some(CredentialRefusal::TimeNotANumber)
        );
        assert_eq!(refusal_with_payload(|payload| remove_member(payload, name)), None);
    }
}

#[test]
fn times_may_be_disclosed_and_are_checked_after_processing() {
    let fixture = Fixture::new();
    for (expiry, refusal) in [(NOW - 1, Some(CredentialRefusal::Expired)), (NOW + 9, None)] {
        let disclosures = vec![disclosure(&json!(["s", "exp", expiry]))];
        let mut payload = fixture.payload(&disclosures);
        remove_member(&mut payload, "exp");
        assert_eq!(fixture.verify(&fixture.issue_payload(&payload, &disclosures)).err(), refusal);
        assert_eq!(fixture.verify(&fixture.issue_payload(&payload, &[])).err(), Some(CredentialRefusal::ExpiryMissing));
    }
}

fn jwks(keys: &Value) -> Result<Jwks, JwksError> {
    Jwks::parse(json!({ "keys": keys }).to_string().as_bytes())
}

#[test]
fn keys_of_a_jwks_that_are_not_p256_signing_keys_are_ignored() {
    let fixture = Fixture::new();
    let mut key = jwk(&fixture.issuer);
    key["kid"] = KID.into();
    key["use"] = "sig".into();
    key["alg"] = "ES256".into();
    let rsa = json!({"kty": "RSA", "kid": KID, "n": "AQAB", "e": "AQAB"});
    let p384 = json!({"kty": "EC", "crv": "P-384", "x": "AA", "y": "AA"});
    let mut encryption = jwk(&fixture.holder);
    encryption["use"] = "enc".into();
    let set = jwks(&json!([rsa, p384, encryption, key])).unwrap();
    assert_eq!((set.get(KID).len(), set.get("").len()), (1, 0));
    assert_eq!(set.problems(), [JwkProblem::OtherType; 3]);
}

#[test]
fn unusable_keys_of_a_jwks_do_not_invalidate_the_others() {
    let fixture = Fixture::new();
    let mut good = jwk(&fixture.issuer);
    let no_id = good.clone();
    good["kid"] = KID.into();
    let mut off_curve = good.clone();
    off_curve["y"] = off_curve["x"].clone();
    let unknown = json!({"kty": "LWE", "kid": "quantum"});
    for (bad_key, reason) in [
        (no_id, JwkProblem::KeyIdMissing),
        (off_curve, JwkProblem::NotOnCurve),
        (unknown, JwkProblem::OtherType),
        (json!(1), JwkProblem::NotAnObject),
    ] {
        for keys in [json!([bad_key, good]), json!([good, bad_key])] {
            let set = jwks(&keys).unwrap();
            assert_eq!((set.get(KID).len(), set.problems()), (1, &[reason][..]), "{keys}");
        }
        assert_eq!(jwks(&json!([bad_key])).unwrap_err(), JwksError::NoKey);
    }
}

#[test]
fn credentials_of_two_keys_with_the_same_key_id_are_accepted() {
    let fixtures = [Fixture::new(), Fixture::new()];
    let keys = fixtures.each_ref().map(|fixture| {
        let mut key = jwk(&fixture.issuer);
        key["kid"] = KID.into();
        key
    });
    let set = jwks(&json!(keys)).unwrap();
    assert_eq!(set.problems(), [JwkProblem::KeyIdRepeated]);
    let verifier = Verifier::new(vec![TrustedIssuer { issuer: ISSUER.into(), jwks: set }], KeyBinding::Off);
    for fixture in &fixtures {
        assert!(verifier.verify(&fixture.credential(), &fixture.expectation()).is_ok());
    }
    let stranger = Fixture::new();
    assert_eq!(
        verifier.verify(&stranger.credential(), &stranger.expectation()).err(),
        Some(CredentialRefusal::SignatureInvalid)
    );
}

#[test]
fn each_kind_of_unusable_jwks_has_its_error() {
    let mut private = jwk(&Fixture::new().issuer);
    private["kid"] = KID.into();
    private["d"] = "AA".into();
    assert_eq!(jwks(&json!([private])).unwrap_err(), JwksError::PrivateKey);
    assert_eq!(jwks(&json!([])).unwrap_err(), JwksError::NoKey);
    for text in ["", "[]", "{}", r#"{"keys":{}}"#] {
        assert_eq!(Jwks::parse(text.as_bytes()).unwrap_err(), JwksError::Malformed);
    }
}

#[test]
fn a_jwks_with_a_repeated_name_is_refused() {
    let mut key = jwk(&Fixture::new().issuer);
    key["kid"] = KID.into();
    let good = json!({ "keys": [key] }).to_string();
    assert!(Jwks::parse(good.as_bytes()).is_ok());
    for (one, two) in [
        (r#""kty":"EC""#, r#""kty":"RSA","kty":"EC""#),
        (r#""keys":"#, r#""keys":[],"keys":"#),
        ("{\"keys\"", r#"{"x":{"a":1,"a":1},"keys""#),
    ] {
        let twice = good.replacen(one, two, 1);
        assert_ne!(twice, good);
        assert_eq!(Jwks::parse(twice.as_bytes()).unwrap_err(), JwksError::Malformed, "{twice}");
    }
}
