//! An event's codes for print: the files of the API, for people who have signed in.

use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_pages::poster::PrintFormat;
use sakshi_service::Service;

use crate::error::PortalError;
use crate::portal_user::PortalUser;

/// Responds with the poster as a page.
///
/// # Errors
/// 404 unless the app has such an event.
pub(crate) async fn page(
    user: PortalUser,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    Ok(PrintFormat::Page.respond(&request, &service, &user.caller.app.app_id, &path).await?)
}

/// Responds with the poster as a drawing.
///
/// # Errors
/// 404 unless the app has such an event.
pub(crate) async fn svg(
    user: PortalUser,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    Ok(PrintFormat::Drawing.respond(&request, &service, &user.caller.app.app_id, &path).await?)
}

/// Responds with the bare code as SVG.
///
/// # Errors
/// 404 unless the app has such an event.
pub(crate) async fn qr_svg(
    user: PortalUser,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    Ok(PrintFormat::CodeSvg.respond(&request, &service, &user.caller.app.app_id, &path).await?)
}

/// Responds with the bare code as PNG.
///
/// # Errors
/// 404 unless the app has such an event.
pub(crate) async fn qr_png(
    user: PortalUser,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    Ok(PrintFormat::CodePng.respond(&request, &service, &user.caller.app.app_id, &path).await?)
}
