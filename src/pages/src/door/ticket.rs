//! `GET /d/t/{ticket}`: the address in a ticket's QR code. It redirects door staff to the guest; others get an
//! explanation.

use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::event::RegistrationCode;
use sakshi_service::Service;
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::rate_limit::RateLimits;

use super::show::render_not_at_a_door;
use super::{find_door_of_cookie, page_path};

/// Redirects to the guest at the door that this browser has entered.
///
/// # Errors
/// 429 when one address sends too many requests; any error of the store.
pub(crate) async fn redirect_to_guest(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let Some(open_door) = find_door_of_cookie(&service, &request).await? else { return Ok(render_not_at_a_door()) };
    // The proof is the part of the ticket's code that changes.
    let (code, proof) = path.split_once('.').unwrap_or((&path, ""));
    let state = match code.parse::<RegistrationCode>() {
        Ok(code) if service.authority.was_proof_shown(open_door.event.id, code, proof, service.clock.now()) => {
            format!("guest={code}&state=shown")
        }
        Ok(code) => format!("guest={code}&state=old"),
        Err(_) => "state=unknown".to_owned(),
    };
    Ok(private(StatusCode::SEE_OTHER).insert_header((LOCATION, format!("{}?{state}", page_path(&open_door)))).finish())
}
