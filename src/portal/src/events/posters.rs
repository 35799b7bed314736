//! An event's codes for print, for whoever has signed in: the same files as the API's.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_pages::poster;
use sakshi_service::events::own_event;
use sakshi_service::service::Service;

use crate::error::PortalError;
use crate::portal_user::PortalUser;

/// The poster as a page.
///
/// # Errors
/// 404 unless the app has such an event.
pub async fn page(user: PortalUser, path: Path<String>, request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    Ok(poster::as_page(&service, &event, poster::offset(&request)?)?)
}

/// The poster as a drawing.
///
/// # Errors
/// 404 unless the app has such an event.
pub async fn svg(user: PortalUser, path: Path<String>, request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    Ok(poster::as_drawing(&service, &event, poster::offset(&request)?)?)
}

/// The bare code as SVG.
///
/// # Errors
/// 404 unless the app has such an event.
pub async fn qr_svg(user: PortalUser, path: Path<String>, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    Ok(poster::code_as_svg(&service, &event)?)
}

/// The bare code as PNG.
///
/// # Errors
/// 404 unless the app has such an event.
pub async fn qr_png(user: PortalUser, path: Path<String>, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let event = own_event(&service, &user.caller.app.app_id, &path).await?;
    Ok(poster::code_as_png(&service, &event)?)
}
