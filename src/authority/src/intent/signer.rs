//! Signs intents. An RSA signature takes a third of a millisecond, so it is made on the thread that serves
//! the request and never in an actor. A key on a token has threads of its own.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use serde_json::{Value, json};
use uuid::Uuid;

use super::jwk;
use super::kept::KeptIntent;
use super::key::IntentKey;
use super::payload::{IntentPayload, IntentSettings};
use crate::callback_address::CallbackAddress;
use crate::claims::scope_bitmap;
use crate::encoding::{base64url, push_base64url};
use crate::evidence::{self, Evidence};

/// Initial capacity for a payload; few are larger.
const PAYLOAD_BYTES: usize = 768;

/// Reason why an intent was not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// The payload could not be serialised.
    #[error("the intent could not be serialised")]
    Serialisation,
    /// The cryptographic library or the token failed.
    #[error("the intent could not be signed")]
    Signature,
    /// The token that has the key is unavailable.
    #[error("the token that signs intents is away")]
    Unavailable,
}

/// A key beside the first one.
#[derive(Debug)]
pub struct FurtherIntentKey {
    /// Its id at the authority.
    pub kid: String,
    /// The key.
    pub key: IntentKey,
    /// Time from which it signs; without one it is only published, like a key that signed until recently.
    pub not_before: Option<Timestamp>,
}

/// A key with the data common to all intents that it signs.
struct SigningKey {
    kid: String,
    key: IntentKey,
    /// Its public half.
    public: Value,
    /// The encoded header and its dot.
    prefix: String,
    signs_from: Option<Timestamp>,
}

impl SigningKey {
    fn new(kid: String, key: IntentKey, typ: &str, signs_from: Option<Timestamp>) -> Self {
        let header = json!({ "alg": key.algorithm(), "typ": typ, "kid": kid });
        let prefix = base64url(header.to_string().as_bytes()) + ".";
        Self { public: key.public_jwk(), kid, key, prefix, signs_from }
    }
}

/// Value of `chosen` while no key is chosen.
const BY_SETTINGS: usize = usize::MAX;

/// Signer of intents with one key at a time: the one that was chosen, or else the one whose time began last.
pub struct IntentSigner {
    /// Never empty.
    keys: Vec<SigningKey>,
    /// The place of the key that was chosen.
    chosen: AtomicUsize,
    settings: IntentSettings,
}

/// A signed intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIntent {
    /// The compact JWS.
    pub jwt: String,
    /// The bytes that make it again, if they can be kept.
    pub kept: Option<Vec<u8>>,
}

/// A JWS in its flattened JSON form (RFC 7515 §7.2.2), each part in Base64url. It holds all that was shared.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedFile {
    /// The signed content.
    pub payload: String,
    /// The header, which is signed too.
    pub protected: String,
    /// The signature.
    pub signature: String,
}

/// View of a signer's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentKeyView {
    /// Its id at the authority.
    pub kid: String,
    /// The JWS algorithm.
    pub algorithm: &'static str,
    /// Time from which it signs by the settings; `None` for the first key, and for one that never does.
    pub signs_from: Option<Timestamp>,
    /// True if it signs now.
    pub signs: bool,
    /// True if it is the first key, which has no beginning.
    pub is_first: bool,
}

impl fmt::Debug for IntentSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kids: Vec<&str> = self.keys.iter().map(|key| &*key.kid).collect();
        f.debug_struct("IntentSigner").field("kids", &kids).finish_non_exhaustive()
    }
}

impl IntentSigner {
    /// Creates a signer for one key under these settings.
    #[must_use]
    pub fn new(key: IntentKey, settings: IntentSettings) -> Self {
        let first = SigningKey::new(settings.kid.clone(), key, &settings.typ, Some(Timestamp::from_millis(i64::MIN)));
        Self { keys: vec![first], chosen: AtomicUsize::new(BY_SETTINGS), settings }
    }

    /// Adds further keys, each of which signs from its time on.
    #[must_use]
    pub fn with_further(mut self, further: Vec<FurtherIntentKey>) -> Self {
        let typ = &self.settings.typ;
        self.keys.extend(
            further
                .into_iter()
                .map(|FurtherIntentKey { kid, key, not_before }| SigningKey::new(kid, key, typ, not_before)),
        );
        self
    }

    /// Makes the key with this id sign from now on. With none, or one that the signer does not have, the times of the
    /// keys decide. Returns `false` when it does not have it.
    pub fn choose(&self, kid: Option<&str>) -> bool {
        let place = kid.map(|kid| self.keys.iter().position(|key| key.kid == kid));
        self.chosen.store(place.flatten().unwrap_or(BY_SETTINGS), Ordering::Relaxed);
        place != Some(None)
    }

    /// Returns true if it has the key with this id.
    #[must_use]
    pub fn has(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.kid == kid)
    }

    /// Returns all keys, in the order of the settings.
    #[must_use]
    pub fn keys(&self, now: Timestamp) -> Vec<IntentKeyView> {
        let signing = self.signing(now).map(|key| key.kid.as_str());
        let view = |(place, key): (usize, &SigningKey)| IntentKeyView {
            kid: key.kid.clone(),
            algorithm: key.key.algorithm(),
            signs_from: key.signs_from.filter(|_| place > 0),
            signs: signing == Some(&*key.kid),
            is_first: place == 0,
        };
        self.keys.iter().enumerate().map(view).collect()
    }

    /// Returns the key that was chosen, or the one whose time began last.
    fn signing(&self, now: Timestamp) -> Option<&SigningKey> {
        if let Some(chosen) = self.keys.get(self.chosen.load(Ordering::Relaxed)) {
            return Some(chosen);
        }
        self.keys.iter().filter(|key| key.signs_from.is_some_and(|from| from <= now)).max_by_key(|key| key.signs_from)
    }

    /// Signs the intent JWT of a transaction as a compact JWS; each has its own `jti`.
    ///
    /// # Errors
    /// A library failed, or the token is unavailable.
    pub async fn sign(
        &self,
        pending: &Pending,
        callback: &CallbackAddress,
        now: Timestamp,
    ) -> Result<SignedIntent, IntentError> {
        // The first key has no beginning.
        let signing = self.signing(now).ok_or(IntentError::Signature)?;
        let jti = Uuid::new_v4();
        let mut jwt = self.unsigned(signing, pending, callback, (now, jti))?;
        let signature = signing.key.sign(jwt.as_bytes()).await;
        let signature = signature.ok_or_else(|| self.is_available(now).err().unwrap_or(IntentError::Signature))?;
        jwt.push('.');
        push_base64url(&signature, &mut jwt);
        let kept = KeptIntent { at: now, jti, kid: &signing.kid, signature: &signature }.to_bytes();
        Ok(SignedIntent { jwt, kept })
    }

    /// Rebuilds an intent from its stored bytes. Returns `None` when the result would differ, another key signs now, or
    /// the intent's time is over. An intent that ends before its transaction is used for a quarter of its time only.
    #[must_use]
    pub fn again(&self, pending: &Pending, callback: &CallbackAddress, kept: &[u8], now: Timestamp) -> Option<String> {
        let KeptIntent { at, jti, kid, signature } = KeptIntent::of_bytes(kept)?;
        let signing = self.signing(now).filter(|signing| signing.kid == kid)?;
        let ends_with_transaction = at + self.settings.lifetime >= pending.expires_at;
        let until = if ends_with_transaction { pending.expires_at } else { at + self.settings.lifetime / 4 };
        if now >= until {
            return None;
        }
        let mut jwt = self.unsigned(signing, pending, callback, (at, jti)).ok()?;
        // The settings may have changed.
        if jwk::verifies(&signing.public, signing.key.algorithm(), jwt.as_bytes(), signature) != Some(true) {
            return None;
        }
        jwt.push('.');
        push_base64url(signature, &mut jwt);
        Some(jwt)
    }

    /// Builds the part of an intent that is signed.
    fn unsigned(
        &self,
        signing: &SigningKey,
        pending: &Pending,
        callback: &CallbackAddress,
        made: (Timestamp, Uuid),
    ) -> Result<String, IntentError> {
        let scope = scope_bitmap(pending.terms.claims, self.settings.scope_length);
        let payload = IntentPayload::new(&self.settings, pending, &scope, callback, made);
        let mut json = Vec::with_capacity(PAYLOAD_BYTES);
        serde_json::to_writer(&mut json, &payload).map_err(|_| IntentError::Serialisation)?;
        let mut jwt = String::with_capacity(signing.prefix.len() + json.len() * 4 / 3 + 400);
        jwt.push_str(&signing.prefix);
        push_base64url(&json, &mut jwt);
        Ok(jwt)
    }

    /// Signs an evidence file with this payload, as a JWS in its flattened form.
    ///
    /// # Errors
    /// As [`IntentSigner::sign`].
    pub async fn seal(&self, evidence: &Evidence, now: Timestamp) -> Result<SealedFile, IntentError> {
        let signing = self.signing(now).ok_or(IntentError::Signature)?;
        let header = evidence::header(signing.key.algorithm(), &signing.kid, &signing.public);
        let json = serde_json::to_vec(evidence).map_err(|_| IntentError::Serialisation)?;
        let (protected, payload) = (base64url(header.to_string().as_bytes()), base64url(&json));
        let signature = signing.key.sign(format!("{protected}.{payload}").as_bytes()).await;
        let signature = signature.ok_or_else(|| self.is_available(now).err().unwrap_or(IntentError::Signature))?;
        Ok(SealedFile { payload, protected, signature: base64url(&signature) })
    }

    /// Returns an error while the key that signs now is known to be unavailable.
    ///
    /// # Errors
    /// [`IntentError::Unavailable`].
    pub fn is_available(&self, now: Timestamp) -> Result<(), IntentError> {
        let is_away = self.signing(now).is_some_and(|signing| !signing.key.is_available());
        if is_away { Err(IntentError::Unavailable) } else { Ok(()) }
    }

    /// Returns the public halves of all keys as JWKs with their `kid`, also of those that do not sign yet or any more.
    #[must_use]
    pub fn public_jwks(&self) -> Vec<Value> {
        let public = |key: &SigningKey| {
            let mut jwk = key.public.clone();
            jwk["kid"] = Value::from(key.kid.as_str());
            jwk
        };
        self.keys.iter().map(public).collect()
    }
}
