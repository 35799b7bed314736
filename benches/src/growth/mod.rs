//! Cost of a request as the content of a node grows, and the return of memory.
//!
//! Each series grows one kind of content in a node. At each size it sends the same requests, at a steady rate that
//! leaves the node mostly idle. Processor time per request and latency must not grow with the content.

mod backlog;
mod churn;
mod events;
mod fill;
mod live;
mod node;
pub(crate) mod open_loop;
mod receivers;
mod registrations;
mod scale;
mod table;

use clap::Subcommand;

pub(crate) use self::fill::Filler;
use self::scale::GrowthScale;
use self::table::Table;
use crate::process::Usage;
use crate::{Failure, results};

/// The growing content.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Series {
    /// Live transactions: init, poll and completion.
    Live,
    /// Events of an app: reading, starting and creating them.
    Events,
    /// Registrations of one event: start, callbacks of guests, pages of the list.
    Registrations,
    /// Deliveries that wait for one silent receiver: the effect on other receivers.
    Backlog,
    /// Memory after many transactions have expired, and with as many again.
    Churn,
}

impl Series {
    const ALL: [Self; 5] = [Self::Live, Self::Events, Self::Registrations, Self::Backlog, Self::Churn];

    /// Measures the series and returns its table.
    fn run(self, scale: GrowthScale) -> Result<Table, Failure> {
        match self {
            Self::Live => live::run(scale),
            Self::Events => events::run(scale),
            Self::Registrations => registrations::run(scale),
            Self::Backlog => backlog::run(scale),
            Self::Churn => churn::run(scale),
        }
    }
}

/// Runs one series or all, prints their tables, and with `write` writes them into the results.
pub(crate) fn show(series: Option<Series>, quick: bool, write: bool) -> Result<(), Failure> {
    let scale = if quick { GrowthScale::QUICK } else { GrowthScale::FULL };
    for series in series.map_or_else(|| Series::ALL.to_vec(), |series| vec![series]) {
        let before = Usage::now()?;
        let mut table = series.run(scale)?;
        let others_share = Usage::now()?.others_share_since(before);
        table.note(results::describe_run_beside(others_share)?);
        crate::show(&table, write)?;
    }
    Ok(())
}
