//! Reads intents as the identity app does. The text is untrusted.

use std::fmt;

use sakshi_domain::claims::ClaimSet;
use sakshi_domain::limits::INTENT_BYTES_MAX;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::jwk::{self, SignatureFault};
use crate::claims::parse_scope;
use crate::encoding::from_base64url;

/// The reason why a text cannot be read as an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentReadError {
    /// The text is longer than an intent can be.
    #[error("the intent is too long")]
    TooLong,
    /// The text is not three base64url segments with JSON in the first two.
    #[error("the intent is not a compact JWS")]
    NotAJws,
    /// A field is missing or of the wrong type.
    #[error("the intent lacks a field")]
    Fields,
    /// The key does not fit the algorithm in the header.
    #[error("the key does not fit the intent's algorithm")]
    Key,
    /// The signature was not made with the key.
    #[error("the intent's signature is wrong")]
    Signature,
}

/// The contents of an intent (protocol, section 1).
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct IntentClaims {
    /// The transaction id.
    pub txn: String,
    /// The requested item: `credential`.
    pub i: String,
    /// The language: the authority's number or an ISO code.
    pub lang: String,
    /// The scope bitmap.
    pub sc: String,
    /// Always 1.
    pub pop: u8,
    /// The channel: `web`, `qr` or `app`.
    pub ch: String,
    /// 1 if a face scan is required, else 0; a number or a text.
    #[serde(deserialize_with = "number_or_text")]
    pub m: u8,
    /// The package id of the requesting Android app.
    #[serde(default)]
    pub aid: Option<String>,
    /// Base64 of the SHA-256 of the requesting app's signing certificate.
    #[serde(default)]
    pub asig: Option<String>,
    /// The verifier's client id.
    pub ac: String,
    /// The verifier's registration number.
    pub sa: String,
    /// The URL to which the answer is posted.
    pub cb: String,
    /// The origin of `cb`, which is the audience of a key binding.
    pub aud: String,
    /// The verifier's name.
    pub iss: String,
    /// Start of validity, in seconds since the Unix epoch.
    pub iat: i64,
    /// End of validity, in seconds since the Unix epoch.
    pub exp: i64,
    /// Name of the expected person; personal data.
    #[serde(default)]
    pub ht: Option<String>,
    /// The unique id of the intent.
    pub jti: String,
}

impl IntentClaims {
    /// Returns the requested claims.
    #[must_use]
    pub fn requested(&self) -> ClaimSet {
        parse_scope(&self.sc)
    }
}

impl fmt::Debug for IntentClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntentClaims").field("txn", &self.txn).field("ch", &self.ch).finish_non_exhaustive()
    }
}

/// Reads an intent without verifying its signature, to display it.
///
/// # Errors
/// [`IntentReadError`] if the text is not an intent.
pub fn decode_unverified(jwt: &str) -> Result<IntentClaims, IntentReadError> {
    let parts = JwsParts::split(jwt)?;
    serde_json::from_slice(&parts.payload).map_err(|_| IntentReadError::Fields)
}

/// Reads an intent and verifies its signature with this JWK. Does not check times.
///
/// # Errors
/// [`IntentReadError`] if the text is not an intent, the key is of another kind, or the signature is invalid.
pub fn verify(jwt: &str, jwk: &Value) -> Result<IntentClaims, IntentReadError> {
    let parts = JwsParts::split(jwt)?;
    let algorithm = parts.header.get("alg").and_then(Value::as_str).ok_or(IntentReadError::Key)?;
    match jwk::verify(jwk, algorithm, parts.signed_text.as_bytes(), &parts.signature) {
        Err(SignatureFault::UnusableKey) => Err(IntentReadError::Key),
        Err(SignatureFault::Invalid) => Err(IntentReadError::Signature),
        Ok(()) => serde_json::from_slice(&parts.payload).map_err(|_| IntentReadError::Fields),
    }
}

/// Deserialises a small number, or its digits in a string.
fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let number = value.as_u64().and_then(|number| u8::try_from(number).ok());
    number.or_else(|| value.as_str()?.parse().ok()).ok_or_else(|| D::Error::custom("not a number"))
}

/// The decoded parts of a compact JWS.
struct JwsParts<'a> {
    header: Value,
    payload: Vec<u8>,
    signature: Vec<u8>,
    /// Header and payload as received.
    signed_text: &'a str,
}

impl<'a> JwsParts<'a> {
    fn split(jwt: &'a str) -> Result<Self, IntentReadError> {
        if jwt.len() > INTENT_BYTES_MAX {
            return Err(IntentReadError::TooLong);
        }
        let not_a_jws = || IntentReadError::NotAJws;
        let (signed_text, signature) = jwt.rsplit_once('.').ok_or_else(not_a_jws)?;
        let (header, payload) = signed_text.split_once('.').ok_or_else(not_a_jws)?;
        let decode = |text: &str| from_base64url(text).ok_or_else(not_a_jws);
        let header = serde_json::from_slice(&decode(header)?).map_err(|_| not_a_jws())?;
        Ok(Self { header, payload: decode(payload)?, signature: decode(signature)?, signed_text })
    }
}
