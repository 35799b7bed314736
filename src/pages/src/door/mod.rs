//! Doors: `/d/{door}`, the page for the people at an entrance. It opens with a link and a PIN, and ends with the link.
//!
//! Guests are checked in by the code on their ticket, which a phone's camera opens as `/d/t/{ticket}`, or found by name
//! or code. The page works without a script. With it, it scans by itself and works offline for a while.

pub(crate) mod check_in;
pub(crate) mod enter;
pub(crate) mod guests;
pub(crate) mod show;
pub(crate) mod ticket;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::http::header::COOKIE;
use sakshi_domain::event::CheckIn;
use sakshi_domain::event::Event;
use sakshi_domain::language::Language;
use sakshi_domain::time::Timestamp;
use sakshi_service::Service;
use sakshi_service::doors::{OpenDoor, door_path, find_door};
use sakshi_web::error::ApiError;

use crate::text::Texts;

/// Cookie with the path of a door, and the session that its PIN has opened. It is set for the door's page, and for
/// `/d/t`, where the door entered last replaces others.
const COOKIE_NAME: &str = "sakshi_door";

/// Returns the door in this browser's cookie, if its session is valid.
async fn find_door_of_cookie(service: &Service, request: &HttpRequest) -> Result<Option<OpenDoor>, ApiError> {
    let Some((path, session)) = read_cookie(request) else { return Ok(None) };
    match find_door(service, path).await {
        Ok(open_door) => Ok(open_door.is_session(service, session).then_some(open_door)),
        Err(sakshi_service::ServiceError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the door of a path, for a browser that has entered its PIN.
///
/// # Errors
/// 404 for an unknown door, 401 without the PIN.
async fn find_entered_door(service: &Service, request: &HttpRequest, path: &str) -> Result<OpenDoor, ApiError> {
    require_session(service, request, find_door(service, path).await?)
}

/// Refuses a browser without a session at this door.
fn require_session(service: &Service, request: &HttpRequest, open_door: OpenDoor) -> Result<OpenDoor, ApiError> {
    if has_session(service, request, &open_door) { Ok(open_door) } else { Err(pin_required()) }
}

/// Returns true if the browser has a session at this door: its PIN was entered there.
fn has_session(service: &Service, request: &HttpRequest, open_door: &OpenDoor) -> bool {
    read_cookie(request).is_some_and(|(_, session)| open_door.is_session(service, session))
}

fn pin_required() -> ApiError {
    ApiError::Other {
        status: StatusCode::UNAUTHORIZED,
        code: "pin_required",
        message: "Enter the PIN of the door first.".into(),
    }
}

/// Returns the path of the door and the session that the cookie carries.
fn read_cookie(request: &HttpRequest) -> Option<(&str, &str)> {
    let values = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).and_then(|(_, value)| value.split_once('.'))
}

/// Returns the path of a door's page.
fn page_path(open_door: &OpenDoor) -> String {
    door_path(open_door.event.id, &open_door.door.id)
}

/// Formats time and gate of a check-in: `18:04, gate B`, or for an earlier day `27 November, 18:04, gate B`.
fn format_time_and_gate(event: &Event, check_in: &CheckIn, now: Timestamp) -> String {
    let zone = event.terms.time_zone;
    let (at, today) = (zone.local(check_in.at), zone.local(now));
    let is_today = (at.year, at.month, at.day) == (today.year, today.month, today.day);
    let month = usize::try_from(at.month)
        .ok()
        .and_then(|month| Texts::for_language(Language::ENGLISH).months.get(month.checked_sub(1)?));
    let day = month.filter(|_| !is_today).map(|month| format!("{} {month}", at.day));
    let gate = Some(check_in.gate.clone()).filter(|gate| !gate.is_empty());
    [day, Some(at.time), gate].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
