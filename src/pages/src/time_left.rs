//! The remaining time of a window, by the server's clock.

use std::fmt;

use sakshi_domain::time::Timestamp;
use sakshi_domain::time_zone::TimeZone;
use sakshi_domain::transaction::Pending;

use super::text::Texts;

/// Seconds until a transaction expires, rounded up, so that zero means expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeft(pub u64);

impl TimeLeft {
    /// Returns the remaining time of a pending transaction.
    pub fn of(pending: &Pending, now: Timestamp) -> Self {
        let left = pending.expires_at.since(now);
        Self(left.as_secs() + u64::from(left.subsec_nanos() > 0))
    }
}

/// Minutes and seconds: `14:05`.
impl fmt::Display for TimeLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// Formats a point in time by the clocks of a zone: `31 December 2026, 18:30 IST`.
pub fn date_and_time(at: Timestamp, zone: TimeZone, texts: &Texts) -> String {
    let local = zone.local(at);
    let month = usize::try_from(local.month).ok().and_then(|month| texts.months.get(month.checked_sub(1)?));
    texts
        .moment
        .replace("{day}", &local.day.to_string())
        .replace("{month}", month.unwrap_or(&""))
        .replace("{year}", &local.year.to_string())
        .replace("{time}", &format!("{} {}", local.time, local.clock))
}

#[cfg(test)]
mod tests {
    use sakshi_domain::language::Language;

    use super::*;

    #[test]
    fn a_moment_is_written_by_the_clock_of_its_zone() {
        let at = Timestamp::parse_iso8601("2026-12-31T18:30:00Z").unwrap();
        let in_words = |zone, language| {
            date_and_time(at, TimeZone::parse(zone).unwrap(), Texts::of(Language::parse(language).unwrap()))
        };
        assert_eq!(in_words("UTC", "english"), "31 December 2026, 18:30 UTC");
        assert_eq!(in_words("Asia/Kolkata", "english"), "1 January 2027, 00:00 IST");
        assert_eq!(in_words("Pacific/Marquesas", "hindi"), "31 दिसंबर 2026, 09:00 UTC-09:30");
        assert_eq!(in_words("Asia/Kolkata", "urdu"), "1 جنوری 2027، \u{2066}00:00 IST\u{2069}");
    }
}
