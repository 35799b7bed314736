//! The log on stderr, the metrics recorder, and a panic hook that is cheap and logs no personal data.
//!
//! The standard hook walks the stack on every panic, which stalls the crashing actor's neighbours. A panic's text may
//! hold personal data.

mod buffered_log;
pub mod catalogue;
pub(crate) mod figures;
mod json_line;
mod otlp;
pub(crate) mod process;
mod prometheus;
pub(crate) mod store_figures;

use std::io::{self, IsTerminal as _};
use std::panic::{PanicHookInfo, set_hook};

use sakshi_actors::note_panic;
use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, ParseError, Targets};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{fmt, registry, reload};

use self::buffered_log::{BufferedLog, FlushGuard};
use self::json_line::JsonLine;
pub use self::otlp::Spans;
pub use self::prometheus::PrometheusRecorder;
use crate::settings::{LogFormat, Telemetry};
pub use sakshi_operator::LogLevel;

/// Keeps the log and the spans running. Drop writes the last lines and sends the last spans, within a few seconds.
#[must_use]
pub struct Guard {
    level: LogLevel,
    _spans: Option<Spans>,
    _log: FlushGuard,
}

impl Guard {
    /// Returns the level of the log, which operators may change.
    #[must_use]
    pub fn level(&self) -> LogLevel {
        self.level.clone()
    }
}

/// Starts logging to stderr at the level of `SAKSHI_LOG`, else of `RUST_LOG`, else `info`.
///
/// The level is a word (`warn`) or a list of words by target (`info,sakshi_store=debug`). A dedicated thread writes
/// the lines. Spans are sent to the collector, if one is set. A second call changes nothing.
///
/// # Errors
/// The thread, or the client for the collector, cannot be created.
pub fn start(settings: &Telemetry) -> io::Result<Guard> {
    let spans = settings
        .otlp_endpoint
        .as_ref()
        .map(|endpoint| Spans::start(endpoint, settings.traces_per_thousand))
        .transpose()?;
    start_at(settings.log_format, spans, "info,actix_server=warn")
}

/// Starts logging like [`start`], with another default level.
///
/// # Errors
/// The thread cannot be started.
pub fn start_at(format: LogFormat, spans: Option<Spans>, default: &str) -> io::Result<Guard> {
    let requested =
        ["SAKSHI_LOG", "RUST_LOG"].iter().filter_map(|name| std::env::var(name).ok()).find(|level| !level.is_empty());
    let (levels, parse_error) = choose_levels(requested.as_deref(), default);
    let (lines, guard) = BufferedLog::start(io::stderr())?;
    let layer = fmt::layer().with_writer(lines).with_target(true);
    let layer = match format {
        LogFormat::Text => layer.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.event_format(JsonLine).boxed(),
    };
    // Without a collector there is one filter for all, which is the cheapest.
    let (started, level) = match &spans {
        None => {
            let (filter, handle) = reload::Layer::new(filter(&levels));
            (registry().with(layer).with(filter).try_init(), replaceable_level(levels, handle))
        }
        Some(spans) => {
            let (filter, handle) = reload::Layer::new(filter(&levels));
            (
                registry().with(layer.with_filter(filter)).with(spans.layer()).try_init(),
                replaceable_level(levels, handle),
            )
        }
    };
    if started.is_ok() {
        set_hook(Box::new(log_panic));
    }
    if let Some(error) = parse_error {
        tracing::warn!(%error, "the log level of the environment cannot be parsed; the default is used");
    }
    Ok(Guard { level, _spans: spans, _log: guard })
}

/// Log target of the library's errors about peers that do not speak HTTP; they get an empty 400.
const NON_HTTP_PEERS_TARGET: &str = "actix_http::h1::dispatcher";

/// Returns the requested levels, or the default ones with the parse error.
fn choose_levels(requested: Option<&str>, default: &str) -> (String, Option<ParseError>) {
    match requested.map(|requested| (requested, requested.parse::<Targets>())) {
        None => (default.to_owned(), None),
        Some((requested, Ok(_))) => (requested.to_owned(), None),
        Some((_, Err(error))) => (default.to_owned(), Some(error)),
    }
}

/// Builds the filter for these levels. It excludes spans and errors about peers that do not speak HTTP.
fn filter(levels: &str) -> Targets {
    let targets = levels.parse().unwrap_or_else(|_| Targets::new().with_default(Level::INFO));
    targets.with_target(NON_HTTP_PEERS_TARGET, LevelFilter::OFF).with_target(sakshi_trace::TARGET, LevelFilter::OFF)
}

/// Builds a log level that replaces the filter behind `handle` when it changes.
fn replaceable_level<S: 'static>(default: String, handle: reload::Handle<Targets, S>) -> LogLevel {
    LogLevel::new(default, move |levels| {
        // It fails if another log had been started before.
        let _ = handle.reload(filter(levels));
    })
}

/// Logs a panic, and notes its place and request for the supervision tree.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    note_panic(panic.location(), sakshi_trace::request_id().map(|id| id.to_string()));
    tracing::error!(panic.place = place, panic.message = literal_message(panic.payload()), "a panic");
}

/// Returns the message if it is a literal in the source; a formatted message may contain personal data.
fn literal_message(payload: &(dyn std::any::Any + Send)) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("[put together at run time, not shown]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_level_is_replaced_by_the_default() {
        let filter_for = |requested| {
            let (levels, parse_error) = choose_levels(Some(requested), "info,actix_server=warn");
            (filter(&levels), parse_error)
        };
        let (levels, parse_error) = filter_for("sakshi=loud");
        assert!(parse_error.is_some());
        assert!(levels.would_enable("sakshi", &Level::INFO) && !levels.would_enable("actix_server", &Level::INFO));
        let (levels, parse_error) = filter_for("warn,sakshi_store=debug");
        assert!(
            parse_error.is_none()
                && levels.would_enable("sakshi_store::redis", &Level::DEBUG)
                && !levels.would_enable("sakshi", &Level::INFO)
        );
        assert!(
            levels.would_enable("actix_http", &Level::WARN)
                && !levels.would_enable("actix_http::h1::dispatcher", &Level::ERROR)
        );
    }

    #[test]
    fn no_level_shows_spans_or_errors_about_peers_without_http() {
        let levels = filter("info,sakshi=trace,sakshi_trace=trace,actix_http::h1::dispatcher=trace");
        assert!(levels.would_enable("sakshi_store::redis", &Level::TRACE));
        assert!(
            !levels.would_enable(sakshi_trace::TARGET, &Level::ERROR)
                && !levels.would_enable(NON_HTTP_PEERS_TARGET, &Level::ERROR)
        );
    }

    #[test]
    fn a_panic_message_is_logged_only_if_it_is_a_literal() {
        assert_eq!(literal_message(&"the ledger is out of balance"), "the ledger is out of balance");
        assert_eq!(literal_message(&String::from("Asha Rao")), "[put together at run time, not shown]");
    }
}
