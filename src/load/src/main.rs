//! The kiosk load tester: sends guests through a running service and checks that the service keeps its promises.
//!
//! The tester uses only HTTP, the authority's protocol and the sandbox issuer's key. At the end of a run it compares
//! the service's ledger, registrations, counts and webhooks with a journal of the service's answers. [`capacity`]
//! computes machines from measured costs, without a run.

mod capacity;
mod cli;
mod device;
mod door;
mod doors;
mod engine;
mod operator;
mod people;
mod process;
mod receiver;
mod record;
mod report;
mod run;
mod schedule;
mod signer;
mod summary;
mod target;
mod transport;
mod visit;
mod watch;
mod workload;

use std::fs;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;
use sakshi_client::judge::Verdict;

use crate::capacity::cli::PlanOptions;
use crate::capacity::document::{command_output, update_document};
use crate::cli::Options;
use crate::report::{Summary, html, table};
use crate::run::run;

/// Exit code if there was no run, or the tester's records contradict each other.
const EXIT_NO_RUN: u8 = 2;
/// Exit code if an invariant was broken.
const EXIT_BROKEN: u8 = 1;

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("plan") {
        return run_plan(&PlanOptions::parse_from(std::env::args().skip(1)));
    }
    let options = Options::parse();
    // Each present guest and each webhook needs a descriptor. Without a descriptor, a request fails.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let summary = match Box::pin(run(&options)).await {
        Ok(summary) => summary,
        Err(error) => return exit_with_error(&error.to_string()),
    };
    // The table is not needed if stdout is closed: the exit code shows the verdict.
    let _ = write!(std::io::stdout(), "{}", table::to_text(&summary));
    if let Err(error) = write_files(&options, &summary) {
        return exit_with_error(&format!("the report could not be written: {error}"));
    }
    match summary.verdict {
        Verdict::Held => ExitCode::SUCCESS,
        Verdict::Broken => ExitCode::from(EXIT_BROKEN),
        Verdict::Tester => ExitCode::from(EXIT_NO_RUN),
    }
}

/// Writes the report and the figures to the files of the options.
fn write_files(options: &Options, summary: &Summary) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(path) = &options.report {
        fs::write(path, html::to_html(summary)?)?;
    }
    if let Some(path) = &options.json {
        fs::write(path, serde_json::to_vec_pretty(summary)?)?;
    }
    Ok(())
}

/// Computes a plan, without a run.
fn run_plan(options: &PlanOptions) -> ExitCode {
    let result = match &options.document {
        Some(path) => fs::read_to_string(path)
            .map_err(Into::into)
            .and_then(|text| update_document(&text))
            .and_then(|text| Ok(fs::write(path, text)?)),
        None => command_output(options).map(|text| drop(write!(std::io::stdout(), "{text}"))),
    };
    result.map_or_else(|error| exit_with_error(&error.to_string()), |()| ExitCode::SUCCESS)
}

fn exit_with_error(reason: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "sakshi-load: {reason}");
    ExitCode::from(EXIT_NO_RUN)
}
