//! Signs intents. Belongs on the thread that serves the request, never inside an actor: an RSA
//! signature takes a third of a millisecond.

use std::fmt;
use std::time::Duration;

use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use serde_json::{Value, json};

use super::key::IntentKey;
use super::payload::IntentPayload;
use crate::callback_address::CallbackAddress;
use crate::claims::scope_bitmap;
use crate::encoding::{base64url, push_base64url};

/// Room for a payload; few are larger.
const PAYLOAD_BYTES: usize = 768;

/// What every intent of a deployment has in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentSettings {
    /// Names the signing key to the authority.
    pub kid: String,
    /// `typ` of the header: `credential-req+jwt` or `JWT`.
    pub typ: String,
    /// `iss`.
    pub issuer: String,
    /// From `iat` to `exp`; an intent never outlives its transaction.
    pub lifetime: Duration,
    /// `ac`: the verifier's client id.
    pub client_id: String,
    /// `sa`: the verifier's registration number.
    pub registration: String,
    /// Characters of `sc`.
    pub scope_length: usize,
}

/// Why an intent was not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// The payload could not be written.
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
    /// The encoded header and its dot, the same for every intent.
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

    /// The intent JWT for a transaction, as compact JWS; every call has a `jti` of its own.
    ///
    /// # Errors
    /// Only if a library fails.
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

    /// The public key with its `kid`, as the authority and the sandbox want to know it.
    #[must_use]
    pub fn public_jwk(&self) -> Value {
        let mut jwk = self.key.public_jwk();
        jwk["kid"] = Value::from(self.settings.kid.as_str());
        jwk
    }
}
