//! Dates and times without a time zone, as in wealth-data webhooks. They are sent on unchanged, because the
//! zone is unknown.

use std::fmt;
use std::time::Duration;

use chrono::{NaiveDate, NaiveDateTime};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::time::Timestamp;

/// A date, written as `YYYY-MM-DD`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(NaiveDate);

/// A date and time, written as `YYYY-MM-DD HH:MM:SS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocalTime(NaiveDateTime);

const LOCAL_TIME_FORMAT: &str = "%Y-%m-%d %H:%M:%S";
/// Time by which the westernmost zone is behind UTC.
const WESTERNMOST_ZONE: Duration = Duration::from_secs(12 * 3_600);

impl Day {
    /// Reads a day. chrono alone would also accept a sign, and fewer or more digits.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().map(Self);
        // chrono writes a year beyond four digits with a sign, as it reads it.
        let is_canonical = |day: &Self| text.len() == "YYYY-MM-DD".len() && day.to_string() == text;
        day.filter(is_canonical).ok_or("must be a date such as 2026-01-31")
    }
}

impl LocalTime {
    /// Reads a date and time.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let time = NaiveDateTime::parse_from_str(text, LOCAL_TIME_FORMAT).ok().map(Self);
        let is_canonical = |time: &Self| text.len() == "YYYY-MM-DD HH:MM:SS".len() && time.to_string() == text;
        // Few receivers can read a leap second.
        time.filter(|time| is_canonical(time) && !text.ends_with(":60"))
            .ok_or("must be a date and time such as 2026-01-31 09:30:00")
    }

    /// Returns the moment at which this time comes in the last of all zones.
    #[must_use]
    pub fn latest(self) -> Timestamp {
        Timestamp::from_millis(self.0.and_utc().timestamp_millis()) + WESTERNMOST_ZONE
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for LocalTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.format(LOCAL_TIME_FORMAT).fmt(f)
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for LocalTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for LocalTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_canonical_date_or_time_is_accepted() {
        assert_eq!(Day::parse("2024-02-29").unwrap().to_string(), "2024-02-29");
        assert_eq!(LocalTime::parse("2026-01-31 23:59:59").unwrap().to_string(), "2026-01-31 23:59:59");
        for text in ["2023-02-29", "2026-1-31", "+2026-01-31", "2026-01-31 ", "31-01-2026", "2026-01-31T00:00:00Z", ""]
        {
            assert!(Day::parse(text).is_err(), "{text}");
        }
        for text in
            ["2026-01-31T09:30:00", "2026-01-31 9:30:00", "2026-01-31 24:00:00", "2026-01-31 09:30:60", "2026-01-31"]
        {
            assert!(LocalTime::parse(text).is_err(), "{text}");
        }
        for day in ["+12026-01-31", "-0001-01-31", "-12026-01-31"] {
            assert!(Day::parse(day).is_err() && LocalTime::parse(&format!("{day} 09:30:00")).is_err(), "{day}");
        }
    }
}
