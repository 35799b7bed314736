//! Times on pages: the time until a transaction expires, and a date with its time of day.

use std::fmt;

use sakshi_domain::time::Timestamp;
use sakshi_domain::time_zone::TimeZone;
use sakshi_domain::transaction::Pending;

use super::text::Texts;

/// Seconds until a transaction expires, rounded up, so that zero means expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeft(pub u64);

impl TimeLeft {
    /// Returns the time until a pending transaction expires.
    pub fn until_expiry(pending: &Pending, now: Timestamp) -> Self {
        let remaining = pending.expires_at.since(now);
        Self(remaining.as_secs() + u64::from(remaining.subsec_nanos() > 0))
    }
}

/// Minutes and seconds: `14:05`.
impl fmt::Display for TimeLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// Formats a time in a time zone: `31 December 2026, 18:30 IST`.
pub fn date_and_time(at: Timestamp, zone: TimeZone, texts: &Texts) -> String {
    let local = zone.local(at);
    let month = usize::try_from(local.month).ok().and_then(|month| texts.months.get(month.checked_sub(1)?));
    texts
        .date_time
        .replace("{day}", &local.day.to_string())
        .replace("{month}", month.unwrap_or(&""))
        .replace("{year}", &local.year.to_string())
        .replace("{time}", &format!("{} {}", local.time, local.zone))
}

#[cfg(test)]
mod tests {
    use sakshi_domain::language::Language;

    use super::*;

    #[test]
    fn a_time_is_formatted_in_its_time_zone() {
        let new_year = Timestamp::parse_iso8601("2026-12-31T18:30:00Z").unwrap();
        let format = |zone, language| {
            date_and_time(
                new_year,
                TimeZone::parse(zone).unwrap(),
                Texts::for_language(Language::parse(language).unwrap()),
            )
        };
        assert_eq!(format("UTC", "english"), "31 December 2026, 18:30 UTC");
        assert_eq!(format("Asia/Kolkata", "english"), "1 January 2027, 00:00 IST");
        assert_eq!(format("Pacific/Marquesas", "hindi"), "31 दिसंबर 2026, 09:00 UTC-09:30");
        assert_eq!(format("Asia/Kolkata", "urdu"), "1 جنوری 2027، \u{2066}00:00 IST\u{2069}");
    }
}
