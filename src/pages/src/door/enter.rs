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
    let open = find_door(&service, &path).await?;
    let form = read_form(&request, payload).await?;
    let door_and_address = (path.clone(), rates.client_address(&request));
    let allowance = rates.pins.take(&door_and_address).and_then(|()| rates.pins_of_doors.take(&door_and_address.0));
    if let Err(error) = allowance {
        let words = format!("Too many attempts. Try again in {} seconds.", error.retry_after().unwrap_or(60));
        return Ok(ask_for_pin(&service, &open, StatusCode::TOO_MANY_REQUESTS, Some(words)));
    }
    if !open.has_pin(form.get("pin").map_or("", |pin| pin.trim())) {
        tracing::info!(event.id = %open.event.id, "a wrong PIN at a door");
        return Ok(ask_for_pin(
            &service,
            &open,
            StatusCode::FORBIDDEN,
            Some("This is not the PIN of this door.".into()),
        ));
    }
    tracing::info!(event.id = %open.event.id, "a door was entered");
    Ok(private(StatusCode::SEE_OTHER)
        .insert_header((LOCATION, page_path(&open)))
        .append_header((SET_COOKIE, session_cookie(&service, &open, &page_path(&open))))
        .append_header((SET_COOKIE, session_cookie(&service, &open, "/d/t")))
        .finish())
}

/// Returns the value of `Set-Cookie` (RFC 6265 §4.1).
fn session_cookie(service: &Service, open: &OpenDoor, cookie_path: &str) -> String {
    let secure = if service.authority.public_base.starts_with("https:") { "; Secure" } else { "" };
    let (seconds, session) =
        ((open.end() + DOOR_GRACE).since(service.clock.now()).as_secs(), open.make_session(service));
    let door = format!("{}{}", open.event.id, open.door.id.as_str());
    format!("{COOKIE_NAME}={door}.{session}; Path={cookie_path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}")
}
