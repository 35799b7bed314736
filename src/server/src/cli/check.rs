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

/// Writes every problem, and returns the exit code that `serve` would return.
pub(super) async fn run(options: CheckConfig, sources: &Sources, out: &mut dyn Write) -> Result<ExitCode, CliError> {
    let loaded = match load(sources) {
        Ok(loaded) => loaded,
        Err(problems) => {
            write_problems(&problems.0, out)?;
            return Ok(ExitCode::from(SETTINGS_REFUSED));
        }
    };
    let key_problems = keys::check_all(&loaded.settings);
    if !key_problems.is_empty() {
        write_problems(&key_problems, out)?;
        return Ok(ExitCode::FAILURE);
    }
    let store_check = storage::may_open(&loaded.settings).await;
    if let Err(OpenError::Refused(refusal)) = &store_check {
        write_problems(&[refusal], out)?;
        return Ok(ExitCode::FAILURE);
    }
    if options.show {
        let mut section = "";
        for (key, value) in &loaded.effective {
            let (section_of_key, name) = key.split_once('.').unwrap_or(("", key));
            if section_of_key != section {
                writeln!(out, "\n[{section_of_key}]")?;
                section = section_of_key;
            }
            writeln!(out, "{name} = {value}")?;
        }
        writeln!(out)?;
    }
    for warning in &loaded.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    if let Err(reason) = store_check {
        writeln!(out, "note: the store could not be checked: {reason}")?;
    }
    let warnings = pluralise(loaded.warnings.len(), "warning");
    writeln!(out, "The settings of the {} profile are good; {warnings}.", loaded.settings.profile.as_str())?;
    Ok(ExitCode::SUCCESS)
}

fn write_problems(problems: &[impl Display], out: &mut dyn Write) -> io::Result<()> {
    for problem in problems {
        writeln!(out, "problem: {problem}")?;
    }
    writeln!(out, "{} to solve; the service would not start.", pluralise(problems.len(), "problem"))
}

/// Returns a number with its noun, such as `2 warnings`.
fn pluralise(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
