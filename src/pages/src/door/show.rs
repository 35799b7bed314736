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

use super::check_in::photo_path;
use super::{format_time_and_gate, has_session, page_path};
use crate::files::{DOOR_SCRIPT, DOOR_STYLE};
use crate::text::Texts;
use crate::time_left::date_and_time;

/// Time for which a check-in is shown as new.
const NEW_CHECK_IN_MAX: Duration = Duration::from_secs(60);
const SEARCH_RESULTS_MAX: usize = 20;

/// The page of a door for a browser that has entered the PIN.
#[derive(Template)]
#[template(path = "door.html")]
struct DoorPage {
    sandbox: bool,
    event: String,
    gate: String,
    /// Path of the page.
    address: String,
    /// End of the door.
    until: String,
    /// Number of guests who are checked in.
    inside: u32,
    registered: u32,
    has_photos: bool,
    /// Time of the response in milliseconds since 1970.
    now: i64,
    /// Time zone of the event.
    zone: &'static str,
    search_text: String,
    result: Option<GuestCard>,
    /// `None` without a search.
    search_results: Option<Vec<GuestRow>>,
}

/// The guest that the page is about.
struct GuestCard {
    /// Class in the style sheet.
    look: &'static str,
    heading: String,
    name: String,
    code: String,
    photo: Option<String>,
    /// Id of the request that checks in a guest who is not in yet.
    request: Option<i64>,
}

/// A guest in a list.
struct GuestRow {
    name: String,
    code: String,
    /// Time and gate of the check-in.
    inside: Option<String>,
}

/// The page that asks for the PIN of a door.
#[derive(Template)]
#[template(path = "door_pin.html")]
struct PinPage {
    sandbox: bool,
    event: String,
    gate: String,
    address: String,
    /// Error of the last attempt.
    trouble: Option<String>,
}

/// The page of a scanned ticket for a browser that has not entered the PIN of a door.
#[derive(Template)]
#[template(path = "door_none.html")]
struct NotAtADoorPage;

impl DoorPage {
    fn style() -> String {
        DOOR_STYLE.url()
    }

    fn script() -> String {
        DOOR_SCRIPT.url()
    }
}

impl PinPage {
    fn style() -> String {
        DOOR_STYLE.url()
    }
}

impl NotAtADoorPage {
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
    let open_door = find_door(&service, &path).await?;
    if !has_session(&service, &request, &open_door) {
        return Ok(ask_for_pin(&service, &open_door, StatusCode::OK, None, None));
    }
    let mut query = Query::parse(request.query_string());
    let search_text = query.text("q").unwrap_or_default();
    let (code, state) = (query.text("guest").unwrap_or_default(), query.text("state").unwrap_or_default());
    let new_check_in = query.text("done").and_then(|id| id.parse().ok());
    let now = service.clock.now();
    let result = match code.parse() {
        Ok(code) => Some(guest_card(
            &open_door,
            (&state, new_check_in),
            find_listed_guest(&service, &open_door.event, code).await?,
            now,
        )),
        Err(_) if state.is_empty() => None,
        Err(_) => Some(guest_card(&open_door, (&state, None), None, now)),
    };
    let guests = if search_text.trim().is_empty() {
        None
    } else {
        Some(search_guests(&service, &open_door.event, &search_text, SEARCH_RESULTS_MAX).await?)
    };
    let row = |guest: ListedGuest| GuestRow {
        code: guest.code.to_string(),
        inside: guest.check_in.as_ref().map(|check_in| format_time_and_gate(&open_door.event, check_in, now)),
        name: guest.name,
    };
    let event = &open_door.event;
    Ok(page(
        StatusCode::OK,
        None,
        &DoorPage {
            sandbox: service.authority.sandbox,
            event: event.terms.name.as_str().to_owned(),
            gate: gate_name(&open_door),
            address: page_path(&open_door),
            until: date_and_time(open_door.end(), event.terms.time_zone, Texts::for_language(Language::ENGLISH)),
            inside: event.counts.checked_in,
            registered: event.counts.registrations,
            has_photos: event.terms.claims.contains(Claim::Photo),
            now: now.millis(),
            zone: event.terms.time_zone.name(),
            search_text,
            result,
            search_results: guests.map(|guests| guests.into_iter().map(row).collect()),
        },
    ))
}

/// Describes a guest. `state` and `new_check_in` are from the page's address and prove nothing: the store knows if the
/// guest is checked in, and since when.
fn guest_card(
    open_door: &OpenDoor,
    (state, new_check_in): (&str, Option<CheckInId>),
    guest: Option<ListedGuest>,
    now: Timestamp,
) -> GuestCard {
    let Some(guest) = guest else {
        let heading = "This is not a ticket of this event.".to_owned();
        return GuestCard {
            look: "bad",
            heading,
            name: String::new(),
            code: String::new(),
            photo: None,
            request: None,
        };
    };
    let inside = guest.check_in.as_ref().map(|check_in| format_time_and_gate(&open_door.event, check_in, now));
    let is_new = guest
        .check_in
        .as_ref()
        .is_some_and(|check_in| Some(check_in.id) == new_check_in && now.since(check_in.at) <= NEW_CHECK_IN_MAX);
    let (look, heading) = match (&inside, state) {
        (Some(when), _) if is_new => ("good", format!("Checked in at {when}")),
        (Some(when), _) => ("warn", format!("Already in at {when}")),
        (None, "old") => ("warn", "This code is old. Ask to see the page itself, not a picture of it.".to_owned()),
        (None, _) => ("", "Not checked in yet".to_owned()),
    };
    let photo = photo_path(open_door, guest.code);
    let request = inside.is_none().then(|| CheckInId::generate().get());
    GuestCard { look, heading, name: guest.name, code: guest.code.to_string(), photo, request }
}

fn gate_name(open_door: &OpenDoor) -> String {
    open_door.door.name.as_ref().map(EventText::as_str).unwrap_or_default().to_owned()
}

/// Renders the page that asks for the PIN; `retry_after` is in seconds.
pub(super) fn ask_for_pin(
    service: &Service,
    open_door: &OpenDoor,
    status: StatusCode,
    retry_after: Option<u64>,
    trouble: Option<String>,
) -> HttpResponse {
    let event = open_door.event.terms.name.as_str().to_owned();
    page(
        status,
        retry_after,
        &PinPage {
            sandbox: service.authority.sandbox,
            event,
            gate: gate_name(open_door),
            address: page_path(open_door),
            trouble,
        },
    )
}

/// Renders the page of a ticket for a browser that has not entered a door.
pub(super) fn render_not_at_a_door() -> HttpResponse {
    page(StatusCode::FORBIDDEN, None, &NotAtADoorPage)
}
