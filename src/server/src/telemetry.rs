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

/// On drop, writes the last lines and sends the last spans, within a few seconds.
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
/// The level is a word (`warn`) or a list of words by target (`info,sakshi_store=debug`). A thread of its own writes
/// the lines. Spans are sent to the collector, if one is set. A second call changes nothing.
///
/// # Errors
/// The thread, or the client for the collector, cannot be created.
pub fn start(settings: &Telemetry) -> io::Result<Guard> {
    let spans = settings
        .otlp_endpoint
        .as_ref()
        .map(|endpoint| Spans::to(endpoint, settings.traces_per_thousand))
        .transpose()?;
    start_at(settings.log_format, spans, "info,actix_server=warn")
}

/// Like [`start`], with another default level.
///
/// # Errors
/// The thread cannot be started.
pub fn start_at(format: LogFormat, spans: Option<Spans>, default: &str) -> io::Result<Guard> {
    let asked =
        ["SAKSHI_LOG", "RUST_LOG"].iter().filter_map(|name| std::env::var(name).ok()).find(|level| !level.is_empty());
    let (usual, refused) = usual(asked.as_deref(), default);
    let (lines, guard) = BufferedLog::start(io::stderr())?;
    let layer = fmt::layer().with_writer(lines).with_target(true);
    let layer = match format {
        LogFormat::Text => layer.with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.event_format(JsonLine).boxed(),
    };
    // Without a collector there is one filter for all, which is the cheapest.
    let (started, level) = match &spans {
        None => {
            let (filter, handle) = reload::Layer::new(filter(&usual));
            (registry().with(layer).with(filter).try_init(), level(usual, handle))
        }
        Some(spans) => {
            let (filter, handle) = reload::Layer::new(filter(&usual));
            (registry().with(layer.with_filter(filter)).with(spans.layer()).try_init(), level(usual, handle))
        }
    };
    if started.is_ok() {
        set_hook(Box::new(report));
    }
    if let Some(error) = refused {
        tracing::warn!(%error, "the level that the environment asks for is not understood, so the usual one is in \
            effect");
    }
    Ok(Guard { level, _spans: spans, _log: guard })
}

/// Target of an error that the library logs for a peer without HTTP; the peer gets an empty 400.
const NO_HTTP: &str = "actix_http::h1::dispatcher";

/// Returns the requested levels, or the default ones with the parse error.
fn usual(asked: Option<&str>, default: &str) -> (String, Option<ParseError>) {
    match asked.map(|asked| (asked, asked.parse::<Targets>())) {
        None => (default.to_owned(), None),
        Some((asked, Ok(_))) => (asked.to_owned(), None),
        Some((_, Err(error))) => (default.to_owned(), Some(error)),
    }
}

/// Returns the filter of these levels. It excludes spans and peers without HTTP.
fn filter(levels: &str) -> Targets {
    let targets = levels.parse().unwrap_or_else(|_| Targets::new().with_default(Level::INFO));
    targets.with_target(NO_HTTP, LevelFilter::OFF).with_target(sakshi_trace::TARGET, LevelFilter::OFF)
}

/// Returns the level of a log whose filter can be replaced.
fn level<S: 'static>(usual: String, handle: reload::Handle<Targets, S>) -> LogLevel {
    LogLevel::new(usual, move |levels| {
        // It fails for a log that did not start because one exists.
        let _ = handle.reload(filter(levels));
    })
}

fn report(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    note_panic(panic.location(), sakshi_trace::request_id().map(|id| id.to_string()));
    tracing::error!(panic.place = place, panic.message = message(panic.payload()), "a panic");
}

/// Returns a message that is a literal in the source; a formatted one may contain personal data.
fn message(payload: &(dyn std::any::Any + Send)) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("[put together at run time, not shown]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_is_not_understood_leaves_the_usual_one() {
        let read = |asked| {
            let (levels, refused) = usual(Some(asked), "info,actix_server=warn");
            (filter(&levels), refused)
        };
        let (levels, refused) = read("sakshi=loud");
        assert!(refused.is_some());
        assert!(levels.would_enable("sakshi", &Level::INFO) && !levels.would_enable("actix_server", &Level::INFO));
        let (levels, refused) = read("warn,sakshi_store=debug");
        assert!(
            refused.is_none()
                && levels.would_enable("sakshi_store::redis", &Level::DEBUG)
                && !levels.would_enable("sakshi", &Level::INFO)
        );
        assert!(
            levels.would_enable("actix_http", &Level::WARN)
                && !levels.would_enable("actix_http::h1::dispatcher", &Level::ERROR)
        );
    }

    #[test]
    fn no_level_shows_spans_or_the_odd_bytes_of_a_peer() {
        let levels = filter("info,sakshi=trace,sakshi_trace=trace,actix_http::h1::dispatcher=trace");
        assert!(levels.would_enable("sakshi_store::redis", &Level::TRACE));
        assert!(
            !levels.would_enable(sakshi_trace::TARGET, &Level::ERROR) && !levels.would_enable(NO_HTTP, &Level::ERROR)
        );
    }

    #[test]
    fn a_panic_message_is_shown_only_when_it_stands_in_the_source() {
        assert_eq!(message(&"the ledger is out of balance"), "the ledger is out of balance");
        assert_eq!(message(&String::from("Asha Rao")), "[put together at run time, not shown]");
    }
}
