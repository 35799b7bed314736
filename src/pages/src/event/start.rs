//! `POST /e/{eventId}/start`: a guest starts a verification, which costs the organiser a credit, or continues the
//! pending verification of this browser. A registered guest does not start again by mistake.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{LOCATION, SET_COOKIE};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::event::{Event, EventRefusal};
use sakshi_domain::ids::EventId;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::transaction::Pending;
use sakshi_service::entrance::kept_query;
use sakshi_service::transactions::open_for_guest;
use sakshi_service::{Service, ServiceError};
use sakshi_web::edge::adopt_request_id;
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::rate_limit::RateLimits;
use sakshi_web::same_site;

use super::refused::Refusal;
use super::{find_event, visit};
use crate::language::PageLanguage;

/// Query of a start for another guest, in a browser that has registered a guest.
pub(super) const ANOTHER_GUEST: &str = "another=1";

/// Starts or continues a verification and redirects to its page. If this browser has registered its guest, it redirects
/// to the event's page instead.
///
/// # Errors
/// The refusal itself, for a program that asks for JSON.
pub(crate) async fn start(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    match start_at_event(&path, &request, &service, &rates).await {
        Ok(page) => Ok(page),
        Err(refusal) => refusal.respond(&request, &service, &path).await,
    }
}

/// Redirects a GET of the start button's address, as after a reload, to the event's page.
///
/// # Errors
/// 404, as in the API's error table, for a path that is not an event id.
pub(crate) async fn redirect_to_event(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    match path.parse::<EventId>() {
        Ok(id) => Ok(redirect_to(&page_address(&request, id), None)),
        Err(_) => {
            Refusal::from(ApiError::Service(ServiceError::NotFound("event"))).respond(&request, &service, &path).await
        }
    }
}

async fn start_at_event(
    path: &str,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<HttpResponse, Refusal> {
    rates.pages.take(&rates.client_address(request))?;
    same_site::refuse_cross_site(request, service)?;
    let event = find_event(service, path).await?;
    start_or_continue(request, service, rates, &event).await.map_err(|error| Refusal::for_event(&event, error))
}

async fn start_or_continue(
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
    event: &Event,
) -> Result<HttpResponse, ApiError> {
    refuse_closed(service, event)?;
    let language = chosen_language(request);
    let visits = visit::load_visits(service, request, event).await?;
    if let Some(pending) = visits.under_way {
        return Ok(redirect_to(&language.localise(&format!("/v/{}", pending.id)), None));
    }
    if !visits.guests.is_empty() && request.query_string().split('&').all(|pair| pair != ANOTHER_GUEST) {
        return Ok(redirect_to(&page_address(request, event.id), None));
    }
    let (pending, _) = open_transaction(service, rates, request, event).await?;
    Ok(redirect_to(
        &language.localise(&format!("/v/{}", pending.id)),
        Some(visit::started_cookie(service, event, pending.id)),
    ))
}

/// Refuses guests of an event that is full, disabled or not open now. This comes before questions of admission and
/// credits.
pub(super) fn refuse_closed(service: &Service, event: &Event) -> Result<(), ApiError> {
    EventRefusal::from_status(event.status(service.clock.now())).map_or(Ok(()), |refusal| Err(refusal.into()))
}

/// Returns the address of the event's page, with the permission to start and the language of the request.
fn page_address(request: &HttpRequest, id: EventId) -> String {
    chosen_language(request).localise(&format!("/e/{id}{}", kept_query(request.query_string())))
}

/// Returns the language that the guest chose, which links keep.
fn chosen_language(request: &HttpRequest) -> PageLanguage {
    PageLanguage::from_request(request, None)
}

/// Redirects by path alone, so that the browser stays on the same host name.
fn redirect_to(path: &str, cookie: Option<String>) -> HttpResponse {
    let mut response = private(StatusCode::SEE_OTHER);
    response.insert_header((LOCATION, path));
    if let Some(cookie) = cookie {
        response.insert_header((SET_COOKIE, cookie));
    }
    response.finish()
}

/// Opens a guest's transaction and returns its intent. The store decides whether the event accepts another guest.
///
/// # Errors
/// The reason for not opening the transaction; nothing is debited then.
pub(super) async fn open_transaction(
    service: &Service,
    rates: &RateLimits,
    request: &HttpRequest,
    event: &Event,
) -> Result<(Arc<Pending>, String), ApiError> {
    if service.authority.find_admission(event, request.query_string(), service.clock.now()).is_none() {
        return Err(ServiceError::CodeExpired.into());
    }
    rates.event_starts.take(&(event.id, rates.client_address(request)))?;
    rates.starts_of_events.take(&event.id)?;
    // A request id from the guest must not reach the organiser, who would take it for one of theirs.
    let request_id = adopt_request_id(request, Some(RequestId::mint()));
    Ok(open_for_guest(service, event, request_id).await?)
}
