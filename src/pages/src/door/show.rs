//! `GET /d/{door}`: the page of a door: its PIN first, then the guests.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::claims::Claim;
use sakshi_domain::event::{CheckInId, EventText};
use sakshi_domain::language::Language;
use sakshi_domain::time::Timestamp;
use sakshi_service::Service;
use sakshi_service::check_ins::{ListedGuest, find_listed_guest, search_guests};
use sakshi_service::doors::{OpenDoor, find_door};
use sakshi_web::error::ApiError;
use sakshi_web::html::page;
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;

use super::check_in::photo;
use super::{address, is_entered, when_and_where};
use crate::files::{DOOR, DOOR_STYLE};
use crate::text::Texts;
use crate::time_left::date_and_time;

/// Time for which a check-in is shown as new.
const NEWS_MAX: Duration = Duration::from_secs(60);
/// Most results of a search.
const FOUND_MAX: usize = 20;

#[derive(Template)]
#[template(path = "door.html")]
struct Door {
    sandbox: bool,
    event: String,
    gate: String,
    address: String,
    until: String,
    inside: u32,
    registered: u32,
    has_photos: bool,
    now: i64,
    zone: &'static str,
    words: String,
    result: Option<GuestCard>,
    /// Results of a search; `None` without one.
    found: Option<Vec<GuestRow>>,
}

/// The guest that the page is about.
struct GuestCard {
    look: &'static str,
    heading: String,
    name: String,
    code: String,
    photo: Option<String>,
    /// Id of the request that would check in a guest who is not yet in.
    request: Option<i64>,
}

/// A guest in a list.
struct GuestRow {
    name: String,
    code: String,
    /// Time and gate of the check-in.
    inside: Option<String>,
}

#[derive(Template)]
#[template(path = "door_pin.html")]
struct Pin {
    sandbox: bool,
    event: String,
    gate: String,
    address: String,
    trouble: Option<String>,
}

#[derive(Template)]
#[template(path = "door_none.html")]
struct NotAtADoor;

impl Door {
    fn style() -> String {
        DOOR_STYLE.url()
    }

    fn script() -> String {
        DOOR.url()
    }
}

impl Pin {
    fn style() -> String {
        DOOR_STYLE.url()
    }
}

impl NotAtADoor {
    fn style() -> String {
        DOOR_STYLE.url()
    }
}

/// Shows the page.
///
/// # Errors
/// 404 for an unknown door, 429 when one address sends too many requests.
pub(crate) async fn show(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let open = find_door(&service, &path).await?;
    if !is_entered(&service, &request, &open) {
        return Ok(ask_for_pin(&service, &open, StatusCode::OK, None));
    }
    let mut query = Query::parse(request.query_string());
    let words = query.text("q").unwrap_or_default();
    let (code, state) = (query.text("guest").unwrap_or_default(), query.text("state").unwrap_or_default());
    let (done, now) = (query.text("done").and_then(|id| id.parse().ok()), service.clock.now());
    let result = match code.parse() {
        Ok(code) => shown(&open, (&state, done), find_listed_guest(&service, &open.event, code).await?, now),
        Err(_) if state.is_empty() => None,
        Err(_) => shown(&open, (&state, None), None, now),
    };
    let found = if words.trim().is_empty() {
        None
    } else {
        Some(search_guests(&service, &open.event, &words, FOUND_MAX).await?)
    };
    let listed = |guest: ListedGuest| GuestRow {
        code: guest.code.to_string(),
        inside: guest.check_in.as_ref().map(|check_in| when_and_where(&open.event, check_in, now)),
        name: guest.name,
    };
    let event = &open.event;
    Ok(page(
        StatusCode::OK,
        None,
        &Door {
            sandbox: service.authority.sandbox,
            event: event.terms.name.as_str().to_owned(),
            gate: gate(&open),
            address: address(&open),
            until: date_and_time(open.end(), event.terms.time_zone, Texts::of(Language::ENGLISH)),
            inside: event.counts.checked_in,
            registered: event.counts.registrations,
            has_photos: event.terms.claims.contains(Claim::Photo),
            now: now.millis(),
            zone: event.terms.time_zone.name(),
            words,
            result,
            found: found.map(|found| found.into_iter().map(listed).collect()),
        },
    ))
}

/// Describes a guest. State and request come from the address, so only the store confirms that a guest is checked in,
/// and that it has just happened.
fn shown(
    open: &OpenDoor,
    (state, done): (&str, Option<CheckInId>),
    guest: Option<ListedGuest>,
    now: Timestamp,
) -> Option<GuestCard> {
    let Some(guest) = guest else {
        let heading = "This is not a ticket of this event.".to_owned();
        return Some(GuestCard {
            look: "bad",
            heading,
            name: String::new(),
            code: String::new(),
            photo: None,
            request: None,
        });
    };
    let inside = guest.check_in.as_ref().map(|check_in| when_and_where(&open.event, check_in, now));
    let is_new = guest.check_in.as_ref().is_some_and(|known| Some(known.id) == done && now.since(known.at) <= NEWS_MAX);
    let (look, heading) = match (&inside, state) {
        (Some(when), _) if is_new => ("good", format!("Checked in at {when}")),
        (Some(when), _) => ("warn", format!("Already in at {when}")),
        (None, "old") => ("warn", "This code is old. Ask to see the page itself, not a picture of it.".to_owned()),
        (None, _) => ("", "Not checked in yet".to_owned()),
    };
    let photo = photo(open, guest.code);
    let request = inside.is_none().then(|| CheckInId::generate().get());
    Some(GuestCard { look, heading, name: guest.name, code: guest.code.to_string(), photo, request })
}

fn gate(open: &OpenDoor) -> String {
    open.door.name.as_ref().map(EventText::as_str).unwrap_or_default().to_owned()
}

/// Renders the page that asks for the PIN.
pub(super) fn ask_for_pin(
    service: &Service,
    open: &OpenDoor,
    status: StatusCode,
    trouble: Option<String>,
) -> HttpResponse {
    let event = open.event.terms.name.as_str().to_owned();
    page(
        status,
        None,
        &Pin { sandbox: service.authority.sandbox, event, gate: gate(open), address: address(open), trouble },
    )
}

/// Renders the page of a ticket for a browser that is at no door.
pub(super) fn not_at_a_door() -> HttpResponse {
    page(StatusCode::FORBIDDEN, None, &NotAtADoor)
}
