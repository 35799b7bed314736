//! The signing key for intents: RSA with at least 2048 bits for RS256, or P-256 for ES256. It is in this process, or in
//! a hardware token or vault.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::error::KeyRejected;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::Value;

use super::jwk;

/// Bits of the smallest RSA key.
const RSA_BITS_MIN: usize = 2_048;

/// The reason why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentKeyError {
    /// The text is not PEM.
    #[error("the intent key is not a PEM document")]
    NotPem,
    /// The PEM contains a certificate, a public key, or an encrypted or SEC1 key.
    #[error("the intent key must be a `PRIVATE KEY` (PKCS#8) or `RSA PRIVATE KEY` (PKCS#1)")]
    OtherKind,
    /// The key is damaged, or neither RSA nor P-256.
    #[error("the intent key is neither an RSA nor a P-256 key")]
    Unusable,
    /// The RSA key has less than 2048 bits.
    #[error("the RSA intent key must have at least 2048 bits")]
    TooSmall,
    /// The system could not generate a key.
    #[error("no key could be generated")]
    Generation,
}

/// The future of a signature; `None` if signing fails.
pub type SignatureFuture = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>;

/// An RSA key that never enters this process. A hardware token or a vault signs with it.
pub trait RemoteKey: fmt::Debug + Send + Sync {
    /// Signs a message with RS256.
    fn sign(&self, message: Vec<u8>) -> SignatureFuture;

    /// Returns false while the key is known to be unavailable.
    fn is_available(&self) -> bool;
}

/// The public numbers of an RSA key, big-endian (RFC 8017 §3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaPublicNumbers {
    /// The modulus.
    pub modulus: Vec<u8>,
    /// The exponent.
    pub exponent: Vec<u8>,
}

/// A key pair in this process, or the handle of a remote key.
enum Pair {
    Rs256(Box<RsaKeyPair>),
    Es256(Box<EcdsaKeyPair>),
    Remote { key: Arc<dyn RemoteKey>, public: RsaPublicNumbers },
}

/// A private key that signs intents.
pub struct IntentKey(Pair);

impl fmt::Debug for IntentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IntentKey({}, redacted)", self.algorithm())
    }
}

impl IntentKey {
    /// Reads a private key from PEM: PKCS#8 of either kind, or PKCS#1.
    ///
    /// # Errors
    /// [`IntentKeyError`] if the text is not such a key, or the RSA key has under 2048 bits.
    pub fn from_pem(text: &str) -> Result<Self, IntentKeyError> {
        let document = pem::parse(text).map_err(|_| IntentKeyError::NotPem)?;
        let der = document.contents();
        let rsa = match document.tag() {
            "RSA PRIVATE KEY" => RsaKeyPair::from_der(der).map_err(to_key_error)?,
            "PRIVATE KEY" => match EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der) {
                Ok(pair) => return Ok(Self(Pair::Es256(Box::new(pair)))),
                Err(_) => RsaKeyPair::from_pkcs8(der).map_err(to_key_error)?,
            },
            _ => return Err(IntentKeyError::OtherKind),
        };
        Ok(Self(Pair::Rs256(Box::new(rsa))))
    }

    /// Creates a key that signs with a remote key.
    ///
    /// # Errors
    /// [`IntentKeyError::TooSmall`] if the modulus has under 2048 bits.
    pub fn remote(key: Arc<dyn RemoteKey>, public: RsaPublicNumbers) -> Result<Self, IntentKeyError> {
        let bits = public.modulus.iter().skip_while(|byte| **byte == 0).count() * 8;
        if bits < RSA_BITS_MIN { Err(IntentKeyError::TooSmall) } else { Ok(Self(Pair::Remote { key, public })) }
    }

    /// Generates an RSA-2048 key and its PKCS#8 PEM. Takes up to a second.
    ///
    /// # Errors
    /// [`IntentKeyError::Generation`] if the system cannot generate a key.
    pub fn generate_rs256() -> Result<(Self, String), IntentKeyError> {
        let pair = RsaKeyPair::generate(KeySize::Rsa2048).map_err(|_| IntentKeyError::Generation)?;
        let der = pair.as_der().map_err(|_| IntentKeyError::Generation)?;
        let pem = to_pem(der.as_ref());
        Ok((Self(Pair::Rs256(Box::new(pair))), pem))
    }

    /// Generates a P-256 key and its PKCS#8 PEM.
    ///
    /// # Errors
    /// [`IntentKeyError::Generation`] if the system cannot generate a key.
    pub fn generate_es256() -> Result<(Self, String), IntentKeyError> {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).map_err(|_| IntentKeyError::Generation)?;
        let der = pair.to_pkcs8v1().map_err(|_| IntentKeyError::Generation)?;
        let pem = to_pem(der.as_ref());
        Ok((Self(Pair::Es256(Box::new(pair))), pem))
    }

    /// Returns the JWS algorithm (RFC 7518 §3.1).
    #[must_use]
    pub const fn algorithm(&self) -> &'static str {
        match self.0 {
            Pair::Rs256(_) | Pair::Remote { .. } => "RS256",
            Pair::Es256(_) => "ES256",
        }
    }

    /// Returns the public half as a JWK without `kid` (RFC 7517).
    #[must_use]
    pub fn public_jwk(&self) -> Value {
        match &self.0 {
            Pair::Rs256(pair) => {
                let (modulus, exponent) = (pair.public_key().modulus(), pair.public_key().exponent());
                jwk::rsa(modulus.big_endian_without_leading_zero(), exponent.big_endian_without_leading_zero())
            }
            Pair::Remote { public, .. } => jwk::rsa(&public.modulus, &public.exponent),
            Pair::Es256(pair) => jwk::p256(pair.public_key().as_ref()),
        }
    }

    /// Returns false while the key is known to be unavailable.
    pub(super) fn is_available(&self) -> bool {
        match &self.0 {
            Pair::Rs256(_) | Pair::Es256(_) => true,
            Pair::Remote { key, .. } => key.is_available(),
        }
    }

    /// Signs a message; `None` if the library or the remote key fails.
    pub(super) async fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        match &self.0 {
            Pair::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).ok()?;
                Some(signature)
            }
            Pair::Remote { key, .. } => key.sign(message.to_vec()).await,
            Pair::Es256(pair) => Some(pair.sign(&SystemRandom::new(), message).ok()?.as_ref().to_vec()),
        }
    }
}

/// Maps the library's error. It distinguishes small RSA keys from damaged ones only by its description.
fn to_key_error(rejected: KeyRejected) -> IntentKeyError {
    if rejected.description_() == "TooSmall" { IntentKeyError::TooSmall } else { IntentKeyError::Unusable }
}

fn to_pem(der: &[u8]) -> String {
    pem::encode(&pem::Pem::new("PRIVATE KEY", der))
}
