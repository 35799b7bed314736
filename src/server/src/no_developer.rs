//! The commands for developers in a binary that is built without them: none.

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

use crate::settings::Sources;

/// No commands.
#[derive(Debug, Subcommand)]
pub enum Command {}

/// Never called.
pub async fn run(command: &Command, _: &Sources, _: &mut dyn Write, _: &mut dyn Write) -> ExitCode {
    match *command {}
}
