//! The commands for developers: `demo`, `trigger` and `listen`. They are part of the Cargo feature `sandbox`.

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

/// The commands for developers.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Walk one verification on a fresh store, tell what happens, and keep serving.
    Demo(demo::Demo),
    /// Drive one flow on a running sandbox, from its order to its outcome, and tell what happens; a tool for developers.
    ///
    /// The sandbox's own upstreams play the outcome. The public URL of the sandbox, an API key and an app id are enough; on the machine
    /// of the sandbox not even those are needed.
    Trigger(Box<trigger::Trigger>),
    /// Receive webhooks and show them; a tool for developers, for webhooks of sandboxes only.
    ///
    /// Prints each webhook with the flow that it reports and its deduplication key, and tells loudly when one comes twice. It
    /// listens on this machine, or with --base takes the webhooks of a sandbox elsewhere. It answers 200 unless it is told to misbehave. Ctrl-C ends it with a summary; the exit code is 1 when a webhook came twice.
    Listen(Box<listen::Listen>),
}

/// Carries out a command.
pub async fn run(command: &Command, sources: &Sources, out: &mut dyn Out, err: &mut dyn Write) -> ExitCode {
    let done = match command {
        Command::Demo(options) => return demo::run(*options, sources, out, err).await,
        Command::Trigger(options) => trigger::run(options, sources, out).await,
        Command::Listen(options) => listen::run(options, out).await,
    };
    conclude(done, err)
}
