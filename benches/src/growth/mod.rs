//! What a request costs as the node holds more and more, and whether memory comes back.
//!
//! Each series makes one thing grow in one node and sends the same requests at each size, at a
//! steady rate that leaves the node idle most of the time: processor time of the node per request,
//! and time until the answer. A figure that grows with what the node holds would in time be the end
//! of it, however small it begins.

mod backlog;
mod churn;
mod events;
mod extent;
mod fill;
mod grown;
mod live;
mod pace;
mod receivers;
mod registrations;
mod table;

use clap::Subcommand;

use self::extent::Extent;
pub(crate) use self::fill::Filler;
use self::table::Table;
use crate::process::Usage;
use crate::{Failure, results};

/// What grows.
#[derive(Clone, Copy, Debug, Subcommand)]
pub(crate) enum Series {
    /// Live transactions: init, poll and completion.
    Live,
    /// Events of an app: looking, starting, creating.
    Events,
    /// Registrations of one event: start, callbacks of guests, paging.
    Registrations,
    /// Deliveries that wait for one receiver that never answers: what the others notice.
    Backlog,
    /// Memory after many transactions have ended, and with as many again.
    Churn,
}

impl Series {
    const ALL: [Self; 5] = [Self::Live, Self::Events, Self::Registrations, Self::Backlog, Self::Churn];

    fn run(self, extent: Extent) -> Result<Table, Failure> {
        match self {
            Self::Live => live::run(extent),
            Self::Events => events::run(extent),
            Self::Registrations => registrations::run(extent),
            Self::Backlog => backlog::run(extent),
            Self::Churn => churn::run(extent),
        }
    }
}

/// Runs one series or all, shows their tables, and writes them into the results if asked to.
pub(crate) fn show(series: Option<Series>, quick: bool, write: bool) -> Result<(), Failure> {
    let extent = if quick { Extent::QUICK } else { Extent::FULL };
    for series in series.map_or_else(|| Series::ALL.to_vec(), |one| vec![one]) {
        let before = Usage::now()?;
        let mut table = series.run(extent)?;
        let share = Usage::now()?.foreign_share_since(before);
        table.note(results::measured_beside(share)?);
        crate::show(&table, write)?;
    }
    Ok(())
}
