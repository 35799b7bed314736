//! Cost of a request as the content of a node grows, and the return of memory.
//!
//! Each series grows one thing in one node and sends the same requests at each size, at a steady rate that leaves the
//! node mostly idle. Processor time per request and latency must not grow with the content.

mod backlog;
mod churn;
mod events;
mod fill;
mod live;
mod node;
mod open_loop;
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
    /// Events of an app: looking, starting, creating.
    Events,
    /// Registrations of one event: start, callbacks of guests, paging.
    Registrations,
    /// Deliveries that wait for one silent receiver: the effect on the others.
    Backlog,
    /// Memory after many transactions have ended, and with as many again.
    Churn,
}

impl Series {
    const ALL: [Self; 5] = [Self::Live, Self::Events, Self::Registrations, Self::Backlog, Self::Churn];

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

/// Runs one series or all, shows their tables, and writes them into the results if asked to.
pub(crate) fn show(series: Option<Series>, quick: bool, write: bool) -> Result<(), Failure> {
    let scale = if quick { GrowthScale::QUICK } else { GrowthScale::FULL };
    for series in series.map_or_else(|| Series::ALL.to_vec(), |one| vec![one]) {
        let before = Usage::now()?;
        let mut table = series.run(scale)?;
        let share = Usage::now()?.others_share_since(before);
        table.note(results::measured_beside(share)?);
        crate::show(&table, write)?;
    }
    Ok(())
}
