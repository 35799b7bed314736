//! Signs intents. An RSA signature takes a third of a millisecond, so it is made on the thread that serves
//! the request and never in an actor.

use std::fmt;

use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use serde_json::{Value, json};

use super::key::IntentKey;
use super::payload::{IntentPayload, IntentSettings};
use crate::callback_address::CallbackAddress;
use crate::claims::scope_bitmap;
use crate::encoding::{base64url, push_base64url};

/// Initial capacity for a payload; few are larger.
const PAYLOAD_BYTES: usize = 768;

/// Why an intent was not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// The payload could not be serialised.
    #[error("the intent could not be serialised")]
    Serialisation,
    /// The cryptographic library failed.
    #[error("the intent could not be signed")]
    Signature,
}

/// Signs intents with one key.
pub struct IntentSigner {
    key: IntentKey,
    settings: IntentSettings,
    /// The encoded header and its dot, which are the same for all intents.
    prefix: String,
}

impl fmt::Debug for IntentSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntentSigner").field("key", &self.key).field("kid", &self.settings.kid).finish_non_exhaustive()
    }
}

impl IntentSigner {
    /// A signer for one key under these settings.
    #[must_use]
    pub fn new(key: IntentKey, settings: IntentSettings) -> Self {
        let header = json!({ "alg": key.algorithm(), "typ": settings.typ, "kid": settings.kid });
        let prefix = base64url(header.to_string().as_bytes()) + ".";
        Self { key, settings, prefix }
    }

    /// The intent JWT of a transaction as a compact JWS; each has its own `jti`.
    ///
    /// # Errors
    /// A library failed.
    pub fn sign(&self, pending: &Pending, callback: &CallbackAddress, now: Timestamp) -> Result<String, IntentError> {
        let scope = scope_bitmap(pending.terms.claims, self.settings.scope_length);
        let payload = IntentPayload::new(&self.settings, pending, &scope, callback, now);
        let mut json = Vec::with_capacity(PAYLOAD_BYTES);
        serde_json::to_writer(&mut json, &payload).map_err(|_| IntentError::Serialisation)?;
        let mut jwt = String::with_capacity(self.prefix.len() + json.len() * 4 / 3 + 400);
        jwt.push_str(&self.prefix);
        push_base64url(&json, &mut jwt);
        let signature = self.key.sign(jwt.as_bytes()).ok_or(IntentError::Signature)?;
        jwt.push('.');
        push_base64url(&signature, &mut jwt);
        Ok(jwt)
    }

    /// The public key as a JWK with its `kid`.
    #[must_use]
    pub fn public_jwk(&self) -> Value {
        let mut jwk = self.key.public_jwk();
        jwk["kid"] = Value::from(self.settings.kid.as_str());
        jwk
    }
}
