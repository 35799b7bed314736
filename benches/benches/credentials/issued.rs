//! Credentials of any size, signed by an issuer and bound by a holder.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sakshi_authority::claims::credential_name;
use sakshi_authority::sdjwt::{Expectation, Jwks, KeyBinding, TrustedIssuer, Verifier};
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;
use sakshi_sandbox::keys::SigningKey;
use serde_json::{Value, json};

use crate::Failure;

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://verify.example";
/// Bytes of a photo before Base64.
const PHOTO_BYTES: usize = 30 * 1_024;

/// The disclosed claims, in order.
pub(crate) const EIGHT_CLAIMS: [Claim; 8] = [
    Claim::Name,
    Claim::Dob,
    Claim::Gender,
    Claim::Address,
    Claim::Pincode,
    Claim::State,
    Claim::District,
    Claim::CareOf,
];

/// An issuer and a holder with their keys, a transaction, and a verifier that trusts the issuer.
pub(crate) struct Fixture {
    issuer: SigningKey,
    holder: SigningKey,
    now: Timestamp,
    txn: TxnId,
    pub(crate) verifier: Verifier,
}

impl Fixture {
    /// Generates the keys.
    pub(crate) fn new() -> Result<Self, Failure> {
        let issuer = SigningKey::generate()?;
        let mut key = issuer.public_jwk();
        key["kid"] = Value::from("issuer-1");
        let jwks = Jwks::parse(json!({ "keys": [key] }).to_string().as_bytes())?;
        let verifier = Verifier::new(vec![TrustedIssuer { issuer: ISSUER.into(), jwks }], KeyBinding::WhenPresent);
        let txn = TxnId::generate(ClientId::generate().partition(), 0);
        Ok(Self { issuer, holder: SigningKey::generate()?, now: SystemClock.now(), txn, verifier })
    }

    /// Returns what the verifier expects of a credential with some claims.
    pub(crate) fn expectation(&self, claims: &[Claim]) -> Expectation<'static> {
        Expectation {
            nonce: self.txn,
            audience: AUDIENCE,
            now: self.now,
            requested: claims.iter().copied().collect::<ClaimSet>(),
        }
    }

    /// Issues a credential without key binding.
    pub(crate) fn issue(&self, claims: &[Claim]) -> Result<String, Failure> {
        self.issue_as(ISSUER, "issuer-1", claims)
    }

    /// Issues a credential in the name of an issuer and with a key id.
    pub(crate) fn issue_as(&self, issuer: &str, kid: &str, claims: &[Claim]) -> Result<String, Failure> {
        let disclosures: Vec<String> = claims.iter().map(|claim| disclosure(*claim)).collect();
        let mut digests: Vec<String> = disclosures.iter().map(|text| sha256(text)).collect();
        digests.sort_unstable();
        let seconds = self.now.seconds();
        let payload = json!({
            "iss": issuer, "id": "6b1c9f0e", "iat": seconds, "exp": seconds + 86_400, "_sd_alg": "SHA-256",
            "_sd": digests,
            "cnf": { "jwk": self.holder.public_jwk() },
        });
        let token = self.issuer.sign(&json!({ "alg": "ES256", "typ": "vc+sd-jwt", "kid": kid }), &payload)?;
        Ok(format!("{token}~{}", disclosures.iter().map(|text| format!("{text}~")).collect::<String>()))
    }

    /// Appends a key binding to a credential.
    pub(crate) fn bind(&self, credential: &str) -> Result<String, Failure> {
        let payload = json!({ "iat": self.now.seconds(), "aud": AUDIENCE, "nonce": self.txn.to_string(),
            "sd_hash": sha256(credential) });
        Ok(format!("{credential}{}", self.holder.sign(&json!({ "alg": "ES256", "typ": "kb+jwt" }), &payload)?))
    }
}

/// Builds a disclosure of a claim with a value of an ordinary size.
fn disclosure(claim: Claim) -> String {
    let value = match claim {
        Claim::Photo => STANDARD.encode([&[0xFF, 0xD8, 0xFF][..], &vec![0x5A; PHOTO_BYTES]].concat()),
        Claim::Dob => "14-02-1990".to_owned(),
        Claim::Gender => "F".to_owned(),
        _ => "Some words of an ordinary length".to_owned(),
    };
    URL_SAFE_NO_PAD.encode(json!(["c2FsdCBvZiAxNiBieXRlcw", credential_name(claim), value]).to_string())
}

/// Returns the SHA-256 of a text in Base64.
fn sha256(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()))
}
