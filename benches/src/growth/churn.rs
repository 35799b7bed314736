//! Whether memory comes back: before, with many live transactions, after all of them ended by their
//! window, and with as many once more.

use std::time::{Duration, Instant};

use super::extent::Extent;
use super::grown::Grown;
use super::table::{Table, counted};
use crate::{Failure, load};

/// The second time may take so many times the room that the first one took, over what was resident before.
const MOST: f64 = 1.1;
/// How long after the last has ended the allocator has to give pages back.
const REST: Duration = Duration::from_secs(15);
/// How long after their window the last ones may still live.
const PATIENCE: Duration = Duration::from_secs(60);
const MIB: f64 = 1_024.0 * 1_024.0;

pub(super) fn run(extent: Extent) -> Result<Table, Failure> {
    let mut grown = Grown::with_window(extent.churn_window, extent)?;
    let mut table = Table::new("memory after churn", &[0, extent.churned, 0, extent.churned]);
    let mut resident = Vec::new();
    let mut look = |grown: &mut Grown| -> Result<(), Failure> {
        resident.push(grown.now("resident")? / MIB);
        Ok(())
    };
    look(&mut grown)?;
    fill(&mut grown, extent)?;
    look(&mut grown)?;
    empty(&mut grown, extent)?;
    look(&mut grown)?;
    fill(&mut grown, extent)?;
    look(&mut grown)?;
    table.figure("live", &[0.0, extent.churned as f64, 0.0, extent.churned as f64]);
    table.figure("resident memory of the node, MiB", &resident);
    let share = |figures: &[f64]| (figures[3] - figures[0]) / (figures[1] - figures[0]);
    let grown_by = |figures: &[f64]| vec![f64::NAN, figures[1] - figures[0], f64::NAN, figures[3] - figures[0]];
    table.judged("growth of resident memory over the start, MiB", &grown_by(&resident), MOST);
    table.note(format!(
        "{} were opened through the actors with `ovse.window_s = {}`, left to end by that window, and opened again. The second time took {:.2} \
         times the memory of the first.",
        counted(extent.churned),
        extent.churn_window.as_secs(),
        share(&resident)
    ));
    Ok(table)
}

fn fill(grown: &mut Grown, extent: Extent) -> Result<(), Failure> {
    grown.open(extent.churned)?;
    let live = grown.now("live")? as usize;
    if live < extent.churned {
        return Err(format!("the first had ended before the last was opened: only {live} live").into());
    }
    Ok(())
}

fn empty(grown: &mut Grown, extent: Extent) -> Result<(), Failure> {
    let end = Instant::now() + extent.churn_window + PATIENCE;
    while grown.now("live")? > 0.0 {
        if Instant::now() > end {
            return Err("transactions live on after their window".into());
        }
        load::pause(Duration::from_millis(250));
    }
    load::pause(REST.min(extent.churn_window));
    Ok(())
}
