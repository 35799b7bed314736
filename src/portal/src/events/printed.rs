//! `/portal/events/{eventId}/guests`: a printed list of an event's guests by name, for an entrance without a network.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use askama::Template;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::event::Event;
use sakshi_service::check_ins::{ListedGuest, guests_after};
use sakshi_service::events::own_event;
use sakshi_service::{Service, ServiceError};

use super::event_time;
use crate::error::PortalError;
use crate::layout::{Layout, Section, page};
use crate::portal_user::PortalUser;
use crate::when::EventTime;

/// Most guests of a list, about a hundred sheets of paper.
const GUESTS_MAX: u32 = 5_000;
/// Guests per read.
const GUESTS_PER_READ: u32 = 1_000;

/// A line of the list.
struct Line {
    name: String,
    code: String,
    /// Time and gate of the check-in.
    inside: Option<String>,
    is_duplicate: bool,
}

/// The list of an event's guests, for printing.
#[derive(Template)]
#[template(path = "event_guests.html")]
struct Page {
    layout: Layout,
    event: Arc<Event>,
    lines: Vec<Line>,
    now: EventTime,
}

/// Returns true if an event has few enough guests for a printed list.
pub(super) const fn fits_paper(event: &Event) -> bool {
    event.counts.registrations <= GUESTS_MAX
}

/// Shows the list.
///
/// # Errors
/// 404 unless the app has such an event and the guests fit.
pub(crate) async fn show(
    user: PortalUser,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    if !fits_paper(&event) {
        return Err(ServiceError::NotFound("list").into());
    }
    user.log(&service, Action::GuestsListed, vec![Subject::Event(event.id)]).await?;
    let mut guests: Vec<ListedGuest> = Vec::new();
    loop {
        let slice = guests_after(&service, &event, guests.len() as u64, GUESTS_PER_READ).await?;
        let is_last = slice.items.is_empty();
        guests.extend(slice.items);
        if is_last || guests.len() as u64 >= slice.total {
            break;
        }
    }
    guests.sort_by_cached_key(|guest| (guest.name.to_lowercase(), guest.number));
    let line = |guest: ListedGuest| Line {
        name: guest.name,
        code: guest.code.to_string(),
        inside: guest.check_in.map(|check_in| {
            let at = event.terms.time_zone.local(check_in.at).time;
            if check_in.gate.is_empty() { at } else { format!("{at}, {}", check_in.gate) }
        }),
        is_duplicate: guest.duplicate_of.is_some(),
    };
    let lines = guests.into_iter().map(line).collect();
    let now = event_time(&event, service.clock.now());
    Ok(page(StatusCode::OK, &Page { layout: user.layout(Section::Events, &service), lines, now, event }))
}
