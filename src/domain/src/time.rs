//! Points in time to the millisecond: integers in memory and in stores; in JSON, RFC 3339 in UTC with
//! milliseconds and `Z`.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The first and the last millisecond of the years 1 to 9999, since the Unix epoch.
const FIRST_MILLI: i64 = -62_135_596_800_000;
const LAST_MILLI: i64 = 253_402_300_799_999;

/// A point in time, as milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the time that is this many milliseconds after the Unix epoch.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the Unix epoch.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Returns the whole seconds since the Unix epoch, rounded down, as JWTs write times (RFC 7519 §2).
    #[must_use]
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads an ISO 8601 date and time with an offset; `None` if it is malformed, or not in the years 1 to 9999 of UTC.
    /// Seconds, their fraction and the minutes of the offset are optional.
    #[must_use]
    pub fn parse_iso8601(text: &str) -> Option<Self> {
        let read = |text: &str| DateTime::parse_from_rfc3339(text).ok();
        let millis = read(text).or_else(|| read(&to_rfc3339(text)?))?.timestamp_millis();
        // In UTC, other years get a sign or a fifth digit, which no reader accepts.
        (FIRST_MILLI..=LAST_MILLI).contains(&millis).then_some(Self(millis))
    }
}

/// Adds the parts that RFC 3339 requires and ISO 8601 does not: seconds, and the minutes of the offset after a colon.
fn to_rfc3339(text: &str) -> Option<String> {
    const DATE_CHARS: usize = "2026-12-31T".len();
    let (date, time) = text.split_at_checked(DATE_CHARS)?;
    let (clock, offset) = time.split_at_checked(time.find(['Z', 'z', '+', '-'])?)?;
    let seconds = if clock.len() == "18:30".len() { ":00" } else { "" };
    let offset = match offset.split_at_checked("+05".len()) {
        Some((hours, "")) => format!("{hours}:00"),
        Some((hours, minutes)) if !minutes.starts_with(':') => format!("{hours}:{minutes}"),
        _ => offset.to_owned(),
    };
    Some(format!("{date}{}{seconds}{offset}", clock.replace(',', ".")))
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or(DateTime::<Utc>::MAX_UTC);
        f.write_str(&at.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_iso8601(&text).ok_or_else(|| serde::de::Error::custom("expected an ISO 8601 time with an offset"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_is_written_in_utc_with_milliseconds_and_z() {
        let at = Timestamp::parse_iso8601("2026-03-01T10:00:00+05:30").unwrap();
        assert_eq!(at.to_string(), "2026-03-01T04:30:00.000Z");
    }

    #[test]
    fn seconds_their_fraction_and_the_minutes_of_an_offset_are_optional() {
        for text in [
            "2026-12-31T18:30:00Z",
            "2026-12-31T18:30Z",
            "2026-12-31T18:30:00.000000+00:00",
            "2027-01-01T00:00:00+0530",
            "2027-01-01T00:00+05:30",
            "2026-12-31T23:30:00,000+05",
            "2026-12-31T13:30-0500",
        ] {
            assert_eq!(
                Timestamp::parse_iso8601(text).map(|at| at.to_string()).as_deref(),
                Some("2026-12-31T18:30:00.000Z"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_time_without_offset_or_with_half_a_part_is_malformed() {
        for text in [
            "",
            "Z",
            "2026-12-31",
            "2026-12-31T18:30:00",
            "2026-12-31T18Z",
            "2026-12-31T18:3Z",
            "2026-12-31T18:30+5",
            "2026-12-31T18:30+053",
            "2026-12-31T18:30+05:3",
            "2026-13-31T18:30Z",
            "2026-12-31T18:30+05300",
            "2026-12-31é18:30Z",
            "+002026-12-31T18:30Z",
        ] {
            assert_eq!(Timestamp::parse_iso8601(text), None, "{text}");
        }
    }

    #[test]
    fn a_time_that_is_read_can_be_read_again_as_it_is_written() {
        for text in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"] {
            let at = Timestamp::parse_iso8601(text).unwrap();
            assert_eq!(Timestamp::parse_iso8601(&at.to_string()), Some(at), "{text}");
        }
        for text in ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "9999-12-31T23:59:60Z"] {
            assert_eq!(Timestamp::parse_iso8601(text), None, "{text}");
        }
    }

    #[test]
    fn time_arithmetic_saturates_instead_of_wrapping() {
        let end = Timestamp::from_millis(i64::MAX);
        assert_eq!(end + Duration::from_secs(1), end);
        assert_eq!(Timestamp::from_millis(i64::MIN) - Duration::from_secs(1), Timestamp::from_millis(i64::MIN));
        assert_eq!(Timestamp::from_millis(5_000) - Duration::from_secs(2), Timestamp::from_millis(3_000));
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
    }
}
