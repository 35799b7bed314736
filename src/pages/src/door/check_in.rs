//! `POST /d/{door}/check-ins`: checks in a guest.
//!
//! A scanned ticket comes with a proof, which must have been current at the time of the scan. Without a proof, staff
//! have picked the guest by hand. Offline scans arrive later, with the time of the scan, until an hour after the end of
//! the door. A retried request has the same `id`.

use std::collections::HashMap;

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, LOCATION};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::claims::Claim;
use sakshi_domain::event::{CheckInId, Event, RegistrationCode};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::limits::DOOR_AFTER_END_MAX;
use sakshi_domain::time::Timestamp;
use sakshi_service::check_ins::{CheckInResult, ListedGuest, check_in, find_listed_guest};
use sakshi_service::doors::{OpenDoor, find_late_door};
use sakshi_service::{Service, ServiceError};
use sakshi_web::body::read_bounded;
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::same_site::refuse_cross_site;
use serde::Serialize;
use url::form_urlencoded;

use super::{format_time_and_gate, page_path};

/// Largest form in bytes.
const FORM_BYTES_MAX: usize = 4 * 1_024;
/// Longest time between an offline scan and its request.
const SCAN_AGE_MAX: std::time::Duration = DOOR_AFTER_END_MAX;

/// The outcome of a check-in, as the script and the page's address name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// The guest is checked in now.
    In,
    /// The guest was checked in before.
    Already,
    /// The scanned code was no longer current: it may come from a picture of the ticket.
    Old,
    /// The event has no such guest.
    Unknown,
}

/// The response to the page's script.
#[derive(Debug, Serialize)]
struct CheckInResponse {
    state: State,
    code: RegistrationCode,
    name: String,
    /// Time and gate of the check-in.
    when: Option<String>,
    /// The path of the guest's photo, if photos were shared.
    photo: Option<String>,
    /// Number of registered guests.
    registered: u32,
    /// Number of guests who are checked in.
    inside: u32,
}

/// Checks in a guest. Responds to the script with JSON, to a browser with a redirect to the page with the outcome.
///
/// # Errors
/// 400 naming the field, 401 without the PIN, 403 for a form of another site, 404 for an unknown door.
pub(crate) async fn post(
    path: Path<String>,
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    refuse_cross_site(&request, &service)?;
    let open_door = super::require_session(&service, &request, find_late_door(&service, &path).await?)?;
    let form = read_form(&request, payload).await?;
    let field = |name: &'static str| form.get(name).map_or("", String::as_str);
    let code: RegistrationCode =
        field("code").parse().map_err(|problem: &str| ApiError::from(Invalid::one("code", problem)))?;
    let now = service.clock.now();
    let scanned_at = match field("at") {
        "" => now,
        text => parse_scan_time(text, now)
            .ok_or_else(|| ApiError::from(Invalid::one("at", "must be milliseconds since 1970, within a day")))?,
    };
    let id = match field("id") {
        "" => CheckInId::generate(),
        text => text.parse().map_err(|problem: &str| ApiError::from(Invalid::one("id", problem)))?,
    };
    if scanned_at >= open_door.end() {
        return Err(ServiceError::NotFound("door").into());
    }
    let (outcome, guest) = verify_and_check_in(&service, &open_door, code, field("proof"), (id, scanned_at)).await?;
    let state = outcome.state();
    if request.headers().get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"application/json")) {
        return Ok(private(StatusCode::OK).json(build_response(&open_door, code, outcome, guest, now)));
    }
    let query = match state {
        State::In => format!("done={}", id.get()),
        State::Already => "state=already".to_owned(),
        State::Old => "state=old".to_owned(),
        State::Unknown => "state=unknown".to_owned(),
    };
    Ok(private(StatusCode::SEE_OTHER)
        .insert_header((LOCATION, format!("{}?guest={code}&{query}", page_path(&open_door))))
        .finish())
}

/// The outcome of a request to check in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    CheckIn(CheckInResult),
    OldProof,
    NoSuchGuest,
}

impl Outcome {
    /// Returns the outcome as the page names it. A repeated request has the state of the first.
    const fn state(self) -> State {
        match self {
            Self::CheckIn(CheckInResult::New | CheckInResult::Repeated) => State::In,
            Self::CheckIn(CheckInResult::AlreadyCheckedIn) => State::Already,
            Self::OldProof => State::Old,
            Self::NoSuchGuest => State::Unknown,
        }
    }
}

/// Checks in the guest, unless the proof was no longer current at the time of the scan. The proof is the part of a
/// ticket's code that changes; it is empty if staff have picked the guest by hand.
async fn verify_and_check_in(
    service: &Service,
    open_door: &OpenDoor,
    code: RegistrationCode,
    proof: &str,
    (id, scanned_at): (CheckInId, Timestamp),
) -> Result<(Outcome, Option<ListedGuest>), ApiError> {
    let event = &*open_door.event;
    if !proof.is_empty() && !service.authority.was_proof_shown(event.id, code, proof, scanned_at) {
        let guest = find_listed_guest(service, event, code).await?;
        let outcome = match &guest {
            None => Outcome::NoSuchGuest,
            Some(ListedGuest { check_in: Some(_), .. }) => Outcome::CheckIn(CheckInResult::AlreadyCheckedIn),
            Some(_) => Outcome::OldProof,
        };
        return Ok((outcome, guest));
    }
    match check_in(service, event, code, open_door.door.name.as_ref(), (id, scanned_at)).await {
        Ok((guest, result)) => Ok((Outcome::CheckIn(result), Some(guest))),
        Err(ServiceError::NotFound(_)) => Ok((Outcome::NoSuchGuest, None)),
        Err(error) => Err(error.into()),
    }
}

/// Builds the response to the page's script.
fn build_response(
    open_door: &OpenDoor,
    code: RegistrationCode,
    outcome: Outcome,
    guest: Option<ListedGuest>,
    now: Timestamp,
) -> CheckInResponse {
    let event = &*open_door.event;
    let counts = event.counts;
    CheckInResponse {
        state: outcome.state(),
        code,
        when: guest
            .as_ref()
            .and_then(|guest| guest.check_in.as_ref())
            .map(|check_in| format_time_and_gate(event, check_in, now)),
        name: guest.map(|guest| guest.name).unwrap_or_default(),
        photo: photo_path(open_door, code),
        registered: counts.registrations,
        // The event was read before the check-in.
        inside: counts.checked_in + u32::from(outcome == Outcome::CheckIn(CheckInResult::New)),
    }
}

/// Returns the path of a guest's photo, if the event asks for photos.
pub(super) fn photo_path(open_door: &OpenDoor, code: RegistrationCode) -> Option<String> {
    asks_for_photo(&open_door.event).then(|| format!("{}/photo/{code}", page_path(open_door)))
}

/// Returns true if guests share a photo.
fn asks_for_photo(event: &Event) -> bool {
    event.terms.claims.contains(Claim::Photo)
}

/// Parses the time of a scan in milliseconds since 1970. A time in the future becomes `now`, because phones' clocks may
/// be ahead.
fn parse_scan_time(text: &str, now: Timestamp) -> Option<Timestamp> {
    let at = Timestamp::from_millis(text.parse().ok()?);
    Some(at.min(now)).filter(|at| now.since(*at) <= SCAN_AGE_MAX)
}

/// Reads the fields of a form.
///
/// # Errors
/// The body is too long, or cannot be read.
pub(super) async fn read_form(request: &HttpRequest, payload: Payload) -> Result<HashMap<String, String>, ApiError> {
    let bytes = read_bounded(request, &mut payload.into_inner(), FORM_BYTES_MAX).await?;
    Ok(form_urlencoded::parse(&bytes).into_owned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_time_is_at_most_now_and_at_most_a_day_old() {
        let now = Timestamp::from_millis(1_000_000_000_000);
        let parse = |text: &str| parse_scan_time(text, now).map(Timestamp::millis);
        assert_eq!(parse("999999999000"), Some(999_999_999_000));
        assert_eq!(parse("1000000000001"), Some(1_000_000_000_000));
        assert_eq!([parse("999000000000"), parse("-1"), parse("9223372036854775808"), parse("soon")], [None; 4]);
    }
}
