//! The level of a node's log, changed for a time.

use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::body::{Describe, Field, body};
use crate::fields::Place;
use crate::json::Json;
use crate::text::Whole;

/// Default number of seconds for which a level applies.
pub const LOG_LEVEL_S_DEFAULT: u64 = 900;
/// Largest number of seconds for which a level applies.
pub const LOG_LEVEL_S_MAX: u64 = 86_400;

body! { request
    /// A level for the log of the node that answers.
    #[derive(Clone, PartialEq)]
    pub struct ChangeLogLevelRequest {
        /// `off`, `error`, `warn`, `info`, `debug` or `trace`, or a list of `target=level` such as
        /// `sakshi_store=debug`. What it does not name stays as it is at the start of the node. `debug` and `trace` are
        /// for targets that begin with `sakshi`; without a target they change those alone.
        level: LogFilter,
        /// Seconds after which the node returns to its usual level. Default: 900.
        for_s: Option<Whole<1, LOG_LEVEL_S_MAX>>,
    }
}

body! { answer
    /// The level of the log of the node that answers.
    #[derive(Clone)]
    pub struct LogLevelResponse {
        /// The level in effect.
        level: String,
        /// The level at the start of the node, as its environment says.
        usual: String,
        /// The time at which the node returns to that; null when it is in effect.
        until: Option<Timestamp>,
    }
}

/// Prefix of the service's own targets.
const OWN: &str = "sakshi";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
const CHARS_MAX: usize = 500;
const NO_LEVEL: &str =
    "must be off, error, warn, info, debug or trace, or a list of target=level such as sakshi_store=debug";
const NOT_OWN: &str =
    "must have debug and trace for targets that begin with sakshi alone: libraries may log secrets there";
/// The pattern of one level.
const LEVEL: &str =
    "(off|error|warn|info|debug|trace|[A-Za-z0-9_:]+=(off|error|warn|info)|sakshi[A-Za-z0-9_:]*=(debug|trace))";

/// Levels by target. Libraries may log at `debug` and `trace` what the service hides, so these two are for its own
/// targets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogFilter(String);

impl LogFilter {
    /// Accepts a text.
    ///
    /// # Errors
    /// The text that would be accepted.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        if text.len() > CHARS_MAX {
            return Err("must be 1 to 500 characters");
        }
        text.split(',').try_for_each(|item| directive(item.trim_matches(' ')).map(drop))?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the text as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directives of the filter.
    #[must_use]
    pub fn directives(&self) -> String {
        let items: Vec<String> = self.0.split(',').filter_map(|item| directive(item.trim_matches(' ')).ok()).collect();
        items.join(",")
    }
}

fn directive(item: &str) -> Result<String, &'static str> {
    let (target, level) = item.split_once('=').map_or((None, item), |(target, level)| (Some(target), level));
    if !LEVELS.contains(&level) {
        return Err(NO_LEVEL);
    }
    let is_of_own = matches!(level, "debug" | "trace");
    match target {
        None if is_of_own => Ok(format!("info,{OWN}={level}")),
        None => Ok(level.to_owned()),
        Some(target)
            if target.is_empty()
                || !target.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte)) =>
        {
            Err(NO_LEVEL)
        }
        Some(target) if is_of_own && !target.starts_with(OWN) => Err(NOT_OWN),
        Some(_) => Ok(item.to_owned()),
    }
}

impl Field for LogFilter {
    fn read(value: Json, place: &mut Place<'_>) -> Option<Self> {
        place.parsed(value, Self::new)
    }
}

impl Describe for LogFilter {
    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": CHARS_MAX, "pattern": format!("^ *{LEVEL} *(, *{LEVEL} \
            *)*$") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_trace_are_for_the_targets_of_the_service_alone() {
        for (level, directives) in [
            ("warn", "warn"),
            ("off", "off"),
            ("trace", "info,sakshi=trace"),
            ("sakshi_store=debug, actix_server=info", "sakshi_store=debug,actix_server=info"),
        ] {
            assert_eq!(LogFilter::new(level).unwrap().directives(), directives);
        }
        for level in [
            "",
            "loud",
            "sakshi=loud",
            "=debug",
            "sakshi store=debug",
            "info,",
            "DEBUG",
            "sakshi=debug=trace",
            "[span]=debug",
        ] {
            assert_eq!(LogFilter::new(level), Err(NO_LEVEL), "{level}");
        }
        for level in ["h2=debug", "info,hyper=trace", "redis=trace"] {
            assert_eq!(LogFilter::new(level), Err(NOT_OWN), "{level}");
        }
    }
}
