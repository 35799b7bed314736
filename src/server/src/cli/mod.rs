//! The command line: its syntax and its commands. Commands write to the given writer and return an exit code: 0 for
//! success, 1 for a negative result, 2 for a command that could not run. `check-config` returns the code of `serve`: 2
//! for invalid settings, 1 for an invalid file.

mod admin;
pub(crate) mod api;
mod audit_log;
mod backup;
mod check;
mod clients;
mod clock;
mod connection;
mod consents;
mod credits;
mod erase;
pub mod error;
mod evidence;
mod health;
mod intent_keys;
mod log_level;
mod manual;
mod moving;
pub(crate) mod paint;
mod reseal;
mod story;
pub mod style;
mod top;
mod tree;
mod upgrade;
mod users;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use sakshi_store::SCHEMA;

use self::error::{CliError, conclude};
use self::style::Out;
use crate::COMMIT;
#[cfg(feature = "sandbox")]
use crate::developer;
use crate::serve;
use crate::settings::{Loaded, Problems, SETTINGS_OF_FILES, SETTINGS_OF_MOVE, SettingNames, Sources, load, load_used};

pub use admin::Admin;
pub use backup::{Backup, Restore};
pub use evidence::VerifyEvidence;
pub use moving::Move;
pub use top::Top;

/// Identity verification and callback service.
#[derive(Debug, Parser)]
#[command(name = "sakshi", version = version(), arg_required_else_help = true)]
pub struct Cli {
    /// Settings file; the environment (SAKSHI__SECTION__KEY) overrides it.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// Returns the version, the commit and the schema of the store.
fn version() -> String {
    format!("{} ({COMMIT}, schema {})", env!("CARGO_PKG_VERSION"), SCHEMA.number())
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service.
    Serve,
    /// Commands for developers.
    #[cfg(feature = "sandbox")]
    #[command(flatten)]
    Developer(developer::Command),
    /// Manage clients, apps, keys and credits of a running service.
    Admin(Admin),
    /// Show the activity of all nodes, each second: their actors, failures and pending webhooks.
    Top(Top),
    /// Report every problem of the settings and of the files they name; the exit code is the same as that of `serve`.
    CheckConfig(CheckConfig),
    /// Write a backup of the embedded store, also while a node serves.
    Backup(Backup),
    /// Restore a backup of the embedded store, while no node serves.
    Restore(Restore),
    /// Upgrade an embedded store of an earlier release, after a backup, while no node serves.
    Migrate,
    /// Move an embedded store into Redis, or back, and compare the two. Another run into Redis copies only what has
    /// changed.
    Move(Move),
    /// Ask a running service whether it is ready; exit code 1 when it is not.
    Healthcheck(Healthcheck),
    /// Check an evidence file offline; exit code 1 when it fails a check.
    VerifyEvidence(VerifyEvidence),
    /// Print completions of this command line for a shell.
    Completions(Completions),
    /// Print the manual page, or write one for each command into a directory.
    Man(Man),
}

/// Options of `check-config`.
#[derive(Args, Clone, Copy, Debug)]
pub struct CheckConfig {
    /// Print every key with the value in effect, secrets withheld.
    #[arg(long)]
    pub show: bool,
}

/// Options of `healthcheck`.
#[derive(Args, Clone, Debug)]
pub struct Healthcheck {
    /// URL of the internal listener. Default: from the settings.
    #[arg(long, value_name = "URL")]
    pub url: Option<url::Url>,
    #[command(flatten)]
    pub(crate) certificates: connection::Certificates,
}

/// Options of `completions`.
#[derive(Args, Clone, Copy, Debug)]
pub struct Completions {
    /// The shell.
    pub shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Args, Clone, Debug)]
pub struct Man {
    /// Directory for `sakshi.1`, `sakshi-serve.1` and so on. Default: print the first page.
    #[arg(long, value_name = "DIRECTORY")]
    pub out: Option<PathBuf>,
}

impl Cli {
    /// Returns the sources of settings of this invocation.
    #[must_use]
    pub fn sources(&self) -> Sources {
        Sources::from_process(self.config.clone())
    }

    /// Reads and checks the settings, and writes their warnings to `err`.
    ///
    /// # Errors
    /// Every problem of the settings.
    pub fn settings(&self, err: &mut dyn Write) -> Result<Loaded, CliError> {
        write_warnings(load(&self.sources()), err)
    }

    /// Reads and checks only the settings of these names, which a command uses, and writes their warnings to `err`.
    fn used_settings(&self, names: SettingNames, err: &mut dyn Write) -> Result<Loaded, CliError> {
        write_warnings(load_used(&self.sources(), names), err)
    }
}

fn write_warnings(loaded: Result<Loaded, Problems>, err: &mut dyn Write) -> Result<Loaded, CliError> {
    let loaded = loaded?;
    for warning in &loaded.warnings {
        writeln!(err, "warning: {warning}")?;
    }
    Ok(loaded)
}

/// Runs a command, with its output to `out` and its errors to `err`.
pub async fn run(cli: &Cli, out: &mut dyn Out, err: &mut dyn Write) -> ExitCode {
    let outcome = match &cli.command {
        Command::Serve => match load(&cli.sources()) {
            Ok(loaded) => return serve::run(&loaded, out, err).await,
            Err(problems) => Err(problems.into()),
        },
        #[cfg(feature = "sandbox")]
        Command::Developer(command) => return developer::run(command, &cli.sources(), out, err).await,
        Command::Admin(admin) => admin::run(admin, &cli.sources(), out).await,
        Command::Top(top) => top.run(&cli.sources(), out).await,
        Command::CheckConfig(options) => match check::run(*options, &cli.sources(), out).await {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Backup(options) => {
            cli.used_settings(SETTINGS_OF_FILES, err).and_then(|loaded| backup::write(options, &loaded.settings, out))
        }
        Command::Restore(options) => {
            cli.used_settings(SETTINGS_OF_FILES, err).and_then(|loaded| backup::restore(options, &loaded.settings, out))
        }
        Command::Migrate => {
            cli.used_settings(SETTINGS_OF_MOVE, err).and_then(|loaded| upgrade::migrate(&loaded.settings, out))
        }
        Command::Move(options) => match cli.used_settings(SETTINGS_OF_MOVE, err) {
            Ok(loaded) => moving::run(options, &loaded.settings, out).await,
            Err(error) => Err(error),
        },
        Command::Healthcheck(options) => health::run(options, &cli.sources(), out).await,
        Command::VerifyEvidence(options) => options.run(out),
        Command::Completions(options) => manual::completions(options.shell, out),
        Command::Man(options) => manual::pages(options.out.as_deref(), out),
    };
    conclude(outcome, err)
}
