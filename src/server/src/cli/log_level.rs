//! `sakshi admin log-level`: the level of a node's log, changed for a time.

use clap::Args;
use sakshi_client::internal;
use sakshi_wire::operator::log_level::LOG_LEVEL_S_MAX;
use serde_json::Value;

use super::admin::{View, send_call};
use super::api::Api;
use super::error::CliError;

#[derive(Args, Debug)]
pub(super) struct LogLevel {
    /// The level, such as debug or sakshi_store=trace. Without one, show the level in effect.
    level: Option<String>,
    /// Time after which the node returns to its default level, such as 90s, 10m or 2h. Default: 15m; at most 24h.
    #[arg(long = "for", value_name = "TIME", requires = "level", value_parser = parse_seconds)]
    time: Option<u64>,
    /// Return to the default level now.
    #[arg(long, conflicts_with = "level")]
    reset: bool,
}

impl LogLevel {
    pub(super) async fn send(&self, api: &Api) -> Result<(Value, View), CliError> {
        let call = match &self.level {
            Some(level) => internal::change_log_level(level, self.time),
            None if self.reset => internal::reset_log_level(),
            None => internal::log_level(),
        };
        send_call(api, call, View::Pairs).await
    }
}

/// Parses a time such as 10m, in seconds.
fn parse_seconds(text: &str) -> Result<u64, String> {
    let (number, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => 0,
    };
    let seconds = number.parse().ok().and_then(|number: u64| number.checked_mul(unit));
    let in_range = seconds.filter(|seconds| (1..=LOG_LEVEL_S_MAX).contains(seconds));
    in_range.ok_or_else(|| "a time is a number with s, m or h, at most 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_and_is_at_most_a_day() {
        for (text, expected) in [("90s", 90), ("10m", 600), ("24h", 86_400)] {
            assert_eq!(parse_seconds(text), Ok(expected));
        }
        for text in ["", "10", "m", "0s", "25h", "1d", "-1m", "99999999999999999999h", "9999999999999999999h"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }
}
