//! The unavoidable cryptography of a request, by itself.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, ParsedPublicKey,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::{Failure, load};

/// Bytes to sign, about as many as in an intent.
const SIGNED_BYTES: usize = 800;

/// A key that signs a fixed text.
pub(crate) enum Signer {
    Rs256(Box<RsaKeyPair>),
    Es256(Box<EcdsaKeyPair>),
}

impl Signer {
    /// Reads the key in a PKCS#8 PEM file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let document = pem::parse(std::fs::read(path)?)?;
        let der = document.contents();
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der) {
            return Ok(Self::Es256(Box::new(pair)));
        }
        Ok(Self::Rs256(Box::new(RsaKeyPair::from_pkcs8(der)?)))
    }

    /// Returns a signature over the fixed text.
    pub(crate) fn sign(&self) -> Result<Vec<u8>, aws_lc_rs::error::Unspecified> {
        let text = [b'x'; SIGNED_BYTES];
        match self {
            Self::Rs256(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), &text, &mut signature)?;
                Ok(signature)
            }
            Self::Es256(pair) => Ok(pair.sign(&SystemRandom::new(), &text)?.as_ref().to_vec()),
        }
    }
}

/// A signature over a text, with the public key that verifies it.
pub(crate) struct Check {
    key: ParsedPublicKey,
    /// The public key's point, for another process.
    point: Vec<u8>,
    text: Vec<u8>,
    signature: Vec<u8>,
}

impl Check {
    /// Reads the signature of a token, given the signer's key.
    fn from_token(token: &str, jwk: &Value) -> Result<Self, Failure> {
        let (text, signature) = token.rsplit_once('.').ok_or("not a JWS")?;
        let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap_or_default());
        let point = [vec![4], coordinate("x")?, coordinate("y")?].concat();
        Self::new(point, text.as_bytes().to_vec(), URL_SAFE_NO_PAD.decode(signature)?)
    }

    /// Builds a check; fails unless the signature is valid.
    fn new(point: Vec<u8>, text: Vec<u8>, signature: Vec<u8>) -> Result<Self, Failure> {
        let check = Self { key: ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &point)?, point, text, signature };
        check.verify()?;
        Ok(check)
    }

    fn verify(&self) -> Result<(), aws_lc_rs::error::Unspecified> {
        self.key.verify_sig(&self.text, &self.signature)
    }
}

/// The two signatures of a credential with key binding: the issuer's and the holder's.
pub(crate) struct Checks([Check; 2]);

impl Checks {
    /// Reads the signatures of a credential.
    pub(crate) fn from_credential(credential: &str, jwks: &str) -> Result<Self, Failure> {
        let issuer: Value = serde_json::from_str(jwks)?;
        let token = credential.split('~').next().unwrap_or_default();
        let payload: Value =
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap_or_default())?)?;
        let binding = credential.rsplit('~').next().unwrap_or_default();
        Ok(Self([Check::from_token(token, &issuer["keys"][0])?, Check::from_token(binding, &payload["cnf"]["jwk"])?]))
    }

    /// Makes two signatures with new keys, to time a verification.
    pub(crate) fn generate() -> Result<Self, Failure> {
        let check = || {
            let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING)?;
            let text = vec![b'x'; SIGNED_BYTES];
            let signature = pair.sign(&SystemRandom::new(), &text)?.as_ref().to_vec();
            Check::new(pair.public_key().as_ref().to_vec(), text, signature)
        };
        Ok(Self([check()?, check()?]))
    }

    /// Verifies both signatures.
    pub(crate) fn verify(&self) -> Result<(), aws_lc_rs::error::Unspecified> {
        self.0.iter().try_for_each(Check::verify)
    }

    /// Encodes the signatures for another process.
    pub(crate) fn to_json(&self) -> String {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let check = |check: &Check| {
            json!({"point": encode(&check.point), "text": encode(&check.text),
            "signature": encode(&check.signature)})
        };
        json!(self.0.iter().map(check).collect::<Vec<_>>()).to_string()
    }

    /// Decodes the output of [`Self::to_json`].
    pub(crate) fn from_json(text: &str) -> Result<Self, Failure> {
        let value: Value = serde_json::from_str(text)?;
        let check = |index: usize| {
            let part = |name: &str| URL_SAFE_NO_PAD.decode(value[index][name].as_str().unwrap_or_default());
            Check::new(part("point")?, part("text")?, part("signature")?)
        };
        Ok(Self([check(0)?, check(1)?]))
    }
}

/// Returns the rate of some work on all cores together, in runs per second.
pub(crate) fn rate_of_all_cores(
    span: Duration,
    work: impl Fn() -> Result<(), aws_lc_rs::error::Unspecified> + Sync,
) -> Result<f64, Failure> {
    let total = AtomicU64::new(0);
    let started = Instant::now();
    std::thread::scope(|scope| {
        let loop_until_end = || {
            let mut count = 0;
            while started.elapsed() < span {
                work()?;
                count += 1;
            }
            total.fetch_add(count, Ordering::Relaxed);
            Ok::<_, Failure>(())
        };
        let threads: Vec<_> = (0..load::cores()).map(|_| scope.spawn(loop_until_end)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })?;
    Ok(total.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}
