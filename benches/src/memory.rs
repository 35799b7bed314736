//! How much memory a live transaction takes: fresh, and after many were replaced in random order.
//!
//! One child process opens them through the registries, one through the store alone with the same
//! traffic; what the second one takes is the share of the store and its page caches. No HTTP, no
//! signatures.

mod ground;

use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use self::ground::{Ground, Work};
use crate::Failure;
use crate::process::{Server, own_memory};
use crate::report::{Report, Target};
use crate::role::{say, told};
use crate::scale::Scale;
use crate::summary::Line;

const MOST_BYTES: f64 = 1_536.0;
/// What a transaction is held against: the smallest process of the Erlang runtime with a registry
/// entry and a timer, 2.6 KiB. It is a known size, not measured here.
const ERLANG: (&str, f64) = ("an Erlang process, 2.6 KiB (known)", 2_662.0);

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("memory");
    let with_actors = stages(scale, false)?;
    let store_alone = if scale.store_alone { Some(stages(scale, true)?) } else { None };
    let live = scale.live as f64;
    for (stage, name) in ["fresh".to_owned(), format!("after {} were replaced", scale.churned)].iter().enumerate() {
        let bytes = |stages: &[Value], field: &str| {
            let at = |stage: usize| stages[stage][field].as_f64().unwrap_or(f64::NAN);
            (at(stage + 1) - at(0)) / live
        };
        let all = bytes(&with_actors, "resident");
        report.judged(&format!("**resident bytes per live transaction, {name}**"), &[all], Target::AtMost(MOST_BYTES));
        let work = format!("bytes per live transaction, {name}");
        report.lines.push(Line::known(&work, all, ERLANG, Target::AtMost(MOST_BYTES)));
        let rate = |stages: &[Value]| stages[stage + 1]["rate"].as_f64().unwrap_or(f64::NAN);
        report.figure(&format!("opened or replaced per s, {name}"), &[rate(&with_actors)]);
        if let Some(alone) = &store_alone {
            let store = bytes(alone, "resident");
            report.figure(&format!("the store alone with the same traffic, {name}"), &[store]);
            report.figure(&format!("difference: actors, registry, timers, {name}"), &[all - store]);
            report.figure(&format!("opened or replaced per s through the store alone, {name}"), &[rate(alone)]);
        }
    }
    report.note(format!(
        "{} live; growth over what was resident before the first, divided by the live. Each has terms with a reference and a redirect address.",
        scale.live
    ));
    Ok(report)
}

fn stages(scale: Scale, store_only: bool) -> Result<Vec<Value>, Failure> {
    let directory = tempfile::Builder::new().prefix("sakshi-bench-").tempdir()?;
    let path = directory.path().join("store").display().to_string();
    let mut role = vec!["memory", &*path];
    if store_only {
        role.push("--store-only");
    }
    let mut child = Server::start(&role)?;
    let before = child.tell(&json!({ "live": scale.live }))?;
    let fresh = child.tell(&json!({ "open": scale.live }))?;
    let churned = child.tell(&json!({ "replace": scale.churned }))?;
    Ok(vec![before, fresh, churned])
}

/// Plays the role: is told how many will live, then what to do, and answers with its memory.
pub(crate) async fn role(directory: &Path, store_only: bool) -> Result<(), Failure> {
    let ground = Ground::new(directory, store_only).await?;
    say(&json!({}))?;
    let mut orders = told();
    let live = orders.recv().await.and_then(|order| order["live"].as_u64()).ok_or("it was not told how many will live")?;
    let crowds = ground.crowds(usize::try_from(live)?).await?;
    say(&memory(0, 0.0)?)?;
    while let Some(order) = orders.recv().await {
        let (work, count) = match (order["open"].as_u64(), order["replace"].as_u64()) {
            (Some(count), _) => (Work::Open, count),
            (_, count) => (Work::Replace, count.unwrap_or(0)),
        };
        let began = Instant::now();
        let share = usize::try_from(count)?.div_ceil(crowds.len());
        let under_way: Vec<_> = crowds.iter().map(|crowd| crowd.start(work, share)).collect();
        for crowd in under_way {
            crowd.await??;
        }
        say(&memory(count, began.elapsed().as_secs_f64())?)?;
    }
    Ok(())
}

fn memory(count: u64, seconds: f64) -> Result<Value, Failure> {
    Ok(json!({ "resident": own_memory("VmRSS")?, "rate": count as f64 / seconds }))
}
