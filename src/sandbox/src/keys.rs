//! P-256 keys and compact ES256 signatures (RFC 7515, RFC 7518 §3.4). Verification is in the authority
//! crate.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use thiserror::Error;

/// The error when a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// The bytes are not a P-256 private key in PKCS#8.
    #[error("not a P-256 private key in PKCS#8")]
    Malformed,
    /// The cryptographic library failed, for example because the system has no randomness.
    #[error("the cryptographic library failed")]
    Library,
}

/// A P-256 key pair.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    /// First coordinate of the public key, in base64url.
    x: String,
    /// Second coordinate of the public key, in base64url.
    y: String,
}

impl SigningKey {
    /// Generates a key.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn generate() -> Result<Self, KeyError> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|_| KeyError::Library)?;
        Self::from_pair(pair)
    }

    /// Reads a key in PKCS#8.
    ///
    /// # Errors
    /// The bytes are not a P-256 key in PKCS#8.
    pub fn from_pkcs8(bytes: &[u8]) -> Result<Self, KeyError> {
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes).map_err(|_| KeyError::Malformed)?;
        Self::from_pair(pair)
    }

    /// Builds the key, with the coordinates of its public half.
    fn from_pair(pair: EcdsaKeyPair) -> Result<Self, KeyError> {
        // SEC 1: an uncompressed point is 0x04, then both coordinates.
        let point = pair.public_key().as_ref();
        let (Some(x), Some(y)) = (point.get(1..33), point.get(33..65)) else { return Err(KeyError::Malformed) };
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        Ok(Self { pair, random: SystemRandom::new(), x, y })
    }

    /// Returns the private key as PKCS#8, to be stored.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn to_pkcs8(&self) -> Result<Vec<u8>, KeyError> {
        let document = self.pair.to_pkcs8v1().map_err(|_| KeyError::Library)?;
        Ok(document.as_ref().to_vec())
    }

    /// Returns the public key as a JWK.
    #[must_use]
    pub fn public_jwk(&self) -> Value {
        json!({"kty": "EC", "crv": "P-256", "x": self.x, "y": self.y})
    }

    /// Returns the thumbprint of the public key (RFC 7638), which is the key's id.
    pub(crate) fn thumbprint(&self) -> String {
        let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, self.x, self.y);
        URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes()))
    }

    /// Signs a header and a payload as a compact JWS.
    ///
    /// # Errors
    /// The cryptographic library failed.
    pub fn sign(&self, header: &Value, payload: &Value) -> Result<String, KeyError> {
        let mut jws = String::with_capacity(1_024);
        URL_SAFE_NO_PAD.encode_string(header.to_string(), &mut jws);
        jws.push('.');
        URL_SAFE_NO_PAD.encode_string(payload.to_string(), &mut jws);
        let signature = self.pair.sign(&self.random, jws.as_bytes()).map_err(|_| KeyError::Library)?;
        jws.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut jws);
        Ok(jws)
    }
}

/// Shows the public half only.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.thumbprint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_survives_storage_and_its_debug_output_shows_only_the_public_half() {
        let key = SigningKey::generate().unwrap();
        let stored = key.to_pkcs8().unwrap();
        let restored = SigningKey::from_pkcs8(&stored).unwrap();
        assert_eq!(restored.public_jwk(), key.public_jwk());
        assert_eq!(format!("{restored:?}"), format!("SigningKey({})", key.thumbprint()));
    }

    #[test]
    fn bytes_that_are_not_a_key_are_refused() {
        let stored = SigningKey::generate().unwrap().to_pkcs8().unwrap();
        for bytes in [&[][..], b"key", &stored[..stored.len() - 1]] {
            assert_eq!(SigningKey::from_pkcs8(bytes).err(), Some(KeyError::Malformed));
        }
    }
}
