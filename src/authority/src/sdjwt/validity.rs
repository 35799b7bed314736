//! Checks issuer and times of a processed payload (RFC 7519 §4.1).

use std::cmp::Ordering;

use sakshi_domain::time::Timestamp;
use serde_json::{Map, Value};

use super::refusal::CredentialRefusal;

/// How far the issuer's clock may be ahead, in seconds.
const SKEW_SECONDS: i64 = 60;

/// Checks `iss`, `exp`, `nbf` and `iat`.
pub(super) fn check(payload: &Map<String, Value>, issuer: &str, now: Timestamp) -> Result<(), CredentialRefusal> {
    if payload.get("iss").and_then(Value::as_str) != Some(issuer) {
        return Err(CredentialRefusal::IssuerNotTrusted);
    }
    let expiry = time(payload, "exp")?.ok_or(CredentialRefusal::ExpiryMissing)?;
    if !expiry.is_after(now.seconds()) {
        return Err(CredentialRefusal::Expired);
    }
    if time(payload, "nbf")?.is_some_and(|at| is_in_future(at, now)) {
        return Err(CredentialRefusal::NotYetValid);
    }
    if time(payload, "iat")?.is_some_and(|at| is_in_future(at, now)) {
        return Err(CredentialRefusal::IssuedInFuture);
    }
    Ok(())
}

/// Returns true for a time that lies further in the future than the issuer's clock may be ahead.
pub(super) fn is_in_future(at: NumericDate, now: Timestamp) -> bool {
    at.is_after(now.seconds().saturating_add(SKEW_SECONDS))
}

/// A NumericDate, which need not be an integer.
#[derive(Clone, Copy)]
pub(super) enum NumericDate {
    Whole(i64),
    Fraction(f64),
}

impl NumericDate {
    pub(super) fn is_after(self, seconds: i64) -> bool {
        match self {
            Self::Whole(at) => at > seconds,
            Self::Fraction(at) => at.partial_cmp(&(seconds as f64)) == Some(Ordering::Greater),
        }
    }
}

pub(super) fn time(payload: &Map<String, Value>, name: &str) -> Result<Option<NumericDate>, CredentialRefusal> {
    let Some(value) = payload.get(name) else { return Ok(None) };
    let number = value.as_i64().map(NumericDate::Whole).or_else(|| value.as_f64().map(NumericDate::Fraction));
    number.map(Some).ok_or(CredentialRefusal::TimeNotANumber)
}
