//! Time zones of the IANA database, for local times.

use std::fmt;
use std::str::FromStr as _;

use chrono::{DateTime, Datelike as _, NaiveDateTime, Offset as _, TimeZone as _, Timelike as _};
use chrono_tz::{OffsetName as _, Tz};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::time::Timestamp;

/// A time zone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TimeZone(Tz);

/// The local time in a time zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonedTime {
    /// The year.
    pub year: i32,
    /// The month, from 1 to 12.
    pub month: u32,
    /// The day of the month, from 1 to 31.
    pub day: u32,
    /// Hours and minutes: `14:05`.
    pub time: String,
    /// Abbreviation of the zone, such as `IST`; `UTC+05:45` if it has none.
    pub zone: String,
}

impl TimeZone {
    /// India.
    pub const INDIA: Self = Self(Tz::Asia__Kolkata);

    /// Accepts a name of the IANA database.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn parse(name: &str) -> Result<Self, &'static str> {
        Tz::from_str(name)
            .map(Self)
            .map_err(|_| "must be the name of a time zone of the IANA database, such as Asia/Kolkata")
    }

    /// Returns the name in the IANA database.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns the local time at `at`.
    #[must_use]
    pub fn local(self, at: Timestamp) -> ZonedTime {
        let utc = DateTime::from_timestamp_millis(at.millis()).map_or(NaiveDateTime::MIN, |utc| utc.naive_utc());
        let local = self.0.from_utc_datetime(&utc);
        let minutes = local.offset().fix().local_minus_utc() / 60;
        let zone = match local.offset().abbreviation() {
            Some(name) if name.starts_with(|first: char| first.is_ascii_alphabetic()) => name.to_owned(),
            _ => {
                format!("UTC{}{:02}:{:02}", if minutes < 0 { '-' } else { '+' }, minutes.abs() / 60, minutes.abs() % 60)
            }
        };
        let time = format!("{:02}:{:02}", local.hour(), local.minute());
        ZonedTime { year: local.year(), month: local.month(), day: local.day(), time, zone }
    }
}

impl Default for TimeZone {
    fn default() -> Self {
        Self::INDIA
    }
}

impl fmt::Debug for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for TimeZone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for TimeZone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_converted_to_local_time() {
        let at = Timestamp::parse_iso8601("2026-12-31T18:30:00Z").unwrap();
        for (name, day, time, zone) in [
            ("Asia/Kolkata", (2027, 1, 1), "00:00", "IST"),
            ("Asia/Kathmandu", (2027, 1, 1), "00:15", "UTC+05:45"),
            ("America/St_Johns", (2026, 12, 31), "15:00", "NST"),
            ("UTC", (2026, 12, 31), "18:30", "UTC"),
        ] {
            let local = TimeZone::parse(name).unwrap().local(at);
            assert_eq!(((local.year, local.month, local.day), &*local.time, &*local.zone), (day, time, zone), "{name}");
        }
        let summer = Timestamp::parse_iso8601("2026-07-01T12:00:00Z").unwrap();
        assert_eq!(TimeZone::parse("Europe/Berlin").unwrap().local(summer).zone, "CEST");
    }

    #[test]
    fn only_the_exact_name_of_a_zone_is_accepted() {
        for name in ["", "IST+5:30", "asia/kolkata", "Asia/Nowhere", "Asia/Kolkata "] {
            assert!(TimeZone::parse(name).is_err(), "{name}");
        }
        let zone: TimeZone = serde_json::from_str("\"Asia/Kathmandu\"").unwrap();
        assert_eq!(serde_json::to_string(&zone).unwrap(), "\"Asia/Kathmandu\"");
    }
}
