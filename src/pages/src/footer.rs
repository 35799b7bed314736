//! The footer of every page: a line about sakshi, the retention of data, and the privacy notice.

use std::time::Duration;

use sakshi_domain::retention::ClientRetention;
use sakshi_service::Service;

use super::text::{Around, Texts};

/// A sentence about the retention of results or guests.
#[derive(Debug)]
pub(crate) struct RetentionLine {
    pub(crate) words: &'static Around,
    number: u64,
    unit: &'static str,
}

impl RetentionLine {
    /// Describes the retention of results.
    pub(super) fn results(service: &Service, retention: ClientRetention, texts: &'static Texts) -> Self {
        Self::new(&texts.results_kept, retention.result(service.rules.result_ttl), texts)
    }

    /// Describes the retention of an event's guests.
    pub(super) fn guests(service: &Service, retention: ClientRetention, texts: &'static Texts) -> Self {
        Self::new(&texts.guests_kept, retention.registrations(service.rules.registration_ttl), texts)
    }

    /// Rounds a time up in the largest unit that gives at least two, because the singular is another word in many
    /// languages.
    fn new(words: &'static Around, time: Duration, texts: &'static Texts) -> Self {
        let minutes = time.as_secs().div_ceil(60).max(2);
        let (number, unit) = match minutes {
            ..120 => (minutes, 0),
            120..2_880 => (minutes.div_ceil(60), 1),
            _ => (minutes.div_ceil(1_440), 2),
        };
        Self { words, number, unit: texts.units[unit] }
    }

    /// Returns the time, such as "24 hours".
    pub(crate) fn time(&self) -> String {
        format!("{}\u{a0}{}", self.number, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use sakshi_domain::language::Language;

    use super::*;

    #[test]
    fn a_time_is_given_in_the_largest_unit_that_gives_at_least_two() {
        let texts = Texts::for_language(Language::ENGLISH);
        for (seconds, time) in [
            (1, "2 minutes"),
            (900, "15 minutes"),
            (3_600, "60 minutes"),
            (7_200, "2 hours"),
            (86_400, "24 hours"),
            (86_401, "25 hours"),
            (2 * 86_400, "2 days"),
            (90 * 86_400, "90 days"),
        ] {
            assert_eq!(
                RetentionLine::new(&texts.results_kept, Duration::from_secs(seconds), texts).time(),
                time.replace(' ', "\u{a0}")
            );
        }
    }
}
