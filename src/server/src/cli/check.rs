//! `sakshi check-config`: checks the settings and the files they name.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use sakshi_store::OpenError;

use super::CheckConfig;
use super::error::{CliError, SETTINGS_REFUSED};
use crate::keys;
use crate::settings::{Sources, load};
use crate::storage;

/// Returns the exit code with which `serve` would end for the same reason.
pub(super) async fn run(options: CheckConfig, sources: &Sources, out: &mut dyn Write) -> Result<ExitCode, CliError> {
    let loaded = match load(sources) {
        Ok(loaded) => loaded,
        Err(problems) => {
            refuse(&problems.0, out)?;
            return Ok(ExitCode::from(SETTINGS_REFUSED));
        }
    };
    let lacking = keys::check_all(&loaded.settings);
    if !lacking.is_empty() {
        refuse(&lacking, out)?;
        return Ok(ExitCode::FAILURE);
    }
    let opened = storage::may_open(&loaded.settings).await;
    if let Err(OpenError::Refused(refusal)) = &opened {
        refuse(&[refusal], out)?;
        return Ok(ExitCode::FAILURE);
    }
    if options.show {
        let mut section = "";
        for (key, value) in &loaded.effective {
            let (this, name) = key.split_once('.').unwrap_or(("", key));
            if this != section {
                writeln!(out, "\n[{this}]")?;
                section = this;
            }
            writeln!(out, "{name} = {value}")?;
        }
        writeln!(out)?;
    }
    for warning in &loaded.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    if let Err(reason) = opened {
        writeln!(out, "note: the store could not be checked: {reason}")?;
    }
    let warnings = counted(loaded.warnings.len(), "warning");
    writeln!(out, "The settings of the {} profile are good; {warnings}.", loaded.settings.profile.as_str())?;
    Ok(ExitCode::SUCCESS)
}

fn refuse(problems: &[impl Display], out: &mut dyn Write) -> io::Result<()> {
    for problem in problems {
        writeln!(out, "problem: {problem}")?;
    }
    writeln!(out, "{} to solve; the service would not start.", counted(problems.len(), "problem"))
}

fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
