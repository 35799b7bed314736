//! Commands for developers: `demo`, `trigger` and `listen`, in the Cargo feature `sandbox`.

mod demo;
mod inbox;
mod listen;
mod timeline;
pub mod trigger;

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;

use crate::cli::error::conclude;
use crate::cli::style::Out;
use crate::settings::Sources;

/// A command for developers.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one verification on a fresh store, print each step, and keep serving.
    Demo(demo::Demo),
    /// Drive one flow on a running sandbox, from its order to its outcome, and print each step; a tool for developers.
    ///
    /// The sandbox's built-in upstreams simulate the outcome. The command needs the public URL of the sandbox, an API
    /// key and an app id; on the sandbox's machine, none of these.
    Trigger(Box<trigger::Trigger>),
    /// Receive webhooks and show them; a tool for developers, for webhooks of sandboxes only.
    ///
    /// Prints each webhook with the flow that it reports and its deduplication key, and marks repeats clearly. It
    /// listens on this machine, or with --base receives the webhooks of a sandbox elsewhere. It responds with 200
    /// unless an option says otherwise. Ctrl-C ends it with a summary; the exit code is 1 when a webhook came twice.
    Listen(Box<listen::Listen>),
}

/// Runs a command.
pub async fn run(command: &Command, sources: &Sources, out: &mut dyn Out, err: &mut dyn Write) -> ExitCode {
    let outcome = match command {
        Command::Demo(options) => return demo::run(*options, sources, out, err).await,
        Command::Trigger(options) => trigger::run(options, sources, out).await,
        Command::Listen(options) => listen::run(options, out).await,
    };
    conclude(outcome, err)
}
