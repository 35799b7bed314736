//! The cost of one silent receiver for the others as its queue grows: delay and cost of a webhook to a healthy
//! receiver, and cost of init and completion.

use std::time::Duration;

use serde_json::Value;

use super::node::GrowthNode;
use super::open_loop::{self, Requests, Turn};
use super::receivers::Receivers;
use super::scale::GrowthScale;
use super::table::Table;
use crate::{Failure, requests};

/// Time limit for the arrival of all webhooks of a turn.
const TIMEOUT: Duration = Duration::from_secs(30);
const MIB: f64 = 1_024.0 * 1_024.0;

/// Measures other receivers' webhooks as the queue of a silent receiver grows.
pub(super) fn run(scale: GrowthScale) -> Result<Table, Failure> {
    let receivers = Receivers::start()?;
    let mut node = GrowthNode::start(scale)?;
    let init_without_webhook = requests::init_without_webhook(&node.service.server)?;
    let init_with_webhook = requests::init_with_webhook(&node.service.server, &receivers.healthy)?;
    let (mut inits, mut plain, mut with_webhook, mut delays) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut idle, mut resident) = (Vec::new(), Vec::new());
    let mut queued = 0;
    for size in scale.backlog {
        node.queue(&receivers.silent, size - queued)?;
        queued = *size;
        resident.push(node.status_number("resident")? / MIB);
        idle.push(node.idle_percent()?);
        inits.push(node.measure_cycle(std::slice::from_ref(&init_without_webhook), 200)?);
        let opened = node.each_once(vec![init_without_webhook.clone(); scale.requests_per_size()])?;
        plain.push(node.measure_once(&node.callbacks(&opened)?)?);
        let (turns, turn_delays) = measure_deliveries(&node, &init_with_webhook, &receivers, scale)?;
        with_webhook.push(turns);
        delays.push(turn_delays);
    }
    let mut table = Table::new("backlog of one receiver", scale.backlog);
    table.turns("completion whose webhook goes to a healthy receiver", &with_webhook);
    table.times("from such a callback to the arrival of its webhook", &delays);
    table.turns("completion without a webhook", &plain);
    table.turns("init", &inits);
    table.figure("the idle node, % of a core", &idle);
    table.figure("resident memory of the node, MiB", &resident);
    table.note(format!(
        "Each kind at {} requests/s, open loop, {} turns of {} s. The receiver with the backlog accepts every \
         connection and never answers, so that the most attempts that one origin may have hang all the time. The \
         backlog was queued through the actors, without HTTP and signatures. Resident memory includes what the \
         traffic at smaller sizes has left.",
        scale.rate,
        scale.rounds,
        scale.span.as_secs()
    ));
    table.note_late(inits.iter().chain(&plain).chain(&with_webhook));
    Ok(table)
}

/// Completes transactions with webhooks to the healthy receiver. Returns the turns, and the sorted delays from the due
/// time of each callback to its webhook, in milliseconds.
fn measure_deliveries(
    node: &GrowthNode,
    init: &[u8],
    receivers: &Receivers,
    scale: GrowthScale,
) -> Result<(Vec<Turn>, Vec<f64>), Failure> {
    let (mut turns, mut delays) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        let opened = node.each_once(vec![init.to_vec(); scale.requests_per_turn()])?;
        let callbacks = node.callbacks(&opened)?;
        let turn =
            open_loop::turn(&node.service.server, Requests { bytes: &callbacks, each_once: true, status: 200 }, scale)?;
        let id = |index: usize| {
            let opened: Value = serde_json::from_slice(&opened[index])?;
            Ok::<_, Failure>(opened["txnId"].as_str().ok_or("no txnId")?.to_owned())
        };
        let txns = turn.due.iter().map(|(index, _)| id(*index)).collect::<Result<Vec<_>, _>>()?;
        let arrivals = receivers.arrivals(&txns, TIMEOUT)?;
        delays.extend(
            turn.due
                .iter()
                .zip(&arrivals)
                .map(|((_, due), arrival)| arrival.saturating_duration_since(*due).as_secs_f64() * 1e3),
        );
        turns.push(turn);
    }
    delays.sort_by(f64::total_cmp);
    Ok((turns, delays))
}
