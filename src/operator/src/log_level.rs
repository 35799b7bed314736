//! `/admin/v1/log-level`: the level of this node's log, changed for a time.
//!
//! At `debug` and `trace` libraries may log data that the service hides. So these levels apply only to the service's
//! own targets.

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
    default: String,
    /// Puts a filter into effect.
    apply: Box<dyn Fn(&str) + Send + Sync>,
    temporary: watch::Sender<Option<TemporaryLevel>>,
}

/// A temporary level.
#[derive(Clone, Debug)]
struct TemporaryLevel {
    level: String,
    /// End by the node's clock, for responses.
    until: Timestamp,
    /// End by the monotonic clock, for the timer.
    end: Instant,
}

impl LogLevel {
    /// Starts with the filter `default`; `apply` activates another filter.
    pub fn new(default: String, apply: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared { default, apply: Box::new(apply), temporary: watch::Sender::new(None) }))
    }

    /// Restores the default level when a temporary level ends, on the current arbiter.
    pub fn watch(&self) {
        let (level, mut changes) = (self.clone(), self.0.temporary.subscribe());
        rt::spawn(async move {
            loop {
                let end = changes.borrow_and_update().as_ref().map(|temporary| temporary.end);
                let ended = async {
                    match end {
                        Some(end) => sleep_until(end).await,
                        None => pending().await,
                    }
                };
                tokio::select! {
                    changed = changes.changed() => if changed.is_err() { return },
                    () = ended => level.reset(|temporary| Some(temporary.end) == end),
                }
            }
        });
    }

    fn change(&self, level: &LogFilter, now: Timestamp, time: Duration) {
        self.0.temporary.send_modify(|temporary| {
            (self.0.apply)(&format!("{},{}", self.0.default, level.directives()));
            *temporary = Some(TemporaryLevel {
                level: level.as_str().to_owned(),
                until: now + time,
                end: Instant::now() + time,
            });
        });
    }

    /// Restores the default level if `matches` returns true for the temporary level.
    fn reset(&self, matches: impl Fn(&TemporaryLevel) -> bool) {
        let is_reset = self.0.temporary.send_if_modified(|temporary| {
            let is_reset = temporary.as_ref().is_some_and(matches);
            if is_reset {
                (self.0.apply)(&self.0.default);
                *temporary = None;
            }
            is_reset
        });
        if is_reset {
            tracing::info!(log.level = self.0.default, "the log has its usual level again");
        }
    }

    fn response(&self) -> LogLevelResponse {
        let (level, until) =
            self.0.temporary.borrow().as_ref().map(|temporary| (temporary.level.clone(), temporary.until)).unzip();
        LogLevelResponse {
            level: level.unwrap_or_else(|| self.0.default.clone()),
            usual: self.0.default.clone(),
            until,
        }
    }
}

/// A log with a fixed level.
impl Default for LogLevel {
    fn default() -> Self {
        Self::new("info".to_owned(), |_| ())
    }
}

pub(super) async fn show(Operator(deps): Operator) -> Json<LogLevelResponse> {
    Json(deps.log_level.response())
}

pub(super) async fn change(
    Operator(deps): Operator,
    RequestBody(body): RequestBody<ChangeLogLevelRequest>,
) -> Result<Json<LogLevelResponse>, ApiError> {
    let time = Duration::from_secs(body.for_s.map_or(LOG_LEVEL_S_DEFAULT, |seconds| seconds.0));
    deps.log_level.change(&body.level, deps.clock.now(), time);
    let state = deps.log_level.response();
    tracing::warn!(
        log.level = state.level,
        log.until = state.until.map(tracing::field::display),
        "an operator changed the level of the log"
    );
    Ok(Json(state))
}

pub(super) async fn reset(Operator(deps): Operator) -> Json<LogLevelResponse> {
    deps.log_level.reset(|_| true);
    Json(deps.log_level.response())
}
