//! `/admin/v1/log-level`: the level of this node's log, changed for a time.
//!
//! At `debug` and `trace` libraries may log data that the service hides. So these two apply only to the service's own
//! targets.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use actix_web::rt::{self, time::sleep_until};
use actix_web::web::Json;
use sakshi_domain::time::Timestamp;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::log_level::{ChangeLogLevelRequest, LOG_LEVEL_S_DEFAULT, LogFilter, LogLevelResponse};
use tokio::sync::watch;
use tokio::time::Instant;

use super::arguments::RequestBody;
use super::bearer::Operator;

/// The level of the log. Clones share it.
#[derive(Clone)]
pub struct LogLevel(Arc<Shared>);

struct Shared {
    usual: String,
    /// Puts a filter into effect.
    apply: Box<dyn Fn(&str) + Send + Sync>,
    changed: watch::Sender<Option<Changed>>,
}

/// A temporary level.
#[derive(Clone, Debug)]
struct Changed {
    level: String,
    until: Timestamp,
    ends: Instant,
}

impl LogLevel {
    /// Starts with the `usual` filter; `apply` activates another one.
    pub fn new(usual: String, apply: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { usual, apply: Box::new(apply), changed: watch::Sender::new(None) }))
    }

    /// Restores the usual level at the end of each temporary one, on the current arbiter.
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

    fn change(&self, level: &LogFilter, now: Timestamp, time: Duration) {
        self.0.changed.send_modify(|changed| {
            (self.0.apply)(&format!("{},{}", self.0.usual, level.directives()));
            *changed =
                Some(Changed { level: level.as_str().to_owned(), until: now + time, ends: Instant::now() + time });
        });
    }

    /// Restores the usual level if `holds` is true for the current one.
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
        let (level, until) =
            self.0.changed.borrow().as_ref().map(|changed| (changed.level.clone(), changed.until)).unzip();
        LogLevelResponse { level: level.unwrap_or_else(|| self.0.usual.clone()), usual: self.0.usual.clone(), until }
    }
}

/// A log with a fixed level.
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
    RequestBody(asked): RequestBody<ChangeLogLevelRequest>,
) -> Result<Json<LogLevelResponse>, ApiError> {
    let time = Duration::from_secs(asked.for_s.map_or(LOG_LEVEL_S_DEFAULT, |seconds| seconds.0));
    deps.log_level.change(&asked.level, deps.clock.now(), time);
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
