//! `sakshi check-config`

use std::io::Write;

use super::{CheckConfig, CliError};
use crate::settings::{Sources, load};

pub(super) fn run(options: CheckConfig, sources: &Sources, out: &mut dyn Write) -> Result<bool, CliError> {
    let loaded = match load(sources) {
        Ok(loaded) => loaded,
        Err(problems) => {
            for problem in &problems.0 {
                writeln!(out, "problem: {problem}")?;
            }
            writeln!(out, "{} to solve; the service would not start.", counted(problems.0.len(), "problem"))?;
            return Ok(false);
        }
    };
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
    let warnings = counted(loaded.warnings.len(), "warning");
    writeln!(out, "The settings of the {} profile are good; {warnings}.", loaded.settings.profile.as_str())?;
    Ok(true)
}

fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
