//! Errors that end a command.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::settings::Problems;

/// Exit code for invalid settings or an unreachable service, where a restart does not help.
pub(super) const SETTINGS_REFUSED: u8 = 2;

/// Error that ends a command.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The settings are invalid.
    #[error("the settings are invalid:\n{0}")]
    Settings(#[from] Problems),
    /// The service is unreachable.
    #[error("cannot reach the service: {0}")]
    Unreachable(String),
    /// The service refused the request.
    #[error("{0}")]
    Refused(String),
    /// The service returned 404.
    #[error("{0}")]
    NotFound(String),
    /// A local failure.
    #[error("{0}")]
    Local(String),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// Writes the error, if there is one, and returns the exit code. `Ok(false)` is a negative result, with code 1.
pub fn conclude(outcome: Result<bool, CliError>, err: &mut dyn Write) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let refused = matches!(error, CliError::Refused(_) | CliError::NotFound(_));
            // If stderr is closed, the error cannot be reported.
            let _ = writeln!(err, "error: {error}");
            ExitCode::from(if refused { 1 } else { SETTINGS_REFUSED })
        }
    }
}
