//! Moments and durations on the pages of portal and console. The server writes moments in UTC, and the script replaces
//! them by local time.

use std::time::Duration;

use askama::Template;
use askama::filters::HtmlSafe;
use sakshi_domain::day_figures::Day;
use sakshi_domain::time::Timestamp;

/// The precision of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    Minute,
    Second,
    /// Time of day only.
    Time,
}

/// A moment as an HTML element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Template)]
#[template(
    source = r#"<time datetime="{{ at }}"{% if let Some(style) = self.style() %} data-exactly="{{ style }}"{% endif %}{#
        #}>{{ self.text() }} UTC</time>"#,
    ext = "html"
)]
pub struct When {
    at: Timestamp,
    precision: Precision,
}

impl HtmlSafe for When {}

impl When {
    /// Shows the moment to the minute.
    #[must_use]
    pub fn minute(at: Timestamp) -> Self {
        Self { at, precision: Precision::Minute }
    }

    /// Shows the moment to the second.
    #[must_use]
    pub fn second(at: Timestamp) -> Self {
        Self { at, precision: Precision::Second }
    }

    /// Shows the time of day for a moment of today in UTC, and date and time for other moments.
    #[must_use]
    pub fn recent(at: Timestamp, now: Timestamp) -> Self {
        if Day::containing(at) == Day::containing(now) { Self::time(at) } else { Self::minute(at) }
    }

    /// Shows the time of day only.
    #[must_use]
    pub fn time(at: Timestamp) -> Self {
        Self { at, precision: Precision::Time }
    }

    /// Returns the name of the precision in the script, whose default is minutes.
    fn style(&self) -> Option<&'static str> {
        match self.precision {
            Precision::Minute => None,
            Precision::Second => Some("second"),
            Precision::Time => Some("time"),
        }
    }

    fn text(&self) -> String {
        let range = match self.precision {
            Precision::Minute => 0..16,
            Precision::Second => 0..19,
            Precision::Time => 11..16,
        };
        self.at.to_string().get(range).unwrap_or_default().replace('T', " ")
    }
}

/// A moment in the time zone of an event. The script adds the local time as a title.
#[derive(Clone, Debug, PartialEq, Eq, Template)]
#[template(source = r#"<time datetime="{{ at }}" data-event>{{ words }}</time>"#, ext = "html")]
pub struct EventTime {
    /// The moment.
    pub at: Timestamp,
    /// Text for guests.
    pub words: String,
}

impl HtmlSafe for EventTime {}

/// Formats a moment in UTC for an input of a form: `2026-12-31T18:30`.
#[must_use]
pub fn format_for_input(at: Timestamp) -> String {
    at.to_string().get(..16).unwrap_or_default().to_owned()
}

/// Formats a duration: `12.3 s`, `12 min 34 s`.
#[must_use]
pub fn format_duration(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Formats a duration as minutes and seconds, with hours if needed: `0:31`.
#[must_use]
pub fn format_clock(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds / 3_600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Formats a duration in its largest whole unit: `25 hours`.
#[must_use]
pub fn format_in_words(time: Duration) -> String {
    let units = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let seconds = time.as_secs();
    // A single day is 24 hours, as on the pages and in the documents.
    let fits =
        |length: u64| seconds.is_multiple_of(length) && seconds >= if length == 86_400 { 2 * length } else { length };
    let (length, unit) = units.into_iter().find(|(length, _)| fits(*length)).unwrap_or((1, "second"));
    let count = seconds / length;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// Formats a time span: seconds, or a larger unit once the value is at least two of it.
#[must_use]
pub fn format_span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_formatted_in_utc_and_says_so() {
        let at = Timestamp::parse_iso8601("2026-12-31T18:30:05Z").unwrap();
        assert_eq!(
            When::minute(at).to_string(),
            r#"<time datetime="2026-12-31T18:30:05.000Z">2026-12-31 18:30 UTC</time>"#
        );
        let text = |when: When| when.to_string().split(['>', '<']).nth(2).map(str::to_owned);
        assert_eq!(text(When::second(at)).unwrap(), "2026-12-31 18:30:05 UTC");
        assert_eq!(text(When::time(at)).unwrap(), "18:30 UTC");
    }

    #[test]
    fn a_short_duration_has_tenths_and_a_long_duration_minutes() {
        let format = |millis| format_duration(Duration::from_millis(millis));
        assert_eq!(
            [format(20), format(12_340), format(60_000), format(754_900)],
            ["0.0 s", "12.3 s", "1 min 0 s", "12 min 34 s"]
        );
    }

    #[test]
    fn a_duration_is_formatted_like_a_clock() {
        assert_eq!(
            [31, 754, 3_605].map(|seconds| format_clock(Duration::from_secs(seconds))),
            ["0:31", "12:34", "1:00:05"]
        );
    }

    #[test]
    fn a_duration_is_formatted_in_its_largest_whole_unit() {
        let format = |seconds| format_in_words(Duration::from_secs(seconds));
        let times = [2 * 86_400, 86_400, 90_000, 5_400, 61].map(format);
        assert_eq!(times, ["2 days", "24 hours", "25 hours", "90 minutes", "61 seconds"]);
    }

    #[test]
    fn a_span_uses_the_largest_unit_that_fits_at_least_twice() {
        let spans = [0, 119, 120, 7_199, 7_200, 172_799, 172_800].map(format_span);
        assert_eq!(spans, ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 days"]);
    }
}
