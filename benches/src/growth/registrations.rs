//! What guests and the organiser of one event do as its registrations become more.

use sakshi_domain::limits::GUESTS_MAX;
use serde_json::Value;

use super::extent::Extent;
use super::grown::Grown;
use super::table::Table;
use crate::{Failure, requests};

/// Rows of a page.
const ROWS: usize = 20;

pub(super) fn run(extent: Extent) -> Result<Table, Failure> {
    let mut grown = Grown::start(extent)?;
    let event = grown.create(1)?.remove(0);
    let look = requests::signed(&grown.service.server, "GET", &format!("/events/{event}"), None)?;
    let scan = requests::intent(&grown.service.server, &event);
    let mut rows: [Vec<_>; 5] = Default::default();
    for size in extent.registrations {
        let measured = extent.of_a_size().min(*size);
        let scanned = grown.each_once(vec![scan.clone(); measured])?;
        let answer = grown.each_once(vec![look.clone()])?.remove(0);
        let registered = serde_json::from_slice::<Value>(&answer)?["registration_count"].as_u64().ok_or("no registration_count")? as usize;
        // An event takes no more guests than this; those that are measured need a place as well.
        let filled = (*size).min(GUESTS_MAX as usize - measured);
        grown.register(&event, filled.saturating_sub(registered))?;

        let server = &grown.service.server;
        let list =
            |page: usize| requests::signed(server, "GET", &format!("/events/{event}/registrations?page_size={ROWS}&page={page}"), None);
        rows[0].push(grown.cycle(&[requests::page(server, "POST", &format!("{event}/start"))], 303)?);
        rows[1].push(grown.once(&grown.callbacks(&scanned)?)?);
        rows[2].push(grown.cycle(&[list(1)?], 200)?);
        rows[3].push(grown.cycle(&[list(filled.div_ceil(ROWS))?], 200)?);
        rows[4].push(grown.cycle(std::slice::from_ref(&look), 200)?);
    }
    let mut table = Table::new("registrations of one event", extent.registrations);
    let names =
        ["start", "a guest's callback", "the first page of registrations", "the last page of registrations", "looking at the event"];
    for (name, turns) in names.iter().zip(&rows) {
        table.turns(name, turns);
    }
    table.note(format!(
        "Each kind at {} requests/s, open loop, {} turns of {} s. The event was filled through the actors, without HTTP and signatures; the \
         guests whose callbacks are measured scanned before that and come on top of a size, but for a million, of which they are part, because \
         an event takes no more. A page has {ROWS} rows with eight claims each.",
        extent.rate,
        extent.rounds,
        extent.span.as_secs()
    ));
    table.note_late(rows.iter().flatten());
    Ok(table)
}
