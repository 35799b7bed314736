//! What is left of a window, by the server's clock.

use std::fmt;

use sakshi_domain::time::Timestamp;
use sakshi_domain::transaction::Pending;

use super::text::Texts;

/// Seconds until a transaction expires, rounded up, so that zero means expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLeft(pub u64);

impl TimeLeft {
    /// The time that a pending transaction has left.
    pub fn of(pending: &Pending, now: Timestamp) -> Self {
        let left = pending.expires_at.since(now);
        Self(left.as_secs() + u64::from(left.subsec_nanos() > 0))
    }
}

/// As minutes and seconds: `14:05`.
impl fmt::Display for TimeLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// Hours and minutes of a point in time, in UTC: `14:05`.
pub fn time_of_day(at: Timestamp) -> String {
    at.to_string().get(11..16).unwrap_or_default().to_owned()
}

/// A point in time `offset` minutes east of UTC, for people: `31 December 2026, 18:30 UTC+05:30`.
pub(crate) fn date_and_time(at: Timestamp, offset: i32, texts: &Texts) -> String {
    let local = Timestamp::from_millis(at.millis() + i64::from(offset) * 60_000).to_string();
    let part = |range| local.get(range).unwrap_or_default();
    let month = part(5..7).parse::<usize>().ok().and_then(|month| texts.months.get(month.checked_sub(1)?));
    let clock = match offset {
        0 => "UTC".to_owned(),
        _ => {
            let sign = if offset < 0 { '-' } else { '+' };
            format!("UTC{sign}{:02}:{:02}", offset.abs() / 60, offset.abs() % 60)
        }
    };
    texts
        .moment
        .replace("{day}", part(8..10).trim_start_matches('0'))
        .replace("{month}", month.unwrap_or(&""))
        .replace("{year}", part(0..4))
        .replace("{time}", &format!("{} {clock}", part(11..16)))
}

#[cfg(test)]
mod tests {
    use sakshi_domain::language::Language;

    use super::*;

    #[test]
    fn a_moment_is_written_in_the_offset_that_is_asked_for() {
        let at = Timestamp::parse_rfc3339("2026-12-31T18:30:00Z").unwrap();
        let in_words = |offset, language| date_and_time(at, offset, Texts::of(Language::parse(language).unwrap()));
        assert_eq!(in_words(0, "english"), "31 December 2026, 18:30 UTC");
        assert_eq!(in_words(330, "english"), "1 January 2027, 00:00 UTC+05:30");
        assert_eq!(in_words(-570, "hindi"), "31 दिसंबर 2026, 09:00 UTC-09:30");
        assert_eq!(in_words(330, "urdu"), "1 جنوری 2027، \u{2066}00:00 UTC+05:30\u{2069}");
    }
}
