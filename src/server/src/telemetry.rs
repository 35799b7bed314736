//! Logs on stderr, and a panic hook that is cheap and discreet.
//!
//! The standard hook walks the stack on every panic, which stalls neighbours of a crashing actor;
//! and a panic's text may hold what must not be logged.

mod json_line;
mod paced;

use std::panic::{PanicHookInfo, set_hook};

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use self::json_line::JsonLine;
use self::paced::Paced;
use crate::settings::LogFormat;

/// Lines that may wait to be written; further ones are dropped, because a service that waits for
/// whoever reads its log stands still with them.
const LINES_MAX: usize = 64_000;

/// Keeps the log's writer alive; what waits is written when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct LogWriter {
    _writer: WorkerGuard,
}

/// Starts logging to stderr at the level of `SAKSHI_LOG`, else of `RUST_LOG`, else `info`.
///
/// Lines are written by a thread of their own. A second call changes nothing.
pub fn start(format: LogFormat) -> LogWriter {
    start_at(format, "info,actix_server=warn")
}

/// As [`start`], with another level where the environment names none.
pub fn start_at(format: LogFormat, default: &str) -> LogWriter {
    let level = std::env::var("SAKSHI_LOG").or_else(|_| std::env::var("RUST_LOG")).unwrap_or_default();
    let filter = EnvFilter::new(if level.is_empty() { default } else { &level });
    let stderr = Paced::new(std::io::stderr());
    let (writer, guard) = NonBlockingBuilder::default().buffered_lines_limit(LINES_MAX).lossy(true).thread_name("log").finish(stderr);
    let builder = fmt().with_env_filter(filter).with_writer(writer).with_target(true);
    let started = match format {
        LogFormat::Text => builder.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        LogFormat::Json => builder.event_format(JsonLine).try_init(),
    };
    if started.is_ok() {
        set_hook(Box::new(report));
    }
    LogWriter { _writer: guard }
}

fn report(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    tracing::error!(panic.place = place, panic.message = message(panic.payload()), "a panic");
}

/// A message that stands in the source; one that was put together at run time may hold anything.
fn message(payload: &(dyn std::any::Any + Send)) -> &'static str {
    payload.downcast_ref::<&'static str>().copied().unwrap_or("[put together at run time, not shown]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_message_is_shown_only_when_it_stands_in_the_source() {
        assert_eq!(message(&"the ledger is out of balance"), "the ledger is out of balance");
        assert_eq!(message(&String::from("Asha Rao")), "[put together at run time, not shown]");
    }
}
