//! The KB-JWT: the holder's signature that binds a credential to one transaction (RFC 9901 §4.3).

use sakshi_domain::claims::ClaimSet;
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::{JOSE_HEADER_VALUES_MAX, KEY_BINDING_CHARS_MAX};
use sakshi_domain::time::Timestamp;
use sakshi_wire::json::ValuesLeft;
use serde_json::{Map, Value};

use super::jose;
use super::keys::p256_key;
use super::refusal::CredentialRefusal;
use super::segments::Jws;
use super::validity;
use crate::encoding::base64url;

/// Seconds by which the `iat` of a key binding may differ from the current time, and its `nbf` may be ahead.
const SKEW_SECONDS: u64 = 300;

/// The values that a transaction expects in the credential that answers it.
#[derive(Clone, Copy, Debug)]
pub struct Expectation<'a> {
    /// The id of the transaction, which is the `nonce` of a key binding.
    pub nonce: TxnId,
    /// The `aud` of the intent and of a key binding.
    pub audience: &'a str,
    /// The current time.
    pub now: Timestamp,
    /// The requested claims. No other claims are stored.
    pub requested: ClaimSet,
}

/// Policy on proof of possession of the holder's key; the setting `authority.key_binding`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyBinding {
    /// A KB-JWT is refused.
    Off,
    /// A KB-JWT is optional. If present, it is verified.
    #[default]
    WhenPresent,
    /// A credential without a KB-JWT is refused.
    Required,
}

impl KeyBinding {
    /// Applies the policy and returns the KB-JWT to verify, if any.
    pub(super) fn admit(self, key_binding: Option<&str>) -> Result<Option<&str>, CredentialRefusal> {
        match (self, key_binding) {
            (Self::Off, Some(_)) => Err(CredentialRefusal::KeyBindingUnexpected),
            (Self::Required, None) => Err(CredentialRefusal::KeyBindingMissing),
            (_, key_binding) => Ok(key_binding),
        }
    }
}

/// Verifies a KB-JWT against the credential's processed payload, and the SHA-256 of the text before the KB-JWT.
pub(super) fn verify(
    key_binding: &str,
    credential: &Map<String, Value>,
    presented_digest: &[u8; 32],
    expected: &Expectation<'_>,
) -> Result<(), CredentialRefusal> {
    if key_binding.len() > KEY_BINDING_CHARS_MAX {
        return Err(CredentialRefusal::KeyBindingMalformed);
    }
    let jws = Jws::read(key_binding).map_err(|_| CredentialRefusal::KeyBindingMalformed)?;
    // The payload is small, so it may be read before the signature is verified.
    let payload =
        jws.payload(&ValuesLeft::new(JOSE_HEADER_VALUES_MAX)).map_err(|_| CredentialRefusal::KeyBindingMalformed)?;
    jose::check_key_binding_header(&jws.header)?;
    let holder_jwk = credential.get("cnf").and_then(|cnf| cnf.get("jwk")).ok_or(CredentialRefusal::HolderKeyMissing)?;
    let key = holder_jwk.as_object().and_then(p256_key).ok_or(CredentialRefusal::HolderKeyUnusable)?;
    key.verify_sig(jws.signed_text.as_bytes(), &jws.signature).map_err(|_| CredentialRefusal::KeyBindingSignature)?;
    let text = |name: &str| payload.get(name).and_then(Value::as_str);
    if text("nonce") != Some(&*expected.nonce.to_string()) {
        return Err(CredentialRefusal::KeyBindingNonce);
    }
    if text("aud") != Some(expected.audience) {
        return Err(CredentialRefusal::KeyBindingAudience);
    }
    if !payload.get("iat").is_some_and(|issued_at| is_near(issued_at, expected.now)) {
        return Err(CredentialRefusal::KeyBindingTime);
    }
    if !is_in_force(&payload, expected.now) {
        return Err(CredentialRefusal::KeyBindingTime);
    }
    if text("sd_hash") != Some(&*base64url(presented_digest)) {
        return Err(CredentialRefusal::KeyBindingHash);
    }
    Ok(())
}

/// Returns true if `exp` and `nbf`, both optional, allow the use of the JWT now (RFC 9901 §7.3 step 5, RFC 7519 §4.1).
fn is_in_force(payload: &Map<String, Value>, now: Timestamp) -> bool {
    let latest_start = now.seconds().saturating_add_unsigned(SKEW_SECONDS);
    let (Ok(expiry), Ok(start)) = (validity::read_time(payload, "exp"), validity::read_time(payload, "nbf")) else {
        return false;
    };
    expiry.is_none_or(|expiry| expiry.is_after(now.seconds()))
        && !start.is_some_and(|start| start.is_after(latest_start))
}

/// Returns true if a time differs from now by at most [`SKEW_SECONDS`].
fn is_near(issued_at: &Value, now: Timestamp) -> bool {
    match issued_at.as_i64() {
        Some(issued_at) => issued_at.abs_diff(now.seconds()) <= SKEW_SECONDS,
        None => {
            issued_at.as_f64().is_some_and(|issued_at| (issued_at - now.seconds() as f64).abs() <= SKEW_SECONDS as f64)
        }
    }
}
