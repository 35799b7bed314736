//! The issuer, the holder and the transaction of every credential. Keys are new in each run; seeds decide the rest.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_domain::ids::TxnId;
use serde_json::{Value, json};

use crate::tree::Tree;

/// The time of every verification, in seconds since the Unix epoch.
pub(crate) const NOW: i64 = 1_800_000_000;
pub(crate) const ISSUER: &str = "https://issuer.example";
pub(crate) const AUDIENCE: &str = "https://verify.example";
pub(crate) const KID: &str = "issuer-key-1";

/// The keys of a run.
pub(crate) struct Keys {
    pub(crate) issuer: EcdsaKeyPair,
    pub(crate) holder: EcdsaKeyPair,
    /// A key that no verifier trusts.
    pub(crate) stranger: EcdsaKeyPair,
}

impl Keys {
    pub(crate) fn generate() -> Self {
        let key = || EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).expect("a key");
        Self { issuer: key(), holder: key(), stranger: key() }
    }

    /// Returns the public key of the issuer, as a JWK with its id.
    pub(crate) fn jwk(&self) -> Value {
        let mut jwk: Value = serde_json::from_str(&jwk(&self.issuer).to_string()).expect("JSON");
        jwk["kid"] = KID.into();
        jwk
    }

    pub(crate) fn jwks(&self) -> Value {
        json!({ "keys": [self.jwk()] })
    }
}

/// Returns the transaction of every credential.
pub(crate) fn txn() -> TxnId {
    TxnId::from_bytes(*b"\x3f\x0f\x6c\x0e\x9a\x3e\x4c\x55\x8d\x2a\x0b\x8c\x5e\x0e\x7f\x11")
}

/// Encodes bytes as base64url.
pub(crate) fn encode(text: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// Returns the digest of a disclosure.
pub(crate) fn digest_of(text: &str) -> String {
    encode(digest(&SHA256, text.as_bytes()))
}

/// Returns the public key as a JWK.
pub(crate) fn jwk(key: &EcdsaKeyPair) -> Tree {
    let point = key.public_key().as_ref();
    Tree::object([
        ("kty", "EC".into()),
        ("crv", "P-256".into()),
        ("x", encode(&point[1..33]).into()),
        ("y", encode(&point[33..]).into()),
    ])
}

/// Signs two texts, which need not be JSON, as a compact JWS.
pub(crate) fn sign(key: &EcdsaKeyPair, header: &[u8], payload: &[u8]) -> String {
    let signed = format!("{}.{}", encode(header), encode(payload));
    let signature = key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
    format!("{signed}.{}", encode(signature))
}

/// Returns the JWS with the second valid ECDSA signature, which anybody can compute: s becomes n - s.
pub(crate) fn with_second_signature(jws: &str) -> Option<String> {
    // The order of P-256 (FIPS 186-4, D.1.2.3).
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa, 0xad,
        0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
    ];
    let (signed, signature) = jws.rsplit_once('.')?;
    let mut signature = URL_SAFE_NO_PAD.decode(signature).ok().filter(|bytes| bytes.len() == 64)?;
    let mut borrow = 0;
    for (digit, order) in signature[32..].iter_mut().zip(ORDER).rev() {
        let difference = i32::from(order) - i32::from(*digit) - borrow;
        borrow = i32::from(difference < 0);
        *digit = difference.rem_euclid(256) as u8;
    }
    Some(format!("{signed}.{}", encode(signature)))
}
