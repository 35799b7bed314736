//! Creating, reading and starting events as the number of events of an app grows.

use super::node::GrowthNode;
use super::open_loop;
use super::open_loop::Requests;
use super::scale::GrowthScale;
use super::table::Table;
use crate::{Failure, requests};

/// The most events created for the measurement at each size.
const CREATED_MAX: usize = 200;
/// Rows of a page of the list.
const PAGE_ROWS: usize = 20;

/// Measures requests about events as an app has more of them.
pub(super) fn run(scale: GrowthScale) -> Result<Table, Failure> {
    let node = GrowthNode::start(scale)?;
    let server = &node.service.server;
    let mut ids = Vec::new();
    // A row for each kind of request, in the order of `names` below; the creation of events is last.
    let mut rows: [Vec<_>; 6] = Default::default();
    for (index, size) in scale.events.iter().enumerate() {
        ids.extend(node.create_events(size.saturating_sub(ids.len()))?);
        let for_each_id = |build: &dyn Fn(&str) -> Result<Vec<u8>, Failure>| {
            sample(&ids).map(|id| build(id)).collect::<Result<Vec<_>, _>>()
        };
        let list = |page: usize| {
            requests::client_request(server, "GET", &format!("/events?page_size={PAGE_ROWS}&page={page}"), None)
        };
        rows[0].push(node.measure_cycle(
            &for_each_id(&|id| requests::client_request(server, "GET", &format!("/events/{id}"), None))?,
            200,
        )?);
        rows[1].push(node.measure_cycle(&for_each_id(&|id| Ok(requests::event_page(server, "GET", id)))?, 200)?);
        rows[2].push(node.measure_cycle(
            &for_each_id(&|id| Ok(requests::event_page(server, "POST", &format!("{id}/start"))))?,
            303,
        )?);
        rows[3].push(node.measure_cycle(&[list(1)?], 200)?);
        rows[4].push(node.measure_cycle(&[list(ids.len().div_ceil(PAGE_ROWS))?], 200)?);
        let count = scale.events.get(index + 1).map_or(CREATED_MAX, |next| (next - size).min(CREATED_MAX));
        let created = Requests { bytes: &vec![node.create_event_request()?; count], each_once: true, status: 200 };
        rows[5].push(vec![open_loop::turn(server, created, GrowthScale { rate: 100.0, ..scale })?]);
    }
    let mut table = Table::new("events of an app", scale.events);
    let names = [
        "looking at an event",
        "the page of an event",
        "start at an event",
        "the first page of the list",
        "the last page of the list",
    ];
    for (name, turns) in names.iter().chain(&["creating an event"]).zip(&rows) {
        table.turns(name, turns);
    }
    table.note(format!(
        "Each kind at {} requests/s, open loop, {} turns of {} s, over at most 2,000 of the events. Up to \
         {CREATED_MAX} more were created at each size, at 100/s. A page of the list has {PAGE_ROWS} rows.",
        scale.rate,
        scale.rounds,
        scale.span.as_secs()
    ));
    table.note_late(rows.iter().flatten());
    Ok(table)
}

/// Returns an even sample of at most 2,000 ids.
fn sample(ids: &[String]) -> impl Iterator<Item = &String> {
    ids.iter().step_by(ids.len().div_ceil(2_000).max(1))
}
