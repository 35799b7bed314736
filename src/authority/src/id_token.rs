//! Verifies ID tokens of the operators' identity provider (OpenID Connect Core 1.0, section 3.1.3.7), and its logout
//! tokens (Back-Channel Logout 1.0, section 2.6): signature, issuer, audience, times and nonce.
//!
//! A token is signed with RS256 or ES256. The key determines the algorithm, never the token alone.

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use sakshi_domain::limits::{CREDENTIAL_DEPTH_MAX, JOSE_HEADER_VALUES_MAX, JWKS_BYTES_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_wire::json::{ValuesLeft, read_object};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;

use crate::encoding::from_base64url;

/// Maximum number of characters of a token.
const TOKEN_CHARS_MAX: usize = 64 * 1_024;
/// Maximum number of values in a token; a person may have many groups.
const TOKEN_VALUES_MAX: usize = 4_096;
/// Seconds by which the provider's clock may be ahead or behind.
const SKEW_SECONDS: i64 = 60;
/// Maximum age of a logout token, in seconds.
const LOGOUT_AGE_SECONDS_MAX: i64 = 300;
/// The event that a logout token must have.
const LOGOUT_EVENT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// The reason why a token is refused. It reveals nothing about the content of the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRefusal {
    /// The token is not a JWS of a JSON object.
    #[error("it is not a signed token")]
    Malformed,
    /// The algorithm is not that of the provider's key.
    #[error("its algorithm is not RS256 or ES256")]
    Algorithm,
    /// The provider has no key with this `kid`.
    #[error("its key is not known")]
    UnknownKey,
    /// The signature is not the provider's.
    #[error("its signature is not the provider's")]
    Signature,
    /// The `iss` is another issuer.
    #[error("it is from another issuer")]
    Issuer,
    /// The `aud` is another client.
    #[error("it is for another client")]
    Audience,
    /// The token has expired, is not valid yet, or lacks a time.
    #[error("it is not valid now")]
    Time,
    /// The `nonce` is that of another request.
    #[error("it answers another request")]
    Nonce,
    /// The token names neither a subject nor a session.
    #[error("it names no subject")]
    Subject,
    /// The token is not a logout token.
    #[error("it is not a logout token")]
    Event,
}

/// The public keys of a provider.
#[derive(Clone)]
pub struct ProviderKeys(Vec<ProviderKey>);

/// A key of the provider.
#[derive(Clone)]
struct ProviderKey {
    kid: Option<String>,
    key: Key,
}

/// The public half of a key.
#[derive(Clone)]
enum Key {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256 { uncompressed_point: Vec<u8> },
}

impl fmt::Debug for ProviderKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProviderKeys({})", self.0.len())
    }
}

/// The values that a token must match.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The `iss`, compared exactly.
    pub issuer: &'a str,
    /// The client id that `aud` must contain.
    pub client_id: &'a str,
    /// The current time.
    pub now: Timestamp,
}

/// The claims of a token that passed every check. `Debug` hides them.
#[derive(Clone, PartialEq)]
pub struct TokenClaims(Map<String, Value>);

impl fmt::Debug for TokenClaims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenClaims([not shown])")
    }
}

impl TokenClaims {
    /// Returns a text claim.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// Returns the texts of a claim, which may be a list of texts or one text.
    #[must_use]
    pub fn texts(&self, name: &str) -> Vec<&str> {
        match self.0.get(name) {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns a time claim, in seconds since the Unix epoch.
    #[must_use]
    pub fn seconds(&self, name: &str) -> Option<i64> {
        self.0.get(name).and_then(Value::as_i64)
    }
}

impl ProviderKeys {
    /// Reads the keys of a JWKS that can verify signatures; `None` if it is malformed. A set without such keys verifies
    /// nothing.
    #[must_use]
    pub fn parse(json: &[u8]) -> Option<Self> {
        let document = read_object(json, CREDENTIAL_DEPTH_MAX, &ValuesLeft::new(JWKS_BYTES_MAX)).ok()?;
        let entries = document.get("keys")?.as_array()?;
        Some(Self(entries.iter().filter_map(Value::as_object).filter_map(parse_provider_key).collect()))
    }

    /// Verifies an ID token that answers a request with this nonce.
    ///
    /// # Errors
    /// [`TokenRefusal`] of the first check that fails.
    pub fn verify_id_token(
        &self,
        token: &str,
        expected: Expected<'_>,
        nonce: &str,
    ) -> Result<TokenClaims, TokenRefusal> {
        let claims = self.verify_common(token, expected)?;
        let has_nonce: bool = claims.text("nonce").unwrap_or_default().as_bytes().ct_eq(nonce.as_bytes()).into();
        if !has_nonce {
            return Err(TokenRefusal::Nonce);
        }
        let has_expired = |end: i64| end.saturating_add(SKEW_SECONDS) <= expected.now.seconds();
        if claims.seconds("exp").is_none_or(has_expired) {
            return Err(TokenRefusal::Time);
        }
        claims.text("sub").filter(|subject| !subject.is_empty()).ok_or(TokenRefusal::Subject)?;
        Ok(claims)
    }

    /// Verifies a logout token, which names a subject or a session.
    ///
    /// # Errors
    /// [`TokenRefusal`] of the first check that fails.
    pub fn verify_logout_token(&self, token: &str, expected: Expected<'_>) -> Result<TokenClaims, TokenRefusal> {
        let claims = self.verify_common(token, expected)?;
        let is_logout =
            claims.0.get("events").and_then(Value::as_object).is_some_and(|events| events.contains_key(LOGOUT_EVENT));
        if !is_logout || claims.0.contains_key("nonce") {
            return Err(TokenRefusal::Event);
        }
        let is_old = |at: i64| at.saturating_add(LOGOUT_AGE_SECONDS_MAX) < expected.now.seconds();
        if claims.seconds("iat").is_none_or(is_old) {
            return Err(TokenRefusal::Time);
        }
        claims.text("sub").or_else(|| claims.text("sid")).ok_or(TokenRefusal::Subject)?;
        Ok(claims)
    }

    /// Runs the checks that are common to all tokens. The signature is verified before the payload is read.
    fn verify_common(&self, token: &str, expected: Expected<'_>) -> Result<TokenClaims, TokenRefusal> {
        let mut segments = token.split('.');
        let (Some(header), Some(payload), Some(signature), None) =
            (segments.next(), segments.next(), segments.next(), segments.next())
        else {
            return Err(TokenRefusal::Malformed);
        };
        if token.len() > TOKEN_CHARS_MAX {
            return Err(TokenRefusal::Malformed);
        }
        let signature = from_base64url(signature).ok_or(TokenRefusal::Malformed)?;
        let signed_text = &token[..header.len() + 1 + payload.len()];
        let header = decode_object(header, JOSE_HEADER_VALUES_MAX)?;
        if header.contains_key("crit") {
            return Err(TokenRefusal::Malformed);
        }
        self.check_signature(&header, signed_text.as_bytes(), &signature)?;
        let claims = TokenClaims(decode_object(payload, TOKEN_VALUES_MAX)?);
        if claims.text("iss") != Some(expected.issuer) {
            return Err(TokenRefusal::Issuer);
        }
        let audience = claims.texts("aud");
        // With several audiences, `azp` names the client to which the token was issued.
        let authorized_party = claims.text("azp");
        if !audience.contains(&expected.client_id)
            || authorized_party.is_some_and(|party| party != expected.client_id)
            || (audience.len() > 1 && authorized_party.is_none())
        {
            return Err(TokenRefusal::Audience);
        }
        let is_ahead = |at: i64| at > expected.now.seconds().saturating_add(SKEW_SECONDS);
        if claims.seconds("iat").is_none_or(is_ahead) || claims.seconds("nbf").is_some_and(is_ahead) {
            return Err(TokenRefusal::Time);
        }
        Ok(claims)
    }

    /// Verifies the signature with the keys of the header's algorithm: with those of its `kid`, or without a `kid` with
    /// all.
    fn check_signature(
        &self,
        header: &Map<String, Value>,
        signed_text: &[u8],
        signature: &[u8],
    ) -> Result<(), TokenRefusal> {
        let text = |name: &str| header.get(name).and_then(Value::as_str);
        let is_rsa = match text("alg") {
            Some("RS256") => true,
            Some("ES256") => false,
            _ => return Err(TokenRefusal::Algorithm),
        };
        let kid = text("kid");
        let mut candidates = self.0.iter().filter(|key| kid.is_none() || key.kid.as_deref() == kid).peekable();
        if candidates.peek().is_none() {
            return Err(TokenRefusal::UnknownKey);
        }
        let mut usable = candidates.filter(|key| matches!(key.key, Key::Rsa { .. }) == is_rsa).peekable();
        if usable.peek().is_none() {
            return Err(TokenRefusal::Algorithm);
        }
        let verifies = |key: &ProviderKey| match &key.key {
            Key::Rsa { modulus, exponent } => {
                let public = RsaPublicKeyComponents { n: modulus, e: exponent };
                public.verify(&RSA_PKCS1_2048_8192_SHA256, signed_text, signature).is_ok()
            }
            Key::P256 { uncompressed_point } => {
                let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, uncompressed_point);
                public.verify(signed_text, signature).is_ok()
            }
        };
        if usable.any(verifies) { Ok(()) } else { Err(TokenRefusal::Signature) }
    }
}

/// Decodes a segment of a JWS as a JSON object with at most this number of values.
fn decode_object(segment: &str, values_max: usize) -> Result<Map<String, Value>, TokenRefusal> {
    let bytes = from_base64url(segment).ok_or(TokenRefusal::Malformed)?;
    read_object(&bytes, CREDENTIAL_DEPTH_MAX, &ValuesLeft::new(values_max)).map_err(|_| TokenRefusal::Malformed)
}

/// Reads a JWK (RFC 7518, sections 6.2.1 and 6.3.1); `None` if it cannot verify RS256 or ES256 signatures.
fn parse_provider_key(jwk: &Map<String, Value>) -> Option<ProviderKey> {
    let text = |name: &str| jwk.get(name).and_then(Value::as_str);
    let bytes = |name: &str| text(name).and_then(from_base64url);
    let absent_or = |name: &str, value: &str| !jwk.contains_key(name) || text(name) == Some(value);
    if !absent_or("use", "sig") {
        return None;
    }
    let key = match text("kty")? {
        "RSA" if absent_or("alg", "RS256") => Key::Rsa { modulus: bytes("n")?, exponent: bytes("e")? },
        "EC" if absent_or("alg", "ES256") && text("crv") == Some("P-256") => {
            let (x, y) = (bytes("x").filter(|x| x.len() == 32)?, bytes("y").filter(|y| y.len() == 32)?);
            Key::P256 { uncompressed_point: [&[4], &x[..], &y[..]].concat() }
        }
        _ => return None,
    };
    Some(ProviderKey { kid: text("kid").map(str::to_owned), key })
}

#[cfg(test)]
mod tests;
