//! Init, poll and completion as the number of live transactions grows.

use super::node::GrowthNode;
use super::scale::GrowthScale;
use super::table::Table;
use crate::{Failure, requests};

/// Maximum share of the live transactions that are completed, in percent.
const COMPLETED_MAX_PERCENT: usize = 60;

/// Measures requests as a node has more live transactions.
pub(super) fn run(scale: GrowthScale) -> Result<Table, Failure> {
    let mut node = GrowthNode::start(scale)?;
    let init = requests::init_without_webhook(&node.service.server)?;
    let (mut polls, mut completions, mut inits, mut idle) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for size in scale.live {
        // Transactions to complete are opened first, so that they are not the newest. The others stay live and are
        // polled.
        let opened =
            node.each_once(vec![init.clone(); scale.requests_per_size().min(size * COMPLETED_MAX_PERCENT / 100)])?;
        let live = node.status_number("live")? as usize;
        let open_polls = node.open(size.saturating_sub(live))?;
        idle.push(node.idle_percent()?);
        polls.push(node.measure_cycle(&open_polls, 200)?);
        completions.push(node.measure_once(&node.callbacks(&opened)?)?);
        inits.push(node.measure_cycle(std::slice::from_ref(&init), 200)?);
    }
    let mut table = Table::new("live transactions", scale.live);
    table.turns("init", &inits);
    table.turns("poll", &polls);
    table.turns("completion", &completions);
    table.figure("the idle node, % of a core", &idle);
    table.note(format!(
        "Each kind at {} requests/s, open loop, {} turns of {} s. Intents are signed with ES256. Polls are spread \
         over all live transactions. The completed ones were opened over HTTP before the rest was filled in through \
         the actors. The measured inits are in addition to the size.",
        scale.rate,
        scale.rounds,
        scale.span.as_secs()
    ));
    table.note_late(inits.iter().chain(&polls).chain(&completions));
    Ok(table)
}
