//! A trusted issuer that makes deliberate mistakes: header, payload, disclosures and key binding can be tampered with.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_sandbox::keys::SigningKey;
use serde_json::{Value, json};

use super::backend::Opened;

pub const ISSUER: &str = "https://issuer.example";
pub const KID: &str = "issuer-key-1";

/// An issuer with a key, and the key of a holder of its credentials.
#[derive(Debug)]
pub struct TestIssuer {
    pub issuer: SigningKey,
    pub holder: SigningKey,
}

/// The parts of a credential before they are signed.
#[derive(Clone, Debug)]
pub struct CredentialDraft {
    pub header: Value,
    pub payload: Value,
    pub disclosures: Vec<String>,
}

/// Returns the seconds since 1970.
pub fn now() -> i64 {
    SystemClock.now().seconds()
}

/// Encodes bytes in Base64 for URLs.
pub fn encode(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// Returns the SHA-256 of a text in Base64, as credentials contain it.
pub fn digest_of(text: &str) -> String {
    encode(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes()))
}

/// Builds a disclosure of a claim with a new salt.
pub fn disclosure(name: &str, value: &Value) -> String {
    encode(json!([format!("salt-of-{name}-{}", uuid::Uuid::new_v4()), name, value]).to_string())
}

impl TestIssuer {
    pub fn generate() -> Self {
        let key = || SigningKey::generate().expect("a key");
        Self { issuer: key(), holder: key() }
    }

    pub fn jwks(&self) -> Value {
        let mut jwk = self.issuer.public_jwk();
        jwk["kid"] = KID.into();
        json!({"keys": [jwk]})
    }

    /// Builds a valid credential of these claims, not yet signed.
    pub fn draft(&self, claims: &[(&str, Value)]) -> CredentialDraft {
        let disclosures: Vec<String> = claims.iter().map(|(name, value)| disclosure(name, value)).collect();
        let digests: Vec<String> = disclosures.iter().map(|text| digest_of(text)).collect();
        let payload = json!({
            "iss": ISSUER, "id": uuid::Uuid::new_v4(), "iat": now(), "exp": now() + 3_600,
            "_sd_alg": "SHA-256", "_sd": digests, "cnf": {"jwk": self.holder.public_jwk()},
        });
        CredentialDraft { header: json!({"alg": "ES256", "typ": "vc+sd-jwt", "kid": KID}), payload, disclosures }
    }

    /// Builds a valid credential of Asha Rao with name, date of birth and gender, not yet signed.
    pub fn valid_draft(&self) -> CredentialDraft {
        self.draft(&[("residentName", json!("Asha Rao")), ("dob", json!("14-02-1990")), ("gender", json!("F"))])
    }

    /// Signs a draft and appends its disclosures.
    pub fn sign(&self, draft: &CredentialDraft) -> String {
        let jws = self.issuer.sign(&draft.header, &draft.payload).expect("a signature");
        with_disclosures(&jws, &draft.disclosures)
    }

    /// Appends a key binding for a transaction to a credential; `change` edits its header and payload.
    pub fn bind(&self, presented: &str, opened: &Opened, change: impl FnOnce(&mut Value, &mut Value)) -> String {
        let mut header = json!({"alg": "ES256", "typ": "kb+jwt"});
        let mut payload =
            json!({"nonce": opened.txn, "aud": opened.intent.aud, "iat": now(), "sd_hash": digest_of(presented)});
        change(&mut header, &mut payload);
        format!("{presented}{}", self.holder.sign(&header, &payload).expect("a signature"))
    }
}

/// Appends disclosures to a signed token, which makes it an SD-JWT.
pub fn with_disclosures(jws: &str, disclosures: &[String]) -> String {
    let tail: String = disclosures.iter().map(|text| format!("{text}~")).collect();
    format!("{jws}~{tail}")
}

/// Replaces an ECDSA signature by the second valid one, which anybody can compute: s becomes n - s.
pub fn with_the_other_signature(credential: &str) -> String {
    // The order of P-256 (FIPS 186-4, D.1.2.3).
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad,
        0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    let (jws, disclosures) = credential.split_once('~').expect("a credential");
    let (signed, signature) = jws.rsplit_once('.').expect("a JWS");
    let mut signature = URL_SAFE_NO_PAD.decode(signature).expect("a signature");
    let mut borrow = 0;
    for (digit, order) in signature[32..].iter_mut().zip(ORDER).rev() {
        let difference = i32::from(order) - i32::from(*digit) - borrow;
        borrow = i32::from(difference < 0);
        *digit = difference.rem_euclid(256) as u8;
    }
    format!("{signed}.{}~{disclosures}", encode(signature))
}
