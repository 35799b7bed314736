//! Logs on stderr, and a panic hook that is cheap and discreet.
//!
//! The standard hook walks the stack on every panic, which stalls neighbours of a crashing actor;
//! and a panic's text may hold what must not be logged.

mod gathered;
mod json_line;

use std::io::{self, IsTerminal as _};
use std::panic::{PanicHookInfo, set_hook};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use self::gathered::{Ending, gathered};
use self::json_line::JsonLine;
use crate::settings::LogFormat;

/// Keeps the log's writer alive; what waits is written when it is dropped.
#[must_use]
pub struct LogWriter {
    _ending: Ending,
}

/// Starts logging to stderr at the level of `SAKSHI_LOG`, else of `RUST_LOG`, else `info`.
///
/// Lines are written by a thread of their own. A second call changes nothing.
///
/// # Errors
/// No thread could be started.
pub fn start(format: LogFormat) -> io::Result<LogWriter> {
    start_at(format, "info,actix_server=warn")
}

/// As [`start`], with another level where the environment names none.
///
/// # Errors
/// No thread could be started.
pub fn start_at(format: LogFormat, default: &str) -> io::Result<LogWriter> {
    let level = std::env::var("SAKSHI_LOG").or_else(|_| std::env::var("RUST_LOG")).unwrap_or_default();
    let filter = EnvFilter::new(if level.is_empty() { default } else { &level });
    let (lines, ending) = gathered(io::stderr())?;
    let builder = fmt().with_env_filter(filter).with_writer(lines).with_target(true);
    let started = match format {
        LogFormat::Text => builder.with_ansi(io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.event_format(JsonLine).try_init(),
    };
    if started.is_ok() {
        set_hook(Box::new(report));
    }
    Ok(LogWriter { _ending: ending })
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
