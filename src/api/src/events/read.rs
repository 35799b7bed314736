//! `GET /api/v1/nationalid-ovse/events/{eventId}` and the list of the app's events.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::events::own_event;
use sakshi_service::service::Service;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::query::{Query, page_of};
use sakshi_wire::events::{EventResponse, EventsPage};

use super::event_response;

/// One event with its counts.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}", tag = "Events",
    params(("eventId" = String, Path, description = "As returned at creation.")),
    responses((status = 200, body = EventResponse, description = "Status, counts and capacity."),
              (status = 404, description = "No such event of this app.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn show(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Query::of(request.query_string()).finish()?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    Ok(HttpResponse::Ok().json(event_response(&service, &event)))
}

/// The app's events.
///
/// # Errors
/// 400 when the page is out of bounds.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events", tag = "Events",
    params(("page" = Option<u32>, Query, minimum = 1), ("page_size" = Option<u32>, Query, minimum = 1, maximum = 100)),
    responses((status = 200, body = EventsPage, description = "Oldest first.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn list(Authenticated(caller): Authenticated, request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let page = page_of(request.query_string())?;
    let found = service.store.list_events(caller.app.app_id.clone(), page).await?;
    let events = found.items.iter().map(|event| event_response(&service, event)).collect();
    Ok(HttpResponse::Ok().json(EventsPage { page: page.page, page_size: page.page_size, total: found.total, events }))
}
