//! `POST /e/{eventId}/start`: a guest starts a verification, which costs the organiser a credit, or continues the one
//! of this browser. A registered guest does not start again by mistake.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{LOCATION, SET_COOKIE};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::event::{Event, EventRefusal};
use sakshi_domain::ids::EventId;
use sakshi_domain::request_id::RequestId;
use sakshi_domain::transaction::Pending;
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

/// Query of a start for a further guest, after those whom this browser has registered.
pub(super) const ANOTHER: &str = "another=1";

/// Starts or continues, and redirects to the verify page; to the event's page if this browser has registered its guest.
///
/// # Errors
/// The refusal, for programs that read the error table.
pub(crate) async fn start(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    match started(&path, &request, &service, &rates).await {
        Ok(page) => Ok(page),
        Err(refusal) => refusal.answer(&request, &service, &path).await,
    }
}

/// Redirects a reopened address of the button (`GET /e/{eventId}/start`) to the page that has it.
///
/// # Errors
/// 404 for a path that names no event, as [`start`].
pub(crate) async fn back(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    match path.parse::<EventId>() {
        Ok(id) => Ok(lead_to(&language(&request).at(&format!("/e/{id}")), None)),
        Err(_) => {
            Refusal::from(ApiError::Service(ServiceError::NotFound("event"))).answer(&request, &service, &path).await
        }
    }
}

async fn started(
    path: &str,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<HttpResponse, Refusal> {
    rates.pages.take(&rates.client_address(request))?;
    same_site::refuse_cross_site(request, service)?;
    let event = find_event(service, path).await?;
    start_or_continue(request, service, rates, &event).await.map_err(|error| Refusal::at(&event, error))
}

async fn start_or_continue(
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
    event: &Event,
) -> Result<HttpResponse, ApiError> {
    if let Some(refusal) = EventRefusal::of(event.status(service.clock.now())) {
        return Err(refusal.into());
    }
    let language = language(request);
    let visits = visit::recall(service, request, event).await?;
    if let Some(pending) = visits.under_way {
        return Ok(lead_to(&language.at(&format!("/v/{}", pending.id)), None));
    }
    if !visits.registered.is_empty() && request.query_string().split('&').all(|pair| pair != ANOTHER) {
        return Ok(lead_to(&language.at(&format!("/e/{}", event.id)), None));
    }
    let (pending, _) = open(service, rates, request, event).await?;
    Ok(lead_to(&language.at(&format!("/v/{}", pending.id)), Some(visit::started(service, event, pending.id))))
}

/// Returns the guest's choice of language; the texts are not needed here.
fn language(request: &HttpRequest) -> PageLanguage {
    PageLanguage::of(request, None)
}

/// Redirects by path alone, so that the browser stays on the same host name.
fn lead_to(path: &str, cookie: Option<String>) -> HttpResponse {
    let mut response = private(StatusCode::SEE_OTHER);
    response.insert_header((LOCATION, path));
    if let Some(cookie) = cookie {
        response.insert_header((SET_COOKIE, cookie));
    }
    response.finish()
}

/// Opens a guest's transaction and returns its intent; the store decides whether the event accepts one.
///
/// # Errors
/// The transaction was not opened; nothing is debited then.
pub(super) async fn open(
    service: &Service,
    rates: &RateLimits,
    request: &HttpRequest,
    event: &Event,
) -> Result<(Arc<Pending>, String), ApiError> {
    if service.authority.admits(event, request.query_string(), service.clock.now()).is_none() {
        return Err(ServiceError::CodeExpired.into());
    }
    rates.event_starts.take(&(event.id, rates.client_address(request)))?;
    rates.starts_of_events.take(&event.id)?;
    // A guest's own id must not reach the organiser, who would take it for one of theirs.
    let request_id = adopt_request_id(request, Some(RequestId::mint()));
    Ok(open_for_guest(service, event, request_id).await?)
}
