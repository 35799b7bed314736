//! Creating events, looking at them and starting at them as the events of an app become more.

use super::extent::Extent;
use super::grown::Grown;
use super::pace;
use super::pace::Requests;
use super::table::Table;
use crate::{Failure, requests};

/// Events that are created to see what that costs; as many as the second size has, at most.
const CREATED: usize = 200;
/// Rows of a page of the list.
const ROWS: usize = 20;

pub(super) fn run(extent: Extent) -> Result<Table, Failure> {
    let grown = Grown::start(extent)?;
    let server = &grown.service.server;
    let mut ids = Vec::new();
    let mut rows: [Vec<_>; 6] = Default::default();
    for (place, size) in extent.events.iter().enumerate() {
        ids.extend(grown.create(size.saturating_sub(ids.len()))?);
        let of_each = |make: &dyn Fn(&str) -> Result<Vec<u8>, Failure>| spread(&ids).map(|id| make(id)).collect::<Result<Vec<_>, _>>();
        let list = |page: usize| requests::signed(server, "GET", &format!("/events?page_size={ROWS}&page={page}"), None);
        rows[0].push(grown.cycle(&of_each(&|id| requests::signed(server, "GET", &format!("/events/{id}"), None))?, 200)?);
        rows[1].push(grown.cycle(&of_each(&|id| Ok(requests::page(server, "GET", id)))?, 200)?);
        rows[2].push(grown.cycle(&of_each(&|id| Ok(requests::page(server, "POST", &format!("{id}/start"))))?, 303)?);
        rows[3].push(grown.cycle(&[list(1)?], 200)?);
        rows[4].push(grown.cycle(&[list(ids.len().div_ceil(ROWS))?], 200)?);
        let next = extent.events.get(place + 1).map_or(CREATED, |next| (next - size).min(CREATED));
        let created = Requests { bytes: &vec![grown.creation()?; next], once: true, status: 200 };
        rows[5].push(vec![pace::turn(server, created, Extent { rate: 100.0, ..extent })?]);
    }
    let mut table = Table::new("events of an app", extent.events);
    let names =
        ["looking at an event", "the page of an event", "start at an event", "the first page of the list", "the last page of the list"];
    for (name, turns) in names.iter().chain(&["creating an event"]).zip(&rows) {
        table.turns(name, turns);
    }
    table.note(format!(
        "Each kind at {} requests/s, open loop, {} turns of {} s, over at most 2,000 events from all that there are; created were up to {CREATED} \
         on top of a size, at 100/s. A page of the list has {ROWS} rows.",
        extent.rate,
        extent.rounds,
        extent.span.as_secs()
    ));
    table.note_late(rows.iter().flatten());
    Ok(table)
}

/// Some of the ids, from all of them.
fn spread(ids: &[String]) -> impl Iterator<Item = &String> {
    ids.iter().step_by(ids.len().div_ceil(2_000).max(1))
}
