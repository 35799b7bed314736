//! Doors: `/d/{door}`, the page for the people at an entrance. It opens with a link and a PIN, and ends with the link.
//!
//! Guests are checked in by the code on their ticket, which a phone's camera opens as `/d/t/{ticket}`, or found by name or code. The page
//! works without script; with it, it scans by itself and goes on without a network for a while.

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
use sakshi_domain::time::Timestamp;
use sakshi_service::Service;
use sakshi_service::doors::{OpenDoor, door_path, find_door};
use sakshi_web::error::ApiError;

/// The cookie of who has entered the PIN: the path of the door, and its session.
const COOKIE_NAME: &str = "sakshi_door";

/// The door that this browser has the cookie of.
async fn entered(service: &Service, request: &HttpRequest) -> Result<Option<OpenDoor>, ApiError> {
    let Some((path, session)) = cookie(request) else { return Ok(None) };
    match find_door(service, path).await {
        Ok(open) => Ok(open.is_session(service, session).then_some(open)),
        Err(sakshi_service::ServiceError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The door of a path, for a browser that has entered its PIN.
///
/// # Errors
/// 404 if there is no such door, 401 without the PIN.
async fn entered_at(service: &Service, request: &HttpRequest, path: &str) -> Result<OpenDoor, ApiError> {
    checked(service, request, find_door(service, path).await?)
}

fn checked(service: &Service, request: &HttpRequest, open: OpenDoor) -> Result<OpenDoor, ApiError> {
    if is_entered(service, request, &open) { Ok(open) } else { Err(pin_required()) }
}

fn is_entered(service: &Service, request: &HttpRequest, open: &OpenDoor) -> bool {
    cookie(request).is_some_and(|(_, session)| open.is_session(service, session))
}

fn pin_required() -> ApiError {
    ApiError::Other { status: StatusCode::UNAUTHORIZED, code: "pin_required", message: "Enter the PIN of the door first.".into() }
}

/// The path of the door and the session in the cookie.
fn cookie(request: &HttpRequest) -> Option<(&str, &str)> {
    let values = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE_NAME).and_then(|(_, value)| value.split_once('.'))
}

/// The address of a door's page.
fn address(open: &OpenDoor) -> String {
    door_path(open.event.id, &open.door.id)
}

/// A time by the clocks of the event: `18:04`.
fn clock(event: &Event, at: Timestamp) -> String {
    event.terms.time_zone.local(at).time
}

/// When and where a guest was checked in: `18:04, gate B`.
fn when_and_where(event: &Event, check_in: &CheckIn) -> String {
    let at = clock(event, check_in.at);
    if check_in.gate.is_empty() { at } else { format!("{at}, {}", check_in.gate) }
}
