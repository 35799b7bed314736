//! Addresses of the portal that have no page of their own.

use actix_web::HttpResponse;
use sakshi_service::ServiceError;

use super::error::PortalError;
use super::layout::redirect;
use super::portal_user::PortalUser;

/// `GET` where only forms are sent to, as by a reload: back to the start.
pub(crate) async fn back(_: PortalUser) -> HttpResponse {
    redirect("/portal")
}

/// `GET /portal/…`: an address that no page has, for people who have signed in.
///
/// # Errors
/// 404, always.
pub(crate) async fn lost(_: PortalUser) -> Result<HttpResponse, PortalError> {
    Err(ServiceError::NotFound("page").into())
}
