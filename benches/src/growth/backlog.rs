//! What one receiver that never answers costs the others as more and more waits for it: how late a
//! webhook to a healthy receiver is, what it costs, and what init and completion cost meanwhile.

use std::time::Duration;

use serde_json::Value;

use super::extent::Extent;
use super::grown::Grown;
use super::pace::{self, Requests, Turn};
use super::receivers::Receivers;
use super::table::Table;
use crate::{Failure, requests};

/// How long the last webhook may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);
const MIB: f64 = 1_024.0 * 1_024.0;

pub(super) fn run(extent: Extent) -> Result<Table, Failure> {
    let receivers = Receivers::start()?;
    let mut grown = Grown::start(extent)?;
    let silently = requests::init_without_webhook(&grown.service.server)?;
    let reported = requests::init_with_webhook(&grown.service.server, &receivers.healthy)?;
    let (mut inits, mut plain, mut with_webhook, mut lateness) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut idle, mut resident) = (Vec::new(), Vec::new());
    let mut queued = 0;
    for size in extent.backlog {
        grown.queue(&receivers.silent, size - queued)?;
        queued = *size;
        resident.push(grown.now("resident")? / MIB);
        idle.push(grown.idle()?);
        inits.push(grown.cycle(std::slice::from_ref(&silently), 200)?);
        let opened = grown.each_once(vec![silently.clone(); extent.of_a_size()])?;
        plain.push(grown.once(&grown.callbacks(&opened)?)?);
        let (turns, late) = delivered(&grown, &reported, &receivers, extent)?;
        with_webhook.push(turns);
        lateness.push(late);
    }
    let mut table = Table::new("backlog of one receiver", extent.backlog);
    table.turns("completion whose webhook goes to a healthy receiver", &with_webhook);
    table.times("from such a callback to the arrival of its webhook", &lateness);
    table.turns("completion without a webhook", &plain);
    table.turns("init", &inits);
    table.figure("the idle node, % of a core", &idle);
    table.figure("resident memory of the node, MiB", &resident);
    table.note(format!(
        "Each kind at {} requests/s, open loop, {} turns of {} s. The receiver with the backlog takes every connection and never answers, so \
         that as many attempts as one origin may have hang for the whole time. The backlog was queued through the actors, without HTTP and \
         signatures; resident memory includes what the traffic of the sizes before has left.",
        extent.rate,
        extent.rounds,
        extent.span.as_secs()
    ));
    table.note_late(inits.iter().chain(&plain).chain(&with_webhook));
    Ok(table)
}

/// Completions whose webhooks go to the healthy receiver, and how long after its callback was due
/// each of them arrived, in milliseconds, sorted.
fn delivered(grown: &Grown, init: &[u8], receivers: &Receivers, extent: Extent) -> Result<(Vec<Turn>, Vec<f64>), Failure> {
    let (mut turns, mut late) = (Vec::new(), Vec::new());
    for _ in 0..extent.rounds {
        let opened = grown.each_once(vec![init.to_vec(); extent.of_a_turn()])?;
        let callbacks = grown.callbacks(&opened)?;
        let turn = pace::turn(&grown.service.server, Requests { bytes: &callbacks, once: true, status: 200 }, extent)?;
        let id = |place: usize| {
            let opened: Value = serde_json::from_slice(&opened[place])?;
            Ok::<_, Failure>(opened["txnId"].as_str().ok_or("no txnId")?.to_owned())
        };
        let txns = turn.due.iter().map(|(place, _)| id(*place)).collect::<Result<Vec<_>, _>>()?;
        let arrived = receivers.arrivals(&txns, PATIENCE)?;
        late.extend(turn.due.iter().zip(&arrived).map(|((_, due), at)| at.saturating_duration_since(*due).as_secs_f64() * 1e3));
        turns.push(turn);
    }
    late.sort_by(f64::total_cmp);
    Ok((turns, late))
}
