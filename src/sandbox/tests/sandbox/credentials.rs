//! The authority's verifier accepts the sandbox's credentials, and refuses the invalid ones.

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

    fn expect(&self, requested: ClaimSet) -> Expectation<'static> {
        Expectation { nonce: self.txn, audience: AUDIENCE, now: self.now, requested }
    }

    fn bare(&self, resident: &str, claims: ClaimSet) -> String {
        self.issuer.issue(Resident::find(resident).unwrap(), claims, &self.holder, self.now).unwrap()
    }

    fn bound(&self, resident: &str, claims: ClaimSet) -> String {
        self.holder.bind(&self.bare(resident, claims), &self.txn.to_string(), AUDIENCE, self.now).unwrap()
    }
}

fn all() -> ClaimSet {
    Claim::ALL.into_iter().collect()
}

fn set(claims: &[Claim]) -> ClaimSet {
    claims.iter().copied().collect()
}

#[test]
fn every_residents_credential_is_verified_bare_and_with_key_binding_and_lacks_what_the_resident_lacks() {
    let scene = Scene::new();
    for resident in Resident::all() {
        let lacking: ClaimSet = Claim::ALL.into_iter().filter(|claim| !resident.has(*claim, scene.now)).collect();
        let bare = scene
            .verifier(KeyBinding::WhenPresent)
            .verify(&scene.bare(resident.id, all()), &scene.expect(all()))
            .unwrap();
        assert_eq!((bare.missing, bare.holder_bound), (lacking, false), "{}", resident.id);
        let bound = scene
            .verifier(KeyBinding::Required)
            .verify(&scene.bound(resident.id, all()), &scene.expect(all()))
            .unwrap();
        assert_eq!((bound.missing, bound.holder_bound), (lacking, true), "{}", resident.id);
    }
}

#[test]
fn the_verified_values_are_the_residents_in_normal_form() {
    let scene = Scene::new();
    let asked = set(&[
        Claim::Name,
        Claim::LocalName,
        Claim::Dob,
        Claim::Gender,
        Claim::AgeAbove18,
        Claim::NriStatus,
        Claim::Pincode,
    ]);
    let verified =
        scene.verifier(KeyBinding::Required).verify(&scene.bound("vikram", asked), &scene.expect(asked)).unwrap();
    let claims = serde_json::to_value(&verified.claims).unwrap();
    let expected = serde_json::json!({
        "residentName": "Vikram Namuna", "localResidentName": "विक्रम नमूना", "dob": "1968-11-05", "gender": "M",
        "ageAbove18": true, "isNRI": false, "pincode": "200000",
    });
    assert_eq!(claims, expected);
}

#[test]
fn a_credential_discloses_only_what_was_asked_for_and_hides_how_much_that_is() {
    let scene = Scene::new();
    let asked = set(&[Claim::Name, Claim::Pincode]);
    let credential = scene.bare("asha", asked);
    assert_eq!(credential.matches('~').count(), 3);
    let verified = scene.verifier(KeyBinding::Off).verify(&credential, &scene.expect(all())).unwrap();
    let claims = serde_json::to_value(&verified.claims).unwrap();
    let names: Vec<&str> = claims.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, [credential_name(Claim::Pincode), credential_name(Claim::Name)]);
    let payload = payload_of(&credential);
    assert_eq!(payload["_sd"].as_array().unwrap().len(), 4, "two claims and two decoys");
    assert_eq!((payload["_sd_alg"].as_str(), payload["iss"].as_str()), (Some("SHA-256"), Some(ISSUER)));
    assert!(payload["cnf"]["jwk"]["x"].is_string() && payload.get("vct").is_none());
}

#[test]
fn the_large_photo_arrives_whole() {
    let scene = Scene::new();
    let asked = set(&[Claim::Photo]);
    let credential = scene.bound("meena", asked);
    assert!(credential.len() > 390_000);
    let verified = scene.verifier(KeyBinding::Required).verify(&credential, &scene.expect(asked)).unwrap();
    let claims = serde_json::to_value(&verified.claims).unwrap();
    let photo = Resident::find("meena").unwrap().claim(Claim::Photo, scene.now).unwrap();
    assert_eq!(claims[credential_name(Claim::Photo)], photo);
}

#[test]
fn a_key_binding_for_another_transaction_or_audience_is_refused() {
    let scene = Scene::new();
    let bare = scene.bare("asha", set(&[Claim::Name]));
    let other = TxnId::generate(ClientId::generate().partition(), 0).to_string();
    let verifier = scene.verifier(KeyBinding::WhenPresent);
    for (nonce, audience) in [(other.as_str(), AUDIENCE), (&scene.txn.to_string(), "https://elsewhere.example")] {
        let bound = scene.holder.bind(&bare, nonce, audience, scene.now).unwrap();
        assert!(verifier.verify(&bound, &scene.expect(set(&[Claim::Name]))).is_err());
    }
}

#[test]
fn another_sandboxs_key_is_not_trusted_and_a_stored_key_is_the_same_issuer() {
    let (scene, other) = (Scene::new(), Scene::new());
    let asked = set(&[Claim::Name]);
    let refused = scene.verifier(KeyBinding::Off).verify(&other.bare("asha", asked), &scene.expect(asked));
    assert_eq!(refused.err(), Some(CredentialRefusal::KeyIdUnknown));

    let again = SandboxIssuer::from_pkcs8(ISSUER, &scene.issuer.to_pkcs8().unwrap()).unwrap();
    assert_eq!(again.kid(), scene.issuer.kid());
    let credential = again.issue(Resident::find("asha").unwrap(), asked, &scene.holder, scene.now).unwrap();
    assert!(scene.verifier(KeyBinding::Off).verify(&credential, &scene.expect(asked)).is_ok());
}

#[test]
fn a_credential_expires() {
    let scene = Scene::new();
    let asked = set(&[Claim::Name]);
    let late = Expectation { now: scene.now + Duration::from_secs(91 * 24 * 3_600), ..scene.expect(asked) };
    assert!(scene.verifier(KeyBinding::Off).verify(&scene.bare("asha", asked), &late).is_err());
}

fn payload_of(credential: &str) -> Value {
    use base64::Engine as _;
    let payload = credential.split('.').nth(1).unwrap();
    serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap()).unwrap()
}
