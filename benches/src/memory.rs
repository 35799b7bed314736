//! Memory of a live transaction: fresh, and after many were replaced in random order.
//!
//! One child process opens transactions through the actors. Another uses the store alone, to show the share of the
//! store and its page cache. There is no HTTP and no signature.

mod workload;

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use self::workload::{Work, Workload};
use crate::Failure;
use crate::process::{Server, own_memory};
use crate::report::{Report, Target};
use crate::role::{commands, send_line};
use crate::scale::Scale;
use crate::summary::Line;

/// The layers of a node whose memory is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layers {
    ActorsAndStore,
    StoreAlone,
}

/// The most bytes of a live transaction.
const BYTES_MAX: f64 = 1_536.0;
/// The smallest Erlang process with a registry entry and a timer, for comparison: a known size, not measured here.
const ERLANG: (&str, f64) = ("an Erlang process, 2.6 KiB (known)", 2_662.0);

/// Measures the memory of a live transaction.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("memory");
    let with_actors = measure_stages(scale, Layers::ActorsAndStore)?;
    let store_alone = if scale.store_alone { Some(measure_stages(scale, Layers::StoreAlone)?) } else { None };
    let live = scale.live as f64;
    for (stage, name) in ["fresh".to_owned(), format!("after {} were replaced", scale.churned)].iter().enumerate() {
        let bytes = |stages: &[Value], field: &str| {
            let value = |stage: usize| stages[stage][field].as_f64().unwrap_or(f64::NAN);
            (value(stage + 1) - value(0)) / live
        };
        let total = bytes(&with_actors, "resident");
        report.figure_with_target(
            &format!("**resident bytes per live transaction, {name}**"),
            &[total],
            Target::AtMost(BYTES_MAX),
        );
        let work = format!("bytes per live transaction, {name}");
        report.lines.push(Line::with_known_limit(&work, total, ERLANG, Target::AtMost(BYTES_MAX)));
        let rate = |stages: &[Value]| stages[stage + 1]["rate"].as_f64().unwrap_or(f64::NAN);
        report.figure(&format!("opened or replaced per s, {name}"), &[rate(&with_actors)]);
        if let Some(alone) = &store_alone {
            let store = bytes(alone, "resident");
            report.figure(&format!("the store alone with the same traffic, {name}"), &[store]);
            report.figure(&format!("difference: actors, registry, timers, {name}"), &[total - store]);
            report.figure(&format!("opened or replaced per s through the store alone, {name}"), &[rate(alone)]);
        }
    }
    report.note(format!(
        "{} live transactions; growth of resident memory divided by their number. Each has terms with a reference and \
         a redirect URL.",
        scale.live
    ));
    Ok(report)
}

/// Returns the memory of an empty child process, with fresh transactions, and after replacements.
fn measure_stages(scale: Scale, layers: Layers) -> Result<Vec<Value>, Failure> {
    let directory = tempfile::Builder::new().prefix("sakshi-bench-").tempdir()?;
    let path = directory.path().join("store").display().to_string();
    let mut role = vec!["memory", &*path];
    if layers == Layers::StoreAlone {
        role.push("--store-only");
    }
    let mut child = Server::start(&role)?;
    let before = child.command(&json!({ "live": scale.live }))?;
    let fresh = child.command(&json!({ "open": scale.live }))?;
    let churned = child.command(&json!({ "replace": scale.churned }))?;
    Ok(vec![before, fresh, churned])
}

/// Runs the role: the first command has the number of live transactions; each further command is work, and its answer
/// is the memory in use.
pub(crate) async fn role(directory: &Path, store_only: bool) -> Result<(), Failure> {
    let workload = Workload::new(directory, store_only).await?;
    send_line(&json!({}))?;
    let mut commands = commands();
    let live = commands
        .recv()
        .await
        .and_then(|command| command["live"].as_u64())
        .ok_or("the number of live transactions is missing")?;
    let workers = workload.workers(usize::try_from(live)?).await?;
    send_line(&memory_and_rate(0, 0.0)?)?;
    while let Some(command) = commands.recv().await {
        let (work, count) = match (command["open"].as_u64(), command["replace"].as_u64()) {
            (Some(count), _) => (Work::Open, count),
            (_, count) => (Work::Replace, count.unwrap_or(0)),
        };
        let started = Instant::now();
        let count_each = usize::try_from(count)?.div_ceil(workers.len());
        let results: Vec<_> = workers.iter().map(|worker| worker.start(work, count_each)).collect();
        for result in results {
            result.await??;
        }
        send_line(&memory_and_rate(count, started.elapsed().as_secs_f64())?)?;
    }
    Ok(())
}

/// Returns the memory in use, and the rate of the work.
fn memory_and_rate(count: u64, seconds: f64) -> Result<Value, Failure> {
    Ok(json!({ "resident": own_memory("VmRSS")?, "rate": count as f64 / seconds }))
}
