//! Addresses of the portal that have no page of their own.

use actix_web::HttpResponse;
use sakshi_service::ServiceError;

use super::error::PortalError;
use super::layout::redirect;
use super::portal_user::PortalUser;

/// Redirects a `GET` of a form's target, such as a reload, to the start.
pub(crate) async fn back(_: PortalUser) -> HttpResponse {
    redirect("/portal")
}

/// Answers `GET /portal/…` without a page, for signed-in people.
///
/// # Errors
/// 404, always.
pub(crate) async fn lost(_: PortalUser) -> Result<HttpResponse, PortalError> {
    Err(ServiceError::NotFound("page").into())
}
