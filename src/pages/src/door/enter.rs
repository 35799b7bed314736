//! `POST /d/{door}`: the PIN of a door.

use actix_web::http::StatusCode;
use actix_web::http::header::{LOCATION, SET_COOKIE};
use actix_web::web::{Data, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::limits::DOOR_GRACE;
use sakshi_service::Service;
use sakshi_service::doors::{OpenDoor, find_door};
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::rate_limit::RateLimits;
use sakshi_web::same_site::refuse_cross_site;

use super::show::ask_for_pin;
use super::{COOKIE_NAME, check_in::read_form, page_path};

/// Seconds until another attempt, unless the error states a time.
const RETRY_S_DEFAULT: u64 = 60;

/// Admits a browser with the PIN. Attempts are limited per door and caller's address, and per door.
///
/// # Errors
/// 404 for an unknown door, 403 for a form of another site, 400 for a body that is not a form.
pub(crate) async fn enter(
    path: Path<String>,
    request: HttpRequest,
    payload: Payload,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    refuse_cross_site(&request, &service)?;
    let open_door = find_door(&service, &path).await?;
    let form = read_form(&request, payload).await?;
    let door = path.into_inner();
    let allowance =
        rates.pins.take(&(door.clone(), rates.client_address(&request))).and_then(|()| rates.pins_of_doors.take(&door));
    if let Err(error) = allowance {
        let seconds = error.retry_after().unwrap_or(RETRY_S_DEFAULT);
        let words = format!("Too many attempts. Try again in {seconds} seconds.");
        return Ok(ask_for_pin(&service, &open_door, StatusCode::TOO_MANY_REQUESTS, Some(seconds), Some(words)));
    }
    if !open_door.has_pin(form.get("pin").map_or("", |pin| pin.trim())) {
        tracing::info!(event.id = %open_door.event.id, "a wrong PIN at a door");
        return Ok(ask_for_pin(
            &service,
            &open_door,
            StatusCode::FORBIDDEN,
            None,
            Some("This is not the PIN of this door.".into()),
        ));
    }
    tracing::info!(event.id = %open_door.event.id, "a door was entered");
    Ok(private(StatusCode::SEE_OTHER)
        .insert_header((LOCATION, page_path(&open_door)))
        .append_header((SET_COOKIE, session_cookie(&service, &open_door, &page_path(&open_door))))
        .append_header((SET_COOKIE, session_cookie(&service, &open_door, "/d/t")))
        .finish())
}

/// Returns the value of `Set-Cookie` (RFC 6265 §4.1) for a new session at the door, for pages below a path.
fn session_cookie(service: &Service, open_door: &OpenDoor, cookie_path: &str) -> String {
    let secure = if service.authority.public_base.starts_with("https:") { "; Secure" } else { "" };
    let (seconds, session) =
        ((open_door.end() + DOOR_GRACE).since(service.clock.now()).as_secs(), open_door.make_session(service));
    let door = format!("{}{}", open_door.event.id, open_door.door.id.as_str());
    format!("{COOKIE_NAME}={door}.{session}; Path={cookie_path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}
