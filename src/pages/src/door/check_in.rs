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
const OFFLINE_MAX: std::time::Duration = DOOR_AFTER_END_MAX;

/// The outcome of a check-in, as the script and the page's address name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// The guest is checked in now.
    In,
    /// The guest was checked in before.
    Already,
    /// The ticket showed an old code when it was scanned: it may be a picture of the page.
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
    registered: u32,
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
    let open = super::require_session(&service, &request, find_late_door(&service, &path).await?)?;
    let form = read_form(&request, payload).await?;
    let field = |name: &'static str| form.get(name).map_or("", String::as_str);
    let code: RegistrationCode =
        field("code").parse().map_err(|problem: &str| ApiError::from(Invalid::one("code", problem)))?;
    let now = service.clock.now();
    let at = match field("at") {
        "" => now,
        text => parse_scan_time(text, now)
            .ok_or_else(|| ApiError::from(Invalid::one("at", "must be milliseconds since 1970, within a day")))?,
    };
    let id = match field("id") {
        "" => CheckInId::generate(),
        text => text.parse().map_err(|problem: &str| ApiError::from(Invalid::one("id", problem)))?,
    };
    if at >= open.end() {
        return Err(ServiceError::NotFound("door").into());
    }
    let (outcome, guest) = verify_and_check_in(&service, &open, code, field("proof"), (id, at)).await?;
    let state = outcome.state();
    if request.headers().get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"application/json")) {
        return Ok(private(StatusCode::OK).json(build_response(&open, code, outcome, guest, now)));
    }
    let query = match state {
        State::In => format!("done={}", id.get()),
        State::Already => "state=already".to_owned(),
        State::Old => "state=old".to_owned(),
        State::Unknown => "state=unknown".to_owned(),
    };
    Ok(private(StatusCode::SEE_OTHER)
        .insert_header((LOCATION, format!("{}?guest={code}&{query}", page_path(&open))))
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
    const fn state(self) -> State {
        match self {
            Self::CheckIn(CheckInResult::New | CheckInResult::Repeated) => State::In,
            Self::CheckIn(CheckInResult::AlreadyCheckedIn) => State::Already,
            Self::OldProof => State::Old,
            Self::NoSuchGuest => State::Unknown,
        }
    }
}

/// Checks in the guest unless the proof is old.
async fn verify_and_check_in(
    service: &Service,
    open: &OpenDoor,
    code: RegistrationCode,
    proof: &str,
    (id, at): (CheckInId, Timestamp),
) -> Result<(Outcome, Option<ListedGuest>), ApiError> {
    let event = &*open.event;
    if !proof.is_empty() && !service.authority.was_proof_shown(event.id, code, proof, at) {
        let guest = find_listed_guest(service, event, code).await?;
        let outcome = match &guest {
            None => Outcome::NoSuchGuest,
            Some(ListedGuest { check_in: Some(_), .. }) => Outcome::CheckIn(CheckInResult::AlreadyCheckedIn),
            Some(_) => Outcome::OldProof,
        };
        return Ok((outcome, guest));
    }
    match check_in(service, event, code, open.door.name.as_ref(), (id, at)).await {
        Ok((guest, done)) => Ok((Outcome::CheckIn(done), Some(guest))),
        Err(ServiceError::NotFound(_)) => Ok((Outcome::NoSuchGuest, None)),
        Err(error) => Err(error.into()),
    }
}

fn build_response(
    open: &OpenDoor,
    code: RegistrationCode,
    outcome: Outcome,
    guest: Option<ListedGuest>,
    now: Timestamp,
) -> CheckInResponse {
    let event = &*open.event;
    let counts = event.counts;
    CheckInResponse {
        state: outcome.state(),
        code,
        when: guest
            .as_ref()
            .and_then(|guest| guest.check_in.as_ref())
            .map(|check_in| format_time_and_gate(event, check_in, now)),
        name: guest.map(|guest| guest.name).unwrap_or_default(),
        photo: photo_path(open, code),
        registered: counts.registrations,
        inside: counts.checked_in + u32::from(outcome == Outcome::CheckIn(CheckInResult::New)),
    }
}

/// Returns the path of a guest's photo, if the event asks for photos.
pub(super) fn photo_path(open: &OpenDoor, code: RegistrationCode) -> Option<String> {
    asks_for_photo(&open.event).then(|| format!("{}/photo/{code}", page_path(open)))
}

fn asks_for_photo(event: &Event) -> bool {
    event.terms.claims.contains(Claim::Photo)
}

/// Parses the time of a scan in milliseconds since 1970. A time in the future becomes `now`, because phones' clocks may
/// be ahead.
fn parse_scan_time(text: &str, now: Timestamp) -> Option<Timestamp> {
    let at = Timestamp::from_millis(text.parse().ok()?);
    Some(at.min(now)).filter(|at| now.since(*at) <= OFFLINE_MAX)
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
        let at = |text: &str| parse_scan_time(text, now).map(Timestamp::millis);
        assert_eq!(at("999999999000"), Some(999_999_999_000));
        assert_eq!(at("1000000000001"), Some(1_000_000_000_000));
        assert_eq!([at("999000000000"), at("-1"), at("9223372036854775808"), at("soon")], [None; 4]);
    }
}
