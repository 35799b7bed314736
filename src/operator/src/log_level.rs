//! `/admin/v1/log-level`: the level of this node's log, changed for a time.
//!
//! Libraries may log at `debug` and `trace` what the service hides, so these two are for the service's own targets.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use actix_web::rt::{self, time::sleep_until};
use actix_web::web::Json;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::time::Timestamp;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::log_level::{ChangeLogLevelRequest, LOG_LEVEL_S_DEFAULT, LogLevelResponse};
use tokio::sync::watch;
use tokio::time::Instant;

use super::arguments::Asked;
use super::bearer::Operator;

/// Begins the names of the service's own targets.
const OWN: &str = "sakshi";
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
const NO_LEVEL: &str = "must be off, error, warn, info, debug or trace, or a list of target=level such as sakshi_store=debug";
const NOT_OWN: &str = "must have debug and trace for targets that begin with sakshi alone: libraries may log secrets there";

/// The level of the log. Clones share it.
#[derive(Clone)]
pub struct LogLevel(Arc<Shared>);

struct Shared {
    usual: String,
    /// Puts a filter into effect.
    apply: Box<dyn Fn(&str) + Send + Sync>,
    changed: watch::Sender<Option<Changed>>,
}

/// A level that stands for a time.
#[derive(Clone, Debug)]
struct Changed {
    level: String,
    until: Timestamp,
    ends: Instant,
}

impl LogLevel {
    /// The level of a log that begins with the `usual` filter; `apply` puts another one into effect.
    pub fn new(usual: String, apply: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { usual, apply: Box::new(apply), changed: watch::Sender::new(None) }))
    }

    /// Returns to the usual level in time from now on, on the current arbiter.
    pub fn watch(&self) {
        let (level, mut changes) = (self.clone(), self.0.changed.subscribe());
        rt::spawn(async move {
            loop {
                let ends = changes.borrow_and_update().as_ref().map(|changed| changed.ends);
                let ended = async {
                    match ends {
                        Some(ends) => sleep_until(ends).await,
                        None => pending().await,
                    }
                };
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = ended => level.reset(|changed| Some(changed.ends) == ends),
                }
            }
        });
    }

    fn change(&self, level: String, added: &str, now: Timestamp, time: Duration) {
        self.0.changed.send_modify(|changed| {
            (self.0.apply)(&format!("{},{added}", self.0.usual));
            *changed = Some(Changed { level, until: now + time, ends: Instant::now() + time });
        });
    }

    /// Returns to the usual level if this holds for the one in effect.
    fn reset(&self, holds: impl Fn(&Changed) -> bool) {
        let is_reset = self.0.changed.send_if_modified(|changed| {
            let is_reset = changed.as_ref().is_some_and(holds);
            if is_reset {
                (self.0.apply)(&self.0.usual);
                *changed = None;
            }
            is_reset
        });
        if is_reset {
            tracing::info!(log.level = self.0.usual, "the log has its usual level again");
        }
    }

    fn view(&self) -> LogLevelResponse {
        let (level, until) = self.0.changed.borrow().as_ref().map(|changed| (changed.level.clone(), changed.until)).unzip();
        LogLevelResponse { level: level.unwrap_or_else(|| self.0.usual.clone()), usual: self.0.usual.clone(), until }
    }
}

/// A log that is always as it is.
impl Default for LogLevel {
    fn default() -> Self {
        Self::new("info".to_owned(), |_| ())
    }
}

pub(super) async fn show(Operator(deps): Operator) -> Json<LogLevelResponse> {
    Json(deps.log_level.view())
}

pub(super) async fn change(
    Operator(deps): Operator,
    Asked(asked): Asked<ChangeLogLevelRequest>,
) -> Result<Json<LogLevelResponse>, ApiError> {
    let added = filter(&asked.level.0).map_err(|message| Invalid::one("level", message))?;
    let time = Duration::from_secs(asked.for_s.map_or(LOG_LEVEL_S_DEFAULT, |seconds| seconds.0));
    deps.log_level.change(asked.level.0, &added, deps.clock.now(), time);
    let state = deps.log_level.view();
    tracing::warn!(
        log.level = state.level,
        log.until = state.until.map(tracing::field::display),
        "an operator changed the level of the log"
    );
    Ok(Json(state))
}

pub(super) async fn reset(Operator(deps): Operator) -> Json<LogLevelResponse> {
    deps.log_level.reset(|_| true);
    Json(deps.log_level.view())
}

/// The filter that a level adds to the usual one.
fn filter(level: &str) -> Result<String, &'static str> {
    let items: Result<Vec<String>, _> = level.split(',').map(|item| item_filter(item.trim())).collect();
    items.map(|items| items.join(","))
}

fn item_filter(item: &str) -> Result<String, &'static str> {
    let (target, level) = item.split_once('=').map_or((None, item), |(target, level)| (Some(target), level));
    if !LEVELS.contains(&level) {
        return Err(NO_LEVEL);
    }
    let is_of_own = matches!(level, "debug" | "trace");
    match target {
        None if is_of_own => Ok(format!("info,{OWN}={level}")),
        None => Ok(level.to_owned()),
        Some(target) if target.is_empty() || !target.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:".contains(&byte)) => {
            Err(NO_LEVEL)
        }
        Some(target) if is_of_own && !target.starts_with(OWN) => Err(NOT_OWN),
        Some(_) => Ok(item.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_and_trace_are_for_the_targets_of_the_service_alone() {
        for (level, added) in [
            ("warn", "warn"),
            ("off", "off"),
            ("trace", "info,sakshi=trace"),
            ("sakshi_store=debug, actix_server=info", "sakshi_store=debug,actix_server=info"),
        ] {
            assert_eq!(filter(level).as_deref(), Ok(added));
        }
        for level in ["", "loud", "sakshi=loud", "=debug", "sakshi store=debug", "info,", "DEBUG", "sakshi=debug=trace", "[span]=debug"] {
            assert_eq!(filter(level), Err(NO_LEVEL), "{level}");
        }
        for level in ["h2=debug", "info,hyper=trace", "redis=trace"] {
            assert_eq!(filter(level), Err(NOT_OWN), "{level}");
        }
    }
}
