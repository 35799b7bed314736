//! `sakshi completions` and `sakshi man`, generated from the command line's definition.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};
use clap_mangen::{Man, generate_to};

use super::Cli;
use super::error::CliError;

const NAME: &str = "sakshi";

/// Writes the completions for a shell.
pub(super) fn completions(shell: Shell, out: &mut dyn Write) -> Result<bool, CliError> {
    // The generator panics when its writer fails, so it writes to memory.
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), NAME, &mut script);
    out.write_all(&script)?;
    Ok(true)
}

/// Writes the manual: the first page to `out`, or every page into a directory.
pub(super) fn pages(directory: Option<&Path>, mut out: &mut dyn Write) -> Result<bool, CliError> {
    match directory {
        Some(directory) => generate_to(Cli::command(), directory)?,
        None => Man::new(Cli::command()).render(&mut out)?,
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_completions_of_every_shell_name_every_command() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let mut script = Vec::new();
            assert!(completions(shell, &mut script).unwrap());
            let script = String::from_utf8(script).unwrap();
            for command in Cli::command().get_subcommands() {
                assert!(script.contains(command.get_name()), "{shell} does not know {}", command.get_name());
            }
        }
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let directory = tempfile::tempdir().unwrap();
        assert!(pages(Some(directory.path()), &mut Vec::new()).unwrap());
        for command in Cli::command().get_subcommands() {
            let page = directory.path().join(format!("{NAME}-{}.1", command.get_name()));
            assert!(page.metadata().unwrap().len() > 0, "{}", page.display());
        }
        let mut first = Vec::new();
        assert!(pages(None, &mut first).unwrap());
        // A page is roff, which begins with a conditional request.
        assert!(String::from_utf8(first).unwrap().starts_with(".ie"));
    }
}
