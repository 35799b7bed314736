//! Requests of guests and of the organiser as the number of an event's registrations grows.

use sakshi_domain::limits::GUESTS_MAX;
use serde_json::Value;

use super::node::GrowthNode;
use super::scale::GrowthScale;
use super::table::Table;
use crate::{Failure, requests};

/// Rows of a page of the list.
const PAGE_ROWS: usize = 20;

/// Measures requests of an event's guests and organiser as it has more guests.
pub(super) fn run(scale: GrowthScale) -> Result<Table, Failure> {
    let mut node = GrowthNode::start(scale)?;
    let event = node.create_events(1)?.remove(0);
    let read_event = requests::client_request(&node.service.server, "GET", &format!("/events/{event}"), None)?;
    let get_intent = requests::event_intent(&node.service.server, &event);
    // A row for each kind of request, in the order of `names` below.
    let mut rows: [Vec<_>; 5] = Default::default();
    for size in scale.registrations {
        let measured_guests = scale.requests_per_size().min(*size);
        let intents = node.each_once(vec![get_intent.clone(); measured_guests])?;
        let answer = node.each_once(vec![read_event.clone()])?.remove(0);
        let registered = serde_json::from_slice::<Value>(&answer)?["registration_count"]
            .as_u64()
            .ok_or("no registration_count")? as usize;
        // At most as many guests as an event takes, minus those of the measurement.
        let filled = (*size).min(GUESTS_MAX as usize - measured_guests);
        node.register(&event, filled.saturating_sub(registered))?;

        let server = &node.service.server;
        let list = |page: usize| {
            requests::client_request(
                server,
                "GET",
                &format!("/events/{event}/registrations?page_size={PAGE_ROWS}&page={page}"),
                None,
            )
        };
        rows[0].push(node.measure_cycle(&[requests::event_page(server, "POST", &format!("{event}/start"))], 303)?);
        rows[1].push(node.measure_once(&node.callbacks(&intents)?)?);
        rows[2].push(node.measure_cycle(&[list(1)?], 200)?);
        rows[3].push(node.measure_cycle(&[list(filled.div_ceil(PAGE_ROWS))?], 200)?);
        rows[4].push(node.measure_cycle(std::slice::from_ref(&read_event), 200)?);
    }
    let mut table = Table::new("registrations of one event", scale.registrations);
    let names = [
        "start",
        "a guest's callback",
        "the first page of registrations",
        "the last page of registrations",
        "looking at the event",
    ];
    for (name, turns) in names.iter().zip(&rows) {
        table.turns(name, turns);
    }
    table.note(format!(
        "Each kind at {} requests/s, open loop, {} turns of {} s. The event was filled through the actors, without \
         HTTP and signatures. The guests whose callbacks are measured are in addition to the size, except at a \
         million, the most that an event takes. A page has {PAGE_ROWS} rows with eight claims each.",
        scale.rate,
        scale.rounds,
        scale.span.as_secs()
    ));
    table.note_late(rows.iter().flatten());
    Ok(table)
}
