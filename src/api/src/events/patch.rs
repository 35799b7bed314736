//! `PATCH /api/v1/nationalid-ovse/events/{eventId}`: disables, enables, raises the cap, extends.

use actix_web::HttpResponse;
use actix_web::web::{Data, Path};
use sakshi_service::events::change_event;
use sakshi_service::service::Service;
use sakshi_web::authenticated::AuthenticatedWith;
use sakshi_web::body::Body;
use sakshi_web::error::ApiError;
use sakshi_wire::events::{EventResponse, PatchEventRequest};

use super::event_response;

/// Changes an event; every node knows before the answer leaves.
///
/// # Errors
/// 400 with every field that is not acceptable, 404 unless the app has such an event.
#[utoipa::path(
    patch, path = "/api/v1/nationalid-ovse/events/{eventId}", tag = "Events", request_body = PatchEventRequest,
    params(("eventId" = String, Path)),
    responses((status = 200, body = EventResponse, description = "The event as it is from now on."),
              (status = 404, description = "No such event of this app.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn patch(
    AuthenticatedWith { caller, body }: AuthenticatedWith<Body>,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let event = change_event(&service, &caller.app.app_id, &path, body.sent).await?;
    Ok(HttpResponse::Ok().json(event_response(&service, &event)))
}
