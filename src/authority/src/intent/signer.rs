//! Signs intents. An RSA signature takes a third of a millisecond, so the thread that serves the request signs,
//! never an actor. A remote key has its own threads.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;
use serde_json::{Value, json};
use uuid::Uuid;

use super::jwk;
use super::key::IntentKey;
use super::payload::{IntentPayload, IntentSettings};
use super::stored_intent::StoredIntent;
use crate::callback_address::CallbackAddress;
use crate::claims::scope_bitmap;
use crate::encoding::{base64url, push_base64url};
use crate::evidence::{self, Evidence};

/// Initial capacity for a payload in bytes; few payloads are larger.
const PAYLOAD_BYTES: usize = 768;
/// Characters that a signature and its dot add to a JWT, with most keys.
const SIGNATURE_CHARS: usize = 400;

/// The reason why an intent was not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntentError {
    /// The payload could not be serialised.
    #[error("the intent could not be serialised")]
    Serialisation,
    /// The cryptographic library or the remote key failed.
    #[error("the intent could not be signed")]
    Signature,
    /// The remote key is unavailable.
    #[error("the token that signs intents is unavailable")]
    Unavailable,
}

/// A key that signs intents from some time on, in addition to the first key of the settings.
#[derive(Debug)]
pub struct FurtherIntentKey {
    /// The id of the key at the authority.
    pub kid: String,
    /// The key.
    pub key: IntentKey,
    /// Time from which the key signs. `None` for a key that is only published, such as a retired one.
    pub not_before: Option<Timestamp>,
}

/// A key with the data common to all intents that it signs.
struct SigningKey {
    kid: String,
    key: IntentKey,
    /// The public half as a JWK.
    public: Value,
    /// The encoded header with its dot.
    jwt_prefix: String,
    /// Time from which the key signs; `None` for a key that is only published.
    signs_from: Option<Timestamp>,
}

impl SigningKey {
    fn new(kid: String, key: IntentKey, typ: &str, signs_from: Option<Timestamp>) -> Self {
        let header = json!({ "alg": key.algorithm(), "typ": typ, "kid": kid });
        let jwt_prefix = base64url(header.to_string().as_bytes()) + ".";
        Self { public: key.public_jwk(), kid, key, jwt_prefix, signs_from }
    }
}

/// Value of [`IntentSigner::chosen`] while the settings decide.
const BY_SETTINGS: usize = usize::MAX;

/// Signer of intents. The key that the operator chose signs; without a choice, the key whose time began last.
pub struct IntentSigner {
    /// Never empty.
    keys: Vec<SigningKey>,
    /// Index of the chosen key, or [`BY_SETTINGS`].
    chosen: AtomicUsize,
    settings: IntentSettings,
}

/// A signed intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedIntent {
    /// The compact JWS.
    pub jwt: String,
    /// The bytes to store, from which [`IntentSigner::rebuild`] rebuilds the intent; `None` if the key id is too long.
    pub stored: Option<Vec<u8>>,
}

/// An evidence file: a JWS in flattened JSON form (RFC 7515 §7.2.2), each part in Base64url. It contains all shared
/// claims.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedFile {
    /// The signed content.
    pub payload: String,
    /// The signed header.
    pub protected: String,
    /// The signature.
    pub signature: String,
}

/// A key of a signer, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentKeyView {
    /// The id of the key at the authority.
    pub kid: String,
    /// The JWS algorithm.
    pub algorithm: &'static str,
    /// Time from which the key signs by the settings; `None` for the first key, and for a key that is only published.
    pub signs_from: Option<Timestamp>,
    /// True if the key signs now.
    pub signs: bool,
    /// True for the first key, which signs until another key's time begins.
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

    /// Chooses the key that signs from now on. Without an id, or with an unknown one, the times of the keys decide.
    /// Returns false for an unknown id.
    pub fn choose(&self, kid: Option<&str>) -> bool {
        let index = kid.and_then(|kid| self.keys.iter().position(|key| key.kid == kid));
        self.chosen.store(index.unwrap_or(BY_SETTINGS), Ordering::Relaxed);
        kid.is_none() || index.is_some()
    }

    /// Returns true if the signer has the key with this id.
    #[must_use]
    pub fn has_key(&self, kid: &str) -> bool {
        self.keys.iter().any(|key| key.kid == kid)
    }

    /// Returns all keys, in the order of the settings.
    #[must_use]
    pub fn keys(&self, now: Timestamp) -> Vec<IntentKeyView> {
        let signing_kid = self.signing_key(now).map(|key| key.kid.as_str());
        let view = |(index, key): (usize, &SigningKey)| IntentKeyView {
            kid: key.kid.clone(),
            algorithm: key.key.algorithm(),
            signs_from: key.signs_from.filter(|_| index > 0),
            signs: signing_kid == Some(&*key.kid),
            is_first: index == 0,
        };
        self.keys.iter().enumerate().map(view).collect()
    }

    /// Returns the chosen key, or without a choice the key whose time began last.
    fn signing_key(&self, now: Timestamp) -> Option<&SigningKey> {
        if let Some(chosen) = self.keys.get(self.chosen.load(Ordering::Relaxed)) {
            return Some(chosen);
        }
        self.keys.iter().filter(|key| key.signs_from.is_some_and(|from| from <= now)).max_by_key(|key| key.signs_from)
    }

    /// Signs the intent JWT of a transaction, with a new `jti`, as a compact JWS.
    ///
    /// # Errors
    /// [`IntentError`] if a library fails, or the remote key fails or is unavailable.
    pub async fn sign(
        &self,
        pending: &Pending,
        callback: &CallbackAddress,
        now: Timestamp,
    ) -> Result<SignedIntent, IntentError> {
        // The first key always qualifies.
        let signing = self.signing_key(now).ok_or(IntentError::Signature)?;
        let jti = Uuid::new_v4();
        let mut jwt = self.encode_unsigned(signing, pending, callback, now, jti)?;
        let signature = signing.key.sign(jwt.as_bytes()).await;
        let signature = signature.ok_or_else(|| self.check_available(now).err().unwrap_or(IntentError::Signature))?;
        jwt.push('.');
        push_base64url(&signature, &mut jwt);
        let stored = StoredIntent { at: now, jti, kid: &signing.kid, signature: &signature }.to_bytes();
        Ok(SignedIntent { jwt, stored })
    }

    /// Rebuilds an intent from its stored bytes. Returns `None` if the result would differ, another key signs now, or
    /// the intent has expired. An intent that expires before its transaction is reused only for a quarter of its
    /// lifetime.
    #[must_use]
    pub fn rebuild(
        &self,
        pending: &Pending,
        callback: &CallbackAddress,
        stored: &[u8],
        now: Timestamp,
    ) -> Option<String> {
        let StoredIntent { at, jti, kid, signature } = StoredIntent::from_bytes(stored)?;
        let signing = self.signing_key(now).filter(|signing| signing.kid == kid)?;
        let ends_with_transaction = at + self.settings.lifetime >= pending.expires_at;
        let reusable_until = if ends_with_transaction { pending.expires_at } else { at + self.settings.lifetime / 4 };
        if now >= reusable_until {
            return None;
        }
        let mut jwt = self.encode_unsigned(signing, pending, callback, at, jti).ok()?;
        // Fails if the settings have changed since.
        jwk::verify(&signing.public, signing.key.algorithm(), jwt.as_bytes(), signature).ok()?;
        jwt.push('.');
        push_base64url(signature, &mut jwt);
        Some(jwt)
    }

    /// Encodes header and payload, the part of an intent that the signature covers.
    fn encode_unsigned(
        &self,
        signing: &SigningKey,
        pending: &Pending,
        callback: &CallbackAddress,
        at: Timestamp,
        jti: Uuid,
    ) -> Result<String, IntentError> {
        let scope = scope_bitmap(pending.terms.claims, self.settings.scope_length);
        let payload = IntentPayload::new(&self.settings, pending, &scope, callback, at, jti);
        let mut json = Vec::with_capacity(PAYLOAD_BYTES);
        serde_json::to_writer(&mut json, &payload).map_err(|_| IntentError::Serialisation)?;
        let mut jwt = String::with_capacity(signing.jwt_prefix.len() + json.len() * 4 / 3 + SIGNATURE_CHARS);
        jwt.push_str(&signing.jwt_prefix);
        push_base64url(&json, &mut jwt);
        Ok(jwt)
    }

    /// Signs an evidence file with this payload, as a JWS in flattened form.
    ///
    /// # Errors
    /// As for [`IntentSigner::sign`].
    pub async fn seal(&self, evidence: &Evidence, now: Timestamp) -> Result<SealedFile, IntentError> {
        let signing = self.signing_key(now).ok_or(IntentError::Signature)?;
        let header = evidence::protected_header(signing.key.algorithm(), &signing.kid, &signing.public);
        let json = serde_json::to_vec(evidence).map_err(|_| IntentError::Serialisation)?;
        let (protected, payload) = (base64url(header.to_string().as_bytes()), base64url(&json));
        let signature = signing.key.sign(format!("{protected}.{payload}").as_bytes()).await;
        let signature = signature.ok_or_else(|| self.check_available(now).err().unwrap_or(IntentError::Signature))?;
        Ok(SealedFile { payload, protected, signature: base64url(&signature) })
    }

    /// Checks that the signing key can be used, as far as is known.
    ///
    /// # Errors
    /// [`IntentError::Unavailable`] while the key is known to be unavailable.
    pub fn check_available(&self, now: Timestamp) -> Result<(), IntentError> {
        let is_unavailable = self.signing_key(now).is_some_and(|signing| !signing.key.is_available());
        if is_unavailable { Err(IntentError::Unavailable) } else { Ok(()) }
    }

    /// Returns the public halves of all keys as JWKs with their `kid`, including keys that do not sign now.
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
