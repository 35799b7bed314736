//! How a command ends when it has no answer.

use std::io::{self, Write};
use std::process::ExitCode;

use crate::settings::Problems;

/// The settings are not good, or the service cannot be asked; starting again helps nobody.
pub(super) const SETTINGS_REFUSED: u8 = 2;

/// Why a command ends without an answer.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// The settings are not good.
    #[error("the settings are not good:\n{0}")]
    Settings(#[from] Problems),
    /// The service cannot be asked.
    #[error("cannot reach the service: {0}")]
    Unreachable(String),
    /// The service refuses.
    #[error("{0}")]
    Refused(String),
    /// The service has no such thing.
    #[error("{0}")]
    NotFound(String),
    /// It cannot be done from here.
    #[error("{0}")]
    Local(String),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

/// The exit code, with the reason written when there is one.
pub fn conclude(done: Result<bool, CliError>, err: &mut dyn Write) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            let refused = matches!(error, CliError::Refused(_) | CliError::NotFound(_));
            // A closed pipe leaves nobody to tell.
            let _ = writeln!(err, "error: {error}");
            ExitCode::from(if refused { 1 } else { SETTINGS_REFUSED })
        }
    }
}
