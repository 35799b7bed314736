//! Public keys as JWKs (RFC 7518 §6), and verification with them.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde_json::{Value, json};

use crate::encoding::{base64url, from_base64url};

/// Builds the JWK of an RSA key.
pub(super) fn rsa(modulus: &[u8], exponent: &[u8]) -> Value {
    json!({ "kty": "RSA", "alg": "RS256", "use": "sig", "n": base64url(modulus), "e": base64url(exponent) })
}

/// Builds the JWK of a P-256 key. `point` is uncompressed: the byte 4, then 32 bytes of x and 32 of y.
pub(super) fn p256(point: &[u8]) -> Value {
    let (x, y) = point.get(1..).unwrap_or_default().split_at(point.len() / 2);
    json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "x": base64url(x), "y": base64url(y) })
}

/// The reason why a signature is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignatureFault {
    /// The JWK is not a key for the algorithm.
    UnusableKey,
    /// The signature is not that of the key.
    Invalid,
}

/// Verifies a signature with a JWK.
///
/// # Errors
/// [`SignatureFault`] when the signature is invalid, or the key unusable.
pub(crate) fn verify(jwk: &Value, algorithm: &str, message: &[u8], signature: &[u8]) -> Result<(), SignatureFault> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str).ok_or(SignatureFault::UnusableKey);
    let bytes = |name: &str| from_base64url(text(name)?).ok_or(SignatureFault::UnusableKey);
    let verified = match (text("kty")?, algorithm) {
        ("RSA", "RS256") => {
            let key = RsaPublicKeyComponents { n: bytes("n")?, e: bytes("e")? };
            key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
        }
        ("EC", "ES256") => {
            let point = [vec![4], bytes("x")?, bytes("y")?].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
        }
        _ => return Err(SignatureFault::UnusableKey),
    };
    verified.map_err(|_| SignatureFault::Invalid)
}
