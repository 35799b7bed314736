//! `sakshi check-config`

use std::fs::File;
use std::io::Write;

use super::{CheckConfig, CliError};
use crate::settings::{Authority, Problems, Sources, load};

pub(super) fn run(options: CheckConfig, sources: &Sources, out: &mut dyn Write) -> Result<bool, CliError> {
    let loaded = match load(sources) {
        Ok(loaded) => loaded,
        Err(problems) => return refuse(&problems, out),
    };
    let problems = unreadable(&loaded.settings.authority);
    if !problems.0.is_empty() {
        return refuse(&problems, out);
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
    let warnings = counted(loaded.warnings.len(), "warning");
    writeln!(out, "The settings of the {} profile are good; {warnings}.", loaded.settings.profile.as_str())?;
    Ok(true)
}

fn refuse(problems: &Problems, out: &mut dyn Write) -> Result<bool, CliError> {
    for problem in &problems.0 {
        writeln!(out, "problem: {problem}")?;
    }
    writeln!(out, "{} to solve; the service would not start.", counted(problems.0.len(), "problem"))?;
    Ok(false)
}

/// Files that the settings name and that this user cannot open.
fn unreadable(authority: &Authority) -> Problems {
    let mut problems = Problems::default();
    for (key, path) in [("authority.jwks_path", &authority.jwks_path), ("authority.intent_key_path", &authority.intent_key_path)] {
        if let Some(Err(error)) = path.as_ref().map(File::open) {
            problems.add(key, format!("the file cannot be read: {error}"));
        }
    }
    problems
}

fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
