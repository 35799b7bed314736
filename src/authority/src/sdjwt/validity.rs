//! Checks issuer and times of a processed payload (RFC 7519 §4.1).

use std::cmp::Ordering;
use std::time::Duration;

use sakshi_domain::time::Timestamp;
use serde_json::{Map, Value};

use super::refusal::CredentialRefusal;

/// Seconds by which the issuer's clock may be ahead.
const SKEW_SECONDS: i64 = 60;

/// Checks `iss`, `exp`, `nbf` and `iat`. Returns the time until `exp`.
pub(super) fn check(payload: &Map<String, Value>, issuer: &str, now: Timestamp) -> Result<Duration, CredentialRefusal> {
    if payload.get("iss").and_then(Value::as_str) != Some(issuer) {
        return Err(CredentialRefusal::IssuerNotTrusted);
    }
    let expiry = read_time(payload, "exp")?.ok_or(CredentialRefusal::ExpiryMissing)?;
    if !expiry.is_after(now.seconds()) {
        return Err(CredentialRefusal::Expired);
    }
    if read_time(payload, "nbf")?.is_some_and(|time| is_in_future(time, now)) {
        return Err(CredentialRefusal::NotYetValid);
    }
    if read_time(payload, "iat")?.is_some_and(|time| is_in_future(time, now)) {
        return Err(CredentialRefusal::IssuedInFuture);
    }
    Ok(expiry.remaining(now.seconds()))
}

/// Returns true if a time is further in the future than the issuer's clock may be ahead.
pub(super) fn is_in_future(time: NumericDate, now: Timestamp) -> bool {
    time.is_after(now.seconds().saturating_add(SKEW_SECONDS))
}

/// A NumericDate (RFC 7519 §2), which need not be an integer.
#[derive(Clone, Copy)]
pub(super) enum NumericDate {
    Whole(i64),
    Fraction(f64),
}

impl NumericDate {
    /// Returns true if the date is after this time, in seconds since the Unix epoch.
    pub(super) fn is_after(self, seconds: i64) -> bool {
        match self {
            Self::Whole(at) => at > seconds,
            Self::Fraction(at) => at.partial_cmp(&(seconds as f64)) == Some(Ordering::Greater),
        }
    }

    /// Returns the time from `seconds` until the date.
    pub(super) fn remaining(self, seconds: i64) -> Duration {
        match self {
            Self::Whole(at) => Duration::from_secs(u64::try_from(at.saturating_sub(seconds)).unwrap_or(0)),
            Self::Fraction(at) if self.is_after(seconds) => {
                Duration::try_from_secs_f64(at - seconds as f64).unwrap_or(Duration::MAX)
            }
            Self::Fraction(_) => Duration::ZERO,
        }
    }
}

/// Reads the time with this name; `None` if it is absent.
pub(super) fn read_time(payload: &Map<String, Value>, name: &str) -> Result<Option<NumericDate>, CredentialRefusal> {
    let Some(value) = payload.get(name) else { return Ok(None) };
    let number = value.as_i64().map(NumericDate::Whole).or_else(|| value.as_f64().map(NumericDate::Fraction));
    number.map(Some).ok_or(CredentialRefusal::TimeNotANumber)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remaining_time_is_never_negative_and_never_overflows() {
        for (at, remaining) in [
            (NumericDate::Whole(100), Duration::from_secs(40)),
            (NumericDate::Whole(60), Duration::ZERO),
            (NumericDate::Whole(i64::MIN), Duration::ZERO),
            (NumericDate::Whole(i64::MAX), Duration::from_secs(i64::MAX.unsigned_abs() - 60)),
            (NumericDate::Fraction(60.5), Duration::from_millis(500)),
            (NumericDate::Fraction(-1e308), Duration::ZERO),
            (NumericDate::Fraction(f64::NAN), Duration::ZERO),
            (NumericDate::Fraction(1e308), Duration::MAX),
        ] {
            assert_eq!(at.remaining(60), remaining);
        }
    }
}
