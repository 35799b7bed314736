//! The keys of trusted issuers: JWK sets (RFC 7517 §5), parsed once.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ParsedPublicKey};
use sakshi_domain::limits::{CREDENTIAL_DEPTH_MAX, JWKS_BYTES_MAX};
use sakshi_wire::json::{ValuesLeft, read_object};
use serde_json::{Map, Value};

use crate::encoding::from_base64url;

/// Why a JWKS cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    /// Not a JSON object with an array `keys` of objects.
    #[error("the JWKS is not a JSON object with an array of keys")]
    Malformed,
    /// A P-256 signing key has no `kid`.
    #[error("a P-256 key of the JWKS has no kid")]
    KeyIdMissing,
    /// Two keys have the same `kid`.
    #[error("two keys of the JWKS have the same kid")]
    KeyIdRepeated,
    /// A P-256 key is not a point on the curve.
    #[error("a P-256 key of the JWKS is not a point on the curve")]
    Unusable,
    /// It contains a private key.
    #[error("the JWKS contains a private key")]
    PrivateKey,
    /// It has no key for ES256.
    #[error("the JWKS has no P-256 signing key")]
    NoKey,
}

/// An issuer's P-256 signing keys by `kid`. Clones share them.
#[derive(Clone)]
pub struct Jwks(Arc<HashMap<String, ParsedPublicKey>>);

impl fmt::Debug for Jwks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Jwks").field(&self.0.keys()).finish()
    }
}

impl Jwks {
    /// Reads a JWKS. Keys for other algorithms or for encryption are ignored.
    ///
    /// # Errors
    /// The set is malformed or ambiguous, contains a private key, or has no key for ES256.
    pub fn parse(json: &[u8]) -> Result<Self, JwksError> {
        // A name that occurs twice would make a key of which another reader sees another half. A set has at most as many values as bytes.
        let document = read_object(json, CREDENTIAL_DEPTH_MAX, &ValuesLeft::new(JWKS_BYTES_MAX)).map_err(|_| JwksError::Malformed)?;
        let listed = document.get("keys").and_then(Value::as_array).ok_or(JwksError::Malformed)?;
        let mut keys = HashMap::new();
        for jwk in listed {
            let jwk = jwk.as_object().ok_or(JwksError::Malformed)?;
            if jwk.contains_key("d") {
                return Err(JwksError::PrivateKey);
            }
            if !may_verify_es256(jwk) {
                continue;
            }
            let kid = jwk.get("kid").and_then(Value::as_str).ok_or(JwksError::KeyIdMissing)?;
            let key = p256_key(jwk).ok_or(JwksError::Unusable)?;
            if keys.insert(kid.to_owned(), key).is_some() {
                return Err(JwksError::KeyIdRepeated);
            }
        }
        if keys.is_empty() { Err(JwksError::NoKey) } else { Ok(Self(Arc::new(keys))) }
    }

    pub(super) fn get(&self, kid: &str) -> Option<&ParsedPublicKey> {
        self.0.get(kid)
    }
}

/// An issuer whose credentials are trusted.
#[derive(Clone, Debug)]
pub struct TrustedIssuer {
    /// Its `iss`, compared exactly.
    pub issuer: String,
    /// Its keys.
    pub jwks: Jwks,
}

fn may_verify_es256(jwk: &Map<String, Value>) -> bool {
    let is = |name: &str, value: &str| jwk.get(name).and_then(Value::as_str) == Some(value);
    let absent_or = |name: &str, value: &str| !jwk.contains_key(name) || is(name, value);
    is("kty", "EC") && is("crv", "P-256") && absent_or("use", "sig") && absent_or("alg", "ES256")
}

/// The P-256 public key of a JWK (RFC 7518 §6.2.1); `None` when it is another kind of key.
pub(super) fn p256_key(jwk: &Map<String, Value>) -> Option<ParsedPublicKey> {
    let is = |name: &str, value: &str| jwk.get(name).and_then(Value::as_str) == Some(value);
    let coordinate = |name: &str| jwk.get(name).and_then(Value::as_str).and_then(from_base64url).filter(|bytes| bytes.len() == 32);
    if !is("kty", "EC") || !is("crv", "P-256") {
        return None;
    }
    let mut point = [4; 65];
    point[1..33].copy_from_slice(&coordinate("x")?);
    point[33..].copy_from_slice(&coordinate("y")?);
    ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).ok()
}
