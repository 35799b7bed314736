//! The keys of trusted issuers: JWK sets (RFC 7517 §5), which are parsed once.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ParsedPublicKey};
use sakshi_domain::limits::{CREDENTIAL_DEPTH_MAX, JWKS_BYTES_MAX};
use sakshi_wire::json::{ValuesLeft, read_object};
use serde_json::{Map, Value};

use crate::encoding::from_base64url;

/// The reason why a JWKS cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwksError {
    /// The JWKS is not a JSON object with an array `keys`.
    #[error("the JWKS is not a JSON object with an array of keys")]
    Malformed,
    /// The JWKS contains a private key.
    #[error("the JWKS contains a private key")]
    PrivateKey,
    /// The JWKS has no key for ES256.
    #[error("the JWKS has no P-256 signing key")]
    NoKey,
}

/// The reason why a key of a JWKS is ignored, or deserves a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwkProblem {
    /// The entry is not a JSON object.
    #[error("a key of the JWKS is not a JSON object")]
    NotAnObject,
    /// A P-256 signing key has no `kid`, so no credential can name it.
    #[error("a P-256 key of the JWKS has no kid")]
    KeyIdMissing,
    /// Two keys have the same `kid`. Both are tried.
    #[error("two keys of the JWKS have the same kid")]
    KeyIdRepeated,
    /// A P-256 key is not a point on the curve.
    #[error("a P-256 key of the JWKS is not a point on the curve")]
    NotOnCurve,
    /// The key is of another type, curve or use.
    #[error("a key of the JWKS is not for ES256 signatures")]
    OtherType,
}

impl JwkProblem {
    /// Every problem.
    pub const ALL: [Self; 5] =
        [Self::NotAnObject, Self::KeyIdMissing, Self::KeyIdRepeated, Self::NotOnCurve, Self::OtherType];

    /// Returns a stable code for logs and metrics.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotAnObject => "not_an_object",
            Self::KeyIdMissing => "key_id_missing",
            Self::KeyIdRepeated => "key_id_repeated",
            Self::NotOnCurve => "not_on_curve",
            Self::OtherType => "other_type",
        }
    }
}

/// An issuer's P-256 signing keys by `kid`. Clones share the keys.
#[derive(Clone)]
pub struct Jwks(Arc<KeySet>);

/// The usable keys of a JWKS, and the problems of others.
struct KeySet {
    by_id: HashMap<String, Vec<IssuerKey>>,
    problems: Vec<JwkProblem>,
}

/// A key with the JWK that it was read from.
pub(super) struct IssuerKey {
    pub(super) key: ParsedPublicKey,
    pub(super) jwk: Arc<Value>,
}

impl fmt::Debug for Jwks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Jwks").field(&self.0.by_id.keys()).finish()
    }
}

impl Jwks {
    /// Reads a JWKS. Unusable keys do not invalidate the others; see [`Jwks::problems`].
    ///
    /// # Errors
    /// [`JwksError`] if the set is malformed, contains a private key, or has no key for ES256.
    pub fn parse(json: &[u8]) -> Result<Self, JwksError> {
        // A repeated name could mean another key to another reader. A set has at most as many values as bytes.
        let document = read_object(json, CREDENTIAL_DEPTH_MAX, &ValuesLeft::new(JWKS_BYTES_MAX))
            .map_err(|_| JwksError::Malformed)?;
        let entries = document.get("keys").and_then(Value::as_array).ok_or(JwksError::Malformed)?;
        if entries.iter().any(|jwk| jwk.get("d").is_some()) {
            return Err(JwksError::PrivateKey);
        }
        let mut keys = KeySet { by_id: HashMap::new(), problems: Vec::new() };
        for jwk in entries {
            match es256_key(jwk) {
                Ok((kid, key)) => {
                    let keys_with_id = keys.by_id.entry(kid.to_owned()).or_default();
                    if !keys_with_id.is_empty() {
                        keys.problems.push(JwkProblem::KeyIdRepeated);
                    }
                    keys_with_id.push(IssuerKey { key, jwk: Arc::new(jwk.clone()) });
                }
                Err(problem) => keys.problems.push(problem),
            }
        }
        if keys.by_id.is_empty() { Err(JwksError::NoKey) } else { Ok(Self(Arc::new(keys))) }
    }

    /// Returns the problem of each key that was ignored or shares a `kid`, in the order of the set.
    #[must_use]
    pub fn problems(&self) -> &[JwkProblem] {
        &self.0.problems
    }

    /// Returns the keys with this `kid`. There is more than one only if the issuer repeats the `kid`.
    pub(super) fn get(&self, kid: &str) -> &[IssuerKey] {
        self.0.by_id.get(kid).map_or(&[], Vec::as_slice)
    }
}

/// An issuer whose credentials are trusted.
#[derive(Clone, Debug)]
pub struct TrustedIssuer {
    /// The `iss`, compared exactly.
    pub issuer: String,
    /// The keys.
    pub jwks: Jwks,
}

/// Returns the `kid` and the key of an entry that can verify ES256.
fn es256_key(jwk: &Value) -> Result<(&str, ParsedPublicKey), JwkProblem> {
    let jwk = jwk.as_object().ok_or(JwkProblem::NotAnObject)?;
    if !may_verify_es256(jwk) {
        return Err(JwkProblem::OtherType);
    }
    let kid = jwk.get("kid").and_then(Value::as_str).ok_or(JwkProblem::KeyIdMissing)?;
    Ok((kid, p256_key(jwk).ok_or(JwkProblem::NotOnCurve)?))
}

/// Returns true if the JWK is declared as a P-256 key for ES256 signatures.
fn may_verify_es256(jwk: &Map<String, Value>) -> bool {
    let has_member = |name: &str, value: &str| jwk.get(name).and_then(Value::as_str) == Some(value);
    let absent_or = |name: &str, value: &str| !jwk.contains_key(name) || has_member(name, value);
    has_member("kty", "EC") && has_member("crv", "P-256") && absent_or("use", "sig") && absent_or("alg", "ES256")
}

/// Returns the P-256 public key of a JWK (RFC 7518 §6.2.1); `None` for any other kind of key.
pub(super) fn p256_key(jwk: &Map<String, Value>) -> Option<ParsedPublicKey> {
    let has_member = |name: &str, value: &str| jwk.get(name).and_then(Value::as_str) == Some(value);
    let coordinate =
        |name: &str| jwk.get(name).and_then(Value::as_str).and_then(from_base64url).filter(|bytes| bytes.len() == 32);
    if !has_member("kty", "EC") || !has_member("crv", "P-256") {
        return None;
    }
    let mut point = [4; 65];
    point[1..33].copy_from_slice(&coordinate("x")?);
    point[33..].copy_from_slice(&coordinate("y")?);
    ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).ok()
}
