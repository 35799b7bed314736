//! Init, poll and completion as the live transactions of the node become more.

use super::extent::Extent;
use super::grown::Grown;
use super::table::Table;
use crate::{Failure, requests};

pub(super) fn run(extent: Extent) -> Result<Table, Failure> {
    let mut grown = Grown::start(extent)?;
    let init = requests::init_without_webhook(&grown.service.server)?;
    let (mut polls, mut completions, mut inits, mut idle) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for size in extent.live {
        // Those that are completed are opened before the others, so that they are no younger.
        let opened = grown.each_once(vec![init.clone(); extent.of_a_size().min(size * 3 / 5)])?;
        let live = grown.now("live")? as usize;
        let asked = grown.open(size.saturating_sub(live))?;
        idle.push(grown.idle()?);
        polls.push(grown.cycle(&asked, 200)?);
        completions.push(grown.once(&grown.callbacks(&opened)?)?);
        inits.push(grown.cycle(std::slice::from_ref(&init), 200)?);
    }
    let mut table = Table::new("live transactions", extent.live);
    table.turns("init", &inits);
    table.turns("poll", &polls);
    table.turns("completion", &completions);
    table.figure("the idle node, % of a core", &idle);
    table.note(format!(
        "Each kind at {} requests/s, open loop, {} turns of {} s. Intents are signed with ES256. Polled are transactions from all that live; \
         those that are completed were opened over HTTP before the rest of their size was filled in through the actors. The inits that are \
         measured come on top of a size.",
        extent.rate,
        extent.rounds,
        extent.span.as_secs()
    ));
    table.note_late(inits.iter().chain(&polls).chain(&completions));
    Ok(table)
}
