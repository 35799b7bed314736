//! `/api/v1/nationalid-ovse/events/{eventId}/doors` and `…/check-ins`: doors for the people at an entrance, and
//! check-ins by the client's own systems.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::Service;
use sakshi_service::check_ins::check_in_response;
use sakshi_service::doors::{close_door, list_doors, open_door};
use sakshi_web::authenticated::{Authenticated, AuthenticatedBody};
use sakshi_web::error::ApiError;
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;
use sakshi_wire::guests::{CheckInRequest, CheckInResponse, CreateDoorRequest, CreateDoorResponse, DoorsResponse};

/// Opens a door.
///
/// # Errors
/// 400 with every invalid field, 404 unless the app has such an event, 409 if it has too many doors.
#[utoipa::path(
    post, path = "/api/v1/nationalid-ovse/events/{eventId}/doors", tag = "Events", operation_id = "createEventDoor",
    request_body = CreateDoorRequest,
    summary = "Open a door",
    description = "A page for phones at the entrance, without an API key: it scans tickets, finds guests and checks \
        them in. It shows names and photos of guests to anybody with the link and the PIN. Without `expires_at` the \
        door closes at the end of the event, even if that end is changed later.",
    params(("eventId" = String, Path)),
    responses((status = 200, body = CreateDoorResponse, description = "The door. The PIN is shown once."),
              (status = 404, description = "The application has no such event."),
              (status = 409, description = "The event has 50 doors."))
)]
pub(crate) async fn create(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    request: HttpRequest,
    path: Path<String>,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.orders.count(&request, &caller.client)?;
    let door: CreateDoorRequest = body.object.into_request(service.request_context())?;
    Ok(HttpResponse::Ok().json(open_door(&service, &caller.app.app_id, &path, door).await?))
}

/// Lists the doors of an event.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/doors", tag = "Events", operation_id = "listEventDoors",
    summary = "List doors",
    description = "Doors whose links have not expired, oldest first, without their PINs.",
    params(("eventId" = String, Path)),
    responses((status = 200, body = DoorsResponse, description = "The doors."),
              (status = 404, description = "The application has no such event."))
)]
pub(crate) async fn list(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Query::parse(request.query_string()).finish()?;
    Ok(HttpResponse::Ok().json(list_doors(&service, &caller.app.app_id, &path).await?))
}

/// Closes a door.
///
/// # Errors
/// 404 unless the app has such an event with such a door.
#[utoipa::path(
    delete, path = "/api/v1/nationalid-ovse/events/{eventId}/doors/{doorId}", tag = "Events",
    operation_id = "deleteEventDoor",
    summary = "Close a door",
    description = "The link stops working at once. An open page on a phone drops the guests at its next request: \
        within ten seconds, or when the phone is online again.",
    params(("eventId" = String, Path), ("doorId" = String, Path, description = "The `door_id` of `createEventDoor`.")),
    responses((status = 204, description = "Closed."),
              (status = 404, description = "The application has no such event, or the event has no such door."))
)]
pub(crate) async fn close(
    Authenticated(caller): Authenticated,
    path: Path<(String, String)>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Query::parse(request.query_string()).finish()?;
    let (event, door) = path.into_inner();
    close_door(&service, &caller.app.app_id, &event, &door).await?;
    Ok(HttpResponse::NoContent().finish())
}

/// Checks in a guest.
///
/// # Errors
/// 400 for an invalid code, 404 unless the app has such an event with such a guest.
#[utoipa::path(
    post, path = "/api/v1/nationalid-ovse/events/{eventId}/check-ins", tag = "Events", operation_id = "checkInGuest",
    request_body = CheckInRequest,
    summary = "Check in a guest",
    description = "Takes the code from the guest's page. A guest is checked in once: a repeated call returns the time \
        and gate of the first.",
    params(("eventId" = String, Path)),
    responses((status = 200, body = CheckInResponse, description = "The guest is checked in."),
              (status = 404, description = "The application has no such event, or the event has no guest with this \
                  code."))
)]
pub(crate) async fn check_in(
    AuthenticatedBody { caller, body }: AuthenticatedBody,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let check_in: CheckInRequest = body.object.into_request(service.request_context())?;
    Ok(HttpResponse::Ok().json(check_in_response(&service, &caller.app.app_id, &path, check_in).await?))
}
