//! An issuer, a holder and a transaction; tests can change every part of a credential.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use sakshi_domain::claims::{Claim, ClaimSet};
use sakshi_domain::ids::{ClientId, TxnId};
use sakshi_domain::time::Timestamp;
use serde_json::{Value, json};

use crate::encoding::{base64url, from_base64url};
use crate::sdjwt::{CredentialRefusal, Expectation, Jwks, KeyBinding, TrustedIssuer, VerifiedCredential, Verifier};

pub(super) const NOW: i64 = 1_800_000_000;
pub(super) const ISSUER: &str = "https://issuer.example";
pub(super) const AUDIENCE: &str = "https://verify.example";
pub(super) const KID: &str = "issuer-key-1";

/// An issuer and a holder with generated keys, and a transaction that expects a credential.
pub(super) struct Fixture {
    pub(super) issuer: EcdsaKeyPair,
    pub(super) holder: EcdsaKeyPair,
    pub(super) txn: TxnId,
    pub(super) policy: KeyBinding,
    pub(super) requested: ClaimSet,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let key = || EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        Self {
            issuer: key(),
            holder: key(),
            txn: TxnId::generate(ClientId::generate().partition(), 0),
            policy: KeyBinding::WhenPresent,
            requested: [Claim::Name, Claim::Dob, Claim::Gender].into_iter().collect(),
        }
    }

    /// Returns the issuer's key set.
    pub(super) fn jwks(&self) -> Jwks {
        let mut jwk = jwk(&self.issuer);
        jwk["kid"] = KID.into();
        Jwks::parse(json!({ "keys": [jwk] }).to_string().as_bytes()).unwrap()
    }

    pub(super) fn expectation(&self) -> Expectation<'static> {
        Expectation {
            nonce: self.txn,
            audience: AUDIENCE,
            now: Timestamp::from_millis(NOW * 1_000 + 999),
            requested: self.requested,
        }
    }

    /// Verifies a credential of the issuer for the transaction.
    pub(super) fn verify(&self, credential: &str) -> Result<VerifiedCredential, CredentialRefusal> {
        let trusted = TrustedIssuer { issuer: ISSUER.into(), jwks: self.jwks() };
        Verifier::new(vec![trusted], self.policy).verify(credential, &self.expectation())
    }

    /// Returns the refusal of a credential, which must not be accepted.
    pub(super) fn refusal(&self, credential: &str) -> CredentialRefusal {
        self.verify(credential).expect_err("the credential was accepted")
    }

    /// Returns a valid header of the issuer.
    pub(super) fn header(&self) -> Value {
        json!({ "alg": "ES256", "typ": "vc+sd-jwt", "kid": KID })
    }

    /// Builds a payload in the authority's profile whose `_sd` references these disclosures and a decoy.
    pub(super) fn payload(&self, disclosures: &[String]) -> Value {
        let mut digests: Vec<String> = disclosures.iter().map(|text| digest_of(text)).collect();
        digests.push(digest_of("decoy"));
        json!({
            "iss": ISSUER, "id": "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11", "iat": NOW - 5, "exp": NOW + 3_600,
            "status": "https://issuer.example/status/1", "_sd_alg": "SHA-256", "_sd": digests,
            "cnf": { "jwk": jwk(&self.holder) },
        })
    }

    /// Signs any header and payload as the issuer, and appends any disclosures.
    pub(super) fn issue(&self, header: &Value, payload: &Value, disclosures: &[String]) -> String {
        let jws = sign(&self.issuer, header.to_string().as_bytes(), payload.to_string().as_bytes());
        with_disclosures(&jws, disclosures)
    }

    /// Signs any payload with a valid header, and appends any disclosures.
    pub(super) fn issue_payload(&self, payload: &Value, disclosures: &[String]) -> String {
        self.issue(&self.header(), payload, disclosures)
    }

    /// Issues a valid credential for name, date of birth and gender.
    pub(super) fn credential(&self) -> String {
        let disclosures = valid_disclosures();
        self.issue_payload(&self.payload(&disclosures), &disclosures)
    }

    /// Returns a valid header of a key binding.
    pub(super) fn binding_header(&self) -> Value {
        json!({ "alg": "ES256", "typ": "kb+jwt" })
    }

    /// Returns the payload of a valid key binding for a credential.
    pub(super) fn binding_payload(&self, presented: &str) -> Value {
        json!({ "nonce": self.txn, "aud": AUDIENCE, "iat": NOW, "sd_hash": digest_of(presented) })
    }

    /// Appends a key binding with this header and payload, signed by the holder.
    pub(super) fn bind(&self, presented: &str, header: &Value, payload: &Value) -> String {
        format!("{presented}{}", sign(&self.holder, header.to_string().as_bytes(), payload.to_string().as_bytes()))
    }

    /// Issues a valid credential with a key binding.
    pub(super) fn bound_credential(&self) -> String {
        let presented = self.credential();
        self.bind(&presented, &self.binding_header(), &self.binding_payload(&presented))
    }
}

/// Builds the disclosures of name, date of birth and gender.
pub(super) fn valid_disclosures() -> Vec<String> {
    [("residentName", "Asha Rao"), ("dob", "28/02/1990"), ("gender", "Female")]
        .map(|(name, value)| disclosure(&json!([format!("salt-{name}"), name, value])))
        .to_vec()
}

pub(super) fn disclosure(content: &Value) -> String {
    base64url(content.to_string().as_bytes())
}

pub(super) fn digest_of(text: &str) -> String {
    base64url(digest(&SHA256, text.as_bytes()).as_ref())
}

/// Appends disclosures to an issuer's JWS.
pub(super) fn with_disclosures(jws: &str, disclosures: &[String]) -> String {
    let tail: String = disclosures.iter().map(|text| format!("{text}~")).collect();
    format!("{jws}~{tail}")
}

/// Signs a compact JWS with any header and payload.
pub(super) fn sign(key: &EcdsaKeyPair, header: &[u8], payload: &[u8]) -> String {
    let signed_text = format!("{}.{}", base64url(header), base64url(payload));
    let signature = key.sign(&SystemRandom::new(), signed_text.as_bytes()).unwrap();
    format!("{signed_text}.{}", base64url(signature.as_ref()))
}

pub(super) fn jwk(key: &EcdsaKeyPair) -> Value {
    let point = key.public_key().as_ref();
    json!({ "kty": "EC", "crv": "P-256", "x": base64url(&point[1..33]), "y": base64url(&point[33..]) })
}

/// Returns the JWS with its second valid ECDSA signature, which anyone can compute: s becomes n - s.
pub(super) fn with_alternative_signature(jws: &str) -> String {
    // The order n of P-256 (FIPS 186-4, D.1.2.3).
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad,
        0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    let (signed_text, signature) = jws.rsplit_once('.').unwrap();
    let mut signature = from_base64url(signature).unwrap();
    let mut borrow = 0;
    for (s_byte, order_byte) in signature[32..].iter_mut().zip(ORDER).rev() {
        let difference = i32::from(order_byte) - i32::from(*s_byte) - borrow;
        borrow = i32::from(difference < 0);
        *s_byte = difference.rem_euclid(256) as u8;
    }
    format!("{signed_text}.{}", base64url(&signature))
}
