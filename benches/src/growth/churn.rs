//! Memory of an empty node, with many live transactions, after all of them expired, and with as many again. The node
//! must return memory.

use std::time::{Duration, Instant};

use super::node::GrowthNode;
use super::scale::GrowthScale;
use super::table::{Table, format_size};
use crate::{Failure, load};

/// The largest memory growth of the second filling, as a ratio to that of the first.
const RATIO_MAX: f64 = 1.1;
/// Time for the allocator to give pages back after the last transaction has ended.
const SETTLE_TIME: Duration = Duration::from_secs(15);
/// Time limit, after the window, for the last transactions to end.
const EXPIRY_TIMEOUT: Duration = Duration::from_secs(60);
const MIB: f64 = 1_024.0 * 1_024.0;

/// Measures memory while transactions are opened, expire and are opened again.
pub(super) fn run(scale: GrowthScale) -> Result<Table, Failure> {
    let mut node = GrowthNode::with_window(scale.churn_window, scale)?;
    let mut table = Table::new("memory after churn", &[0, scale.churned, 0, scale.churned]);
    let mut resident = Vec::new();
    let mut record_memory = |node: &mut GrowthNode| -> Result<(), Failure> {
        resident.push(node.status_number("resident")? / MIB);
        Ok(())
    };
    record_memory(&mut node)?;
    fill(&mut node, scale)?;
    record_memory(&mut node)?;
    wait_until_empty(&mut node, scale)?;
    record_memory(&mut node)?;
    fill(&mut node, scale)?;
    record_memory(&mut node)?;
    table.figure("live", &[0.0, scale.churned as f64, 0.0, scale.churned as f64]);
    table.figure("resident memory of the node, MiB", &resident);
    let ratio = |figures: &[f64]| (figures[3] - figures[0]) / (figures[1] - figures[0]);
    let growth = |figures: &[f64]| vec![f64::NAN, figures[1] - figures[0], f64::NAN, figures[3] - figures[0]];
    table.figure_with_target("growth of resident memory over the start, MiB", &growth(&resident), RATIO_MAX);
    table.note(format!(
        "{} were opened through the actors with `ovse.window_s = {}`, left to expire, and opened again. The second \
         time took {:.2} times the memory of the first.",
        format_size(scale.churned),
        scale.churn_window.as_secs(),
        ratio(&resident)
    ));
    Ok(table)
}

/// Opens the transactions; fails if some have expired before the last is open.
fn fill(node: &mut GrowthNode, scale: GrowthScale) -> Result<(), Failure> {
    node.open(scale.churned)?;
    let live = node.status_number("live")? as usize;
    if live < scale.churned {
        return Err(format!("the first expired before the last was opened: only {live} live").into());
    }
    Ok(())
}

/// Waits until all transactions have expired, and the allocator has returned their memory.
fn wait_until_empty(node: &mut GrowthNode, scale: GrowthScale) -> Result<(), Failure> {
    let end = Instant::now() + scale.churn_window + EXPIRY_TIMEOUT;
    while node.status_number("live")? > 0.0 {
        if Instant::now() > end {
            return Err("transactions live on after their window".into());
        }
        load::pause(Duration::from_millis(250));
    }
    load::pause(SETTLE_TIME.min(scale.churn_window));
    Ok(())
}
