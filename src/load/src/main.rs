//! The kiosk load tester: sends guests through a running service and checks that the service keeps its promises.
//!
//! It knows the service from outside only: HTTP, the authority's protocol and the sandbox issuer's key. Every run ends
//! with a comparison. The service's ledger, registrations and counts, and the webhooks that arrived, are compared with
//! a journal of its answers. [`capacity`] makes no run: it computes machines from measured costs.

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
use crate::capacity::document::{fill, printed};
use crate::cli::Options;
use crate::report::{Summary, html, table};
use crate::run::run;

/// There was no run, or the tester's records contradict each other.
const UNABLE: u8 = 2;
/// A promise was broken.
const BROKEN: u8 = 1;

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("plan") {
        return plan(&PlanOptions::parse_from(std::env::args().skip(1)));
    }
    let options = Options::parse();
    // Each guest inside takes a descriptor, and so does each webhook; missing ones show as failed requests.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let summary = match Box::pin(run(&options)).await {
        Ok(summary) => summary,
        Err(error) => return unable(&error.to_string()),
    };
    // If stdout is closed, nobody wants the table; the exit code still tells.
    let _ = write!(std::io::stdout(), "{}", table::write(&summary));
    if let Err(error) = write(&options, &summary) {
        return unable(&format!("the report could not be written: {error}"));
    }
    match summary.verdict {
        Verdict::Held => ExitCode::SUCCESS,
        Verdict::Broken => ExitCode::from(BROKEN),
        Verdict::Tester => ExitCode::from(UNABLE),
    }
}

fn write(options: &Options, summary: &Summary) -> Result<(), Box<dyn std::error::Error>> {
    if let Some(path) = &options.report {
        fs::write(path, html::write(summary)?)?;
    }
    if let Some(path) = &options.json {
        fs::write(path, serde_json::to_vec_pretty(summary)?)?;
    }
    Ok(())
}

/// Computes a plan instead of running.
fn plan(options: &PlanOptions) -> ExitCode {
    let done = match &options.document {
        Some(path) => fs::read_to_string(path)
            .map_err(Into::into)
            .and_then(|text| fill(&text))
            .and_then(|text| Ok(fs::write(path, text)?)),
        None => printed(options).map(|text| drop(write!(std::io::stdout(), "{text}"))),
    };
    done.map_or_else(|error| unable(&error.to_string()), |()| ExitCode::SUCCESS)
}

fn unable(why: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "sakshi-load: {why}");
    ExitCode::from(UNABLE)
}
