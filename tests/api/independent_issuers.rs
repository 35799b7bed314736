//! Credentials from independent implementations: PyPI `sd-jwt` and npm `@sd-jwt/core`. `tests/contract/README.md`
//! describes the scripts and their interface.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sakshi_authority::sdjwt::{
    CredentialRefusal, Expectation, Jwks, KeyBinding, TrustedIssuer, VerifiedCredential, Verifier,
};
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_kit::other_issuers::{Library, issue};
use serde_json::{Value, json};

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://verify.example";

const ALL_LIBRARIES: [Library; 2] = [Library::Python, Library::Node];

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap())
}

fn txn() -> TxnId {
    TxnId::generate(ClientId::generate().partition(), 0)
}

/// Builds the request for a credential to a script, with or without a key binding.
fn request(txn: TxnId, with_kb: bool) -> Value {
    json!({
        "issuer": ISSUER, "with_kb": with_kb, "nonce": txn, "aud": AUDIENCE,
        "plain": {"id": "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11", "status": "https://issuer.example/status/1"},
        "claims": {
            "residentName": "आशा राव", "dob": "28-02-1990", "gender": "F", "ageAbove18": "Yes", "uid": "999941057058",
            "residentImage": "/9j/".repeat(10_000), "pincode": "560001", "address": {"house": "7",
                "street": "Lake Road"},
        },
    })
}

/// Verifies the credential in a script's answer with the keys in the answer.
fn verify(
    answer: &Value,
    txn: TxnId,
    policy: KeyBinding,
    at: Timestamp,
) -> Result<VerifiedCredential, CredentialRefusal> {
    let jwks = Jwks::parse(answer["jwks"].to_string().as_bytes()).unwrap();
    let verifier = Verifier::new(vec![TrustedIssuer { issuer: ISSUER.into(), jwks }], policy);
    let requested: ClaimSet =
        [Claim::Name, Claim::Dob, Claim::AgeAbove18, Claim::Photo, Claim::Address].into_iter().collect();
    verifier.verify(
        answer["credential"].as_str().unwrap(),
        &Expectation { nonce: txn, audience: AUDIENCE, now: at, requested },
    )
}

#[test]
fn credentials_of_independent_issuers_are_accepted() {
    for library in ALL_LIBRARIES {
        for (with_kb, policy) in
            [(false, KeyBinding::WhenPresent), (true, KeyBinding::WhenPresent), (true, KeyBinding::Required)]
        {
            let txn = txn();
            let verified = verify(&issue(library, &request(txn, with_kb)), txn, policy, now()).unwrap();
            let claims = verified.claims.as_map();
            assert_eq!(claims["residentName"], "आशा राव");
            assert_eq!((&claims["dob"], &claims["ageAbove18"]), (&json!("1990-02-28"), &json!(true)));
            assert_eq!(claims["residentImage"].as_str().unwrap().len(), 40_000);
            assert_eq!(claims["address"], json!({"house": "7", "street": "Lake Road"}));
            assert_eq!(claims.len(), 5, "only requested claims are selected");
            assert!(verified.missing.is_empty());
            assert_eq!(verified.holder_bound, with_kb);
        }
    }
}

#[test]
fn a_claim_that_the_holder_does_not_disclose_is_missing() {
    for library in ALL_LIBRARIES {
        let txn = txn();
        let mut request = request(txn, true);
        request["disclose"] = json!(["residentName", "residentImage", "address"]);
        let verified = verify(&issue(library, &request), txn, KeyBinding::Required, now()).unwrap();
        assert_eq!(verified.missing, [Claim::Dob, Claim::AgeAbove18].into_iter().collect());
    }
}

#[test]
fn credentials_for_another_transaction_time_or_issuer_key_are_refused() {
    for library in ALL_LIBRARIES {
        let txn_id = txn();
        let answer = issue(library, &request(txn_id, true));
        let refusal = |txn, policy, at| verify(&answer, txn, policy, at).unwrap_err();
        assert_eq!(refusal(txn(), KeyBinding::WhenPresent, now()), CredentialRefusal::KeyBindingNonce);
        assert_eq!(refusal(txn_id, KeyBinding::Off, now()), CredentialRefusal::KeyBindingUnexpected);
        let minutes = |count: u64| Duration::from_secs(60 * count);
        assert_eq!(refusal(txn_id, KeyBinding::WhenPresent, now() + minutes(6)), CredentialRefusal::KeyBindingTime);
        assert_eq!(refusal(txn_id, KeyBinding::WhenPresent, now() + minutes(61)), CredentialRefusal::Expired);
        assert_eq!(refusal(txn_id, KeyBinding::WhenPresent, now() - minutes(2)), CredentialRefusal::IssuedInFuture);
        let mut forged = issue(library, &request(txn_id, true));
        forged["jwks"] = answer["jwks"].clone();
        assert_eq!(
            verify(&forged, txn_id, KeyBinding::WhenPresent, now()).unwrap_err(),
            CredentialRefusal::SignatureInvalid
        );
    }
}

#[test]
fn credentials_with_the_same_issuer_key_have_different_identities() {
    for library in ALL_LIBRARIES {
        let txn = txn();
        let first = issue(library, &request(txn, false));
        let mut second_request = request(txn, false);
        second_request["private_jwk"] = first["private_jwk"].clone();
        second_request["typ"] = json!("dc+sd-jwt");
        let mut second = issue(library, &second_request);
        assert_eq!(second["jwks"], first["jwks"]);
        second["jwks"] = first["jwks"].clone();
        let identity = |answer| verify(answer, txn, KeyBinding::WhenPresent, now()).unwrap().identity;
        assert_ne!(identity(&first), identity(&second));
        assert_eq!(identity(&first), identity(&first));
    }
}
