//! A temporary change of a node's log level.

use sakshi_domain::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::body::{Describe, Field, body};
use crate::fields::FieldReader;
use crate::json::Json;
use crate::text::Whole;

/// Default number of seconds for which a level applies.
pub const LOG_LEVEL_S_DEFAULT: u64 = 900;
/// Largest number of seconds for which a level applies.
pub const LOG_LEVEL_S_MAX: u64 = 86_400;

body! { request
    /// A temporary log level of the responding node.
    #[derive(Clone, PartialEq)]
    pub struct ChangeLogLevelRequest {
        /// `off`, `error`, `warn`, `info`, `debug` or `trace`, or a list of `target=level` such as
        /// `sakshi_store=debug`. Other targets keep the level from the start of the node. `debug` and `trace` are only
        /// for targets that begin with `sakshi`; without a target they apply to these.
        level: LogFilter,
        /// Seconds after which the node returns to its usual level. Default: 900.
        for_s: Option<Whole<1, LOG_LEVEL_S_MAX>>,
    }
}

body! { response
    /// The log level of the responding node.
    #[derive(Clone)]
    pub struct LogLevelResponse {
        /// The level in effect.
        level: String,
        /// The level at the start of the node, from its environment.
        usual: String,
        /// The time at which the node returns to `usual`; null if `usual` is in effect.
        until: Option<Timestamp>,
    }
}

/// Prefix of the service's own targets.
const OWN_TARGETS: &str = "sakshi";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
const FILTER_CHARS_MAX: usize = 500;
const LEVEL_RULE: &str =
    "must be off, error, warn, info, debug or trace, or a list of target=level such as sakshi_store=debug";
const OWN_TARGETS_RULE: &str =
    "must have debug and trace for targets that begin with sakshi alone: libraries may log secrets there";
/// The pattern of an item: a level, or a target and its level.
const ITEM_PATTERN: &str =
    "(off|error|warn|info|debug|trace|[A-Za-z0-9_:]+=(off|error|warn|info)|sakshi[A-Za-z0-9_:]*=(debug|trace))";

/// Log levels by target. Libraries may log secrets at `debug` and `trace`, so these two levels are only for targets of
/// the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogFilter(String);

impl LogFilter {
    /// Accepts a filter.
    ///
    /// # Errors
    /// A message that states the accepted form.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        if text.len() > FILTER_CHARS_MAX {
            return Err("must be 1 to 500 characters");
        }
        text.split(',').try_for_each(|item| to_directives(item.trim_matches(' ')).map(drop))?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the filter as it was requested.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the directives for the logger. A bare `debug` or `trace` applies to the service's own targets only.
    #[must_use]
    pub fn directives(&self) -> String {
        let items: Vec<String> =
            self.0.split(',').filter_map(|item| to_directives(item.trim_matches(' ')).ok()).collect();
        items.join(",")
    }
}

/// Converts an item of a filter to directives for the logger.
fn to_directives(item: &str) -> Result<String, &'static str> {
    let (target, level) = item.split_once('=').map_or((None, item), |(target, level)| (Some(target), level));
    if !LEVELS.contains(&level) {
        return Err(LEVEL_RULE);
    }
    let is_for_own_targets = matches!(level, "debug" | "trace");
    match target {
        None if is_for_own_targets => Ok(format!("info,{OWN_TARGETS}={level}")),
        None => Ok(level.to_owned()),
        Some(target)
            if target.is_empty()
                || !target.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte)) =>
        {
            Err(LEVEL_RULE)
        }
        Some(target) if is_for_own_targets && !target.starts_with(OWN_TARGETS) => Err(OWN_TARGETS_RULE),
        Some(_) => Ok(item.to_owned()),
    }
}

impl Field for LogFilter {
    fn read(value: Json, reader: &mut FieldReader<'_>) -> Option<Self> {
        reader.parsed(value, Self::new)
    }
}

impl Describe for LogFilter {
    fn schema() -> Value {
        let pattern = format!("^ *{ITEM_PATTERN} *(, *{ITEM_PATTERN} *)*$");
        json!({ "type": "string", "minLength": 1, "maxLength": FILTER_CHARS_MAX, "pattern": pattern })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_trace_are_only_for_targets_of_the_service() {
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
            assert_eq!(LogFilter::new(level), Err(LEVEL_RULE), "{level}");
        }
        for level in ["h2=debug", "info,hyper=trace", "redis=trace"] {
            assert_eq!(LogFilter::new(level), Err(OWN_TARGETS_RULE), "{level}");
        }
    }
}
