//! The authority's verifier accepts the sandbox's credentials, and refuses invalid credentials.

use std::time::Duration;

use sakshi_authority::claims::credential_name;
use sakshi_authority::sdjwt::{CredentialRefusal, Expectation, Jwks, KeyBinding, TrustedIssuer, Verifier};
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_sandbox::issuer::{HolderKey, SandboxIssuer};
use sakshi_sandbox::residents::Resident;
use serde_json::Value;

const AUDIENCE: &str = "https://verify.example";
const ISSUER: &str = "https://issuer.sandbox.example";

/// An issuer, a resident's key, and a transaction.
struct Scene {
    issuer: SandboxIssuer,
    holder: HolderKey,
    txn: TxnId,
    now: Timestamp,
}

impl Scene {
    fn new() -> Self {
        let txn = TxnId::generate(ClientId::generate().partition(), 0);
        let issuer = SandboxIssuer::generate(ISSUER).unwrap();
        Self { issuer, holder: HolderKey::generate().unwrap(), txn, now: SystemClock.now() }
    }

    fn verifier(&self, key_binding: KeyBinding) -> Verifier {
        let jwks = Jwks::parse(self.issuer.jwks_json().as_bytes()).unwrap();
        Verifier::new(vec![TrustedIssuer { issuer: self.issuer.issuer().to_owned(), jwks }], key_binding)
    }

    fn expectation(&self, requested: ClaimSet) -> Expectation<'static> {
        Expectation { nonce: self.txn, audience: AUDIENCE, now: self.now, requested }
    }

    /// Issues a credential of a resident without a key binding.
    fn issue(&self, resident: &str, claims: ClaimSet) -> String {
        self.issuer.issue(Resident::find(resident).unwrap(), claims, &self.holder, self.now).unwrap()
    }

    /// Issues a credential of a resident with a key binding to the transaction.
    fn issue_bound(&self, resident: &str, claims: ClaimSet) -> String {
        self.holder.bind(&self.issue(resident, claims), &self.txn.to_string(), AUDIENCE, self.now).unwrap()
    }
}

fn all_claims() -> ClaimSet {
    Claim::ALL.into_iter().collect()
}

fn claim_set(claims: &[Claim]) -> ClaimSet {
    claims.iter().copied().collect()
}

#[test]
fn the_credential_of_every_resident_is_verified_with_and_without_key_binding() {
    let scene = Scene::new();
    for resident in Resident::all() {
        let missing: ClaimSet = Claim::ALL.into_iter().filter(|claim| !resident.has(*claim, scene.now)).collect();
        let unbound = scene
            .verifier(KeyBinding::WhenPresent)
            .verify(&scene.issue(resident.id, all_claims()), &scene.expectation(all_claims()))
            .unwrap();
        assert_eq!((unbound.missing, unbound.holder_bound), (missing, false), "{}", resident.id);
        let bound = scene
            .verifier(KeyBinding::Required)
            .verify(&scene.issue_bound(resident.id, all_claims()), &scene.expectation(all_claims()))
            .unwrap();
        assert_eq!((bound.missing, bound.holder_bound), (missing, true), "{}", resident.id);
    }
}

#[test]
fn verified_values_are_the_residents_values_in_normal_form() {
    let scene = Scene::new();
    let requested = claim_set(&[
        Claim::Name,
        Claim::LocalName,
        Claim::Dob,
        Claim::Gender,
        Claim::AgeAbove18,
        Claim::NriStatus,
        Claim::Pincode,
    ]);
    let verified = scene
        .verifier(KeyBinding::Required)
        .verify(&scene.issue_bound("vikram", requested), &scene.expectation(requested))
        .unwrap();
    let claims = serde_json::to_value(&verified.claims).unwrap();
    let expected = serde_json::json!({
        "residentName": "Vikram Namuna", "localResidentName": "विक्रम नमूना", "dob": "1968-11-05", "gender": "M",
        "ageAbove18": true, "isNRI": false, "pincode": "200000",
    });
    assert_eq!(claims, expected);
}

#[test]
fn a_credential_discloses_only_requested_claims_and_hides_their_number() {
    let scene = Scene::new();
    let requested = claim_set(&[Claim::Name, Claim::Pincode]);
    let credential = scene.issue("asha", requested);
    assert_eq!(credential.matches('~').count(), 3, "one tilde after the JWS and each of two disclosures");
    let verified = scene.verifier(KeyBinding::Off).verify(&credential, &scene.expectation(all_claims())).unwrap();
    let claims = serde_json::to_value(&verified.claims).unwrap();
    let names: Vec<&str> = claims.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, [credential_name(Claim::Pincode), credential_name(Claim::Name)]);
    let payload = decode_payload(&credential);
    assert_eq!(payload["_sd"].as_array().unwrap().len(), 4, "two claims and two decoys");
    assert_eq!((payload["_sd_alg"].as_str(), payload["iss"].as_str()), (Some("SHA-256"), Some(ISSUER)));
    assert!(payload["cnf"]["jwk"]["x"].is_string() && payload.get("vct").is_none());
}

#[test]
fn the_large_photo_arrives_complete() {
    let scene = Scene::new();
    let requested = claim_set(&[Claim::Photo]);
    let credential = scene.issue_bound("meena", requested);
    assert!(credential.len() > 390_000);
    let verified = scene.verifier(KeyBinding::Required).verify(&credential, &scene.expectation(requested)).unwrap();
    let claims = serde_json::to_value(&verified.claims).unwrap();
    let photo = Resident::find("meena").unwrap().claim(Claim::Photo, scene.now).unwrap();
    assert_eq!(claims[credential_name(Claim::Photo)], photo);
}

#[test]
fn a_key_binding_for_another_transaction_or_audience_is_refused() {
    let scene = Scene::new();
    let unbound = scene.issue("asha", claim_set(&[Claim::Name]));
    let other_txn = TxnId::generate(ClientId::generate().partition(), 0).to_string();
    let verifier = scene.verifier(KeyBinding::WhenPresent);
    for (nonce, audience) in [(other_txn.as_str(), AUDIENCE), (&scene.txn.to_string(), "https://elsewhere.example")] {
        let bound = scene.holder.bind(&unbound, nonce, audience, scene.now).unwrap();
        assert!(verifier.verify(&bound, &scene.expectation(claim_set(&[Claim::Name]))).is_err());
    }
}

#[test]
fn another_issuers_key_is_refused_and_a_stored_key_is_accepted() {
    let (scene, other_scene) = (Scene::new(), Scene::new());
    let requested = claim_set(&[Claim::Name]);
    let refused =
        scene.verifier(KeyBinding::Off).verify(&other_scene.issue("asha", requested), &scene.expectation(requested));
    assert_eq!(refused.err(), Some(CredentialRefusal::KeyIdUnknown));

    let restored = SandboxIssuer::from_pkcs8(ISSUER, &scene.issuer.to_pkcs8().unwrap()).unwrap();
    assert_eq!(restored.kid(), scene.issuer.kid());
    let credential = restored.issue(Resident::find("asha").unwrap(), requested, &scene.holder, scene.now).unwrap();
    assert!(scene.verifier(KeyBinding::Off).verify(&credential, &scene.expectation(requested)).is_ok());
}

#[test]
fn a_credential_expires() {
    let scene = Scene::new();
    let requested = claim_set(&[Claim::Name]);
    let ninety_one_days = Duration::from_secs(91 * 24 * 3_600);
    let late = Expectation { now: scene.now + ninety_one_days, ..scene.expectation(requested) };
    assert!(scene.verifier(KeyBinding::Off).verify(&scene.issue("asha", requested), &late).is_err());
}

/// Decodes the payload of the issuer's JWS.
fn decode_payload(credential: &str) -> Value {
    use base64::Engine as _;
    let payload = credential.split('.').nth(1).unwrap();
    serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}
