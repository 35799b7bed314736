//! What a registered guest sees: the event, when they were registered, and the reference, to be shown at the entrance.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use sakshi_domain::event::Event;
use sakshi_domain::time::Timestamp;
use sakshi_service::Service;
use sakshi_service::entrance::registration_code;
use sakshi_web::html::page;

use super::occasion;
use super::visit::Registered;
use crate::language::PageLanguage;
use crate::layout::Layout;
use crate::requester::{Organiser, Requester};
use crate::time_left::date_and_time;

#[derive(Template)]
#[template(path = "ticket.html")]
struct Ticket<'a> {
    layout: Layout,
    name: &'a str,
    organiser: Option<String>,
    occasion: Vec<String>,
    /// The address of the file for calendars.
    calendar: Option<String>,
    guests: Vec<Guest>,
    next: Next,
}

#[derive(Debug)]
struct Guest {
    initials: String,
    reference: String,
    at: Timestamp,
    at_in_words: String,
}

/// Where another guest goes on, if at all.
#[derive(Debug, Default)]
pub(crate) struct Next {
    /// The page of what another guest has begun on this phone.
    pub(crate) under_way: Option<String>,
    /// Where the button for another guest leads.
    pub(crate) another: Option<String>,
}

/// The page, which is at `path`.
pub(crate) async fn ticket(
    service: &Service,
    event: &Event,
    guests: &[Registered],
    language: PageLanguage,
    path: &str,
    next: Next,
) -> HttpResponse {
    let guest = |guest: &Registered| Guest {
        initials: guest.initials.clone(),
        reference: registration_code(guest.txn),
        at: guest.at,
        at_in_words: date_and_time(guest.at, event.terms.time_zone, language.texts),
    };
    let requester = Requester::of_event(service, event).await;
    let layout = Layout::new(service, language, path).for_guests(service, event.terms.retention).requested_by(requester);
    let ticket = Ticket {
        layout,
        name: event.terms.name.as_str(),
        organiser: Organiser::of(service, event).await.map(|organiser| organiser.line),
        occasion: occasion(&event.terms, language.texts),
        calendar: event.terms.starts_at.map(|_| format!("/e/{}/event.ics", event.id)),
        guests: guests.iter().map(guest).collect(),
        next,
    };
    page(StatusCode::OK, None, &ticket)
}
