//! Addresses of the portal without a page.

use actix_web::HttpResponse;
use sakshi_service::ServiceError;

use super::error::PortalError;
use super::layout::redirect;
use super::portal_user::PortalUser;

/// Redirects a `GET` of a form's target, such as a reload, to the overview.
pub(crate) async fn redirect_to_overview(_: PortalUser) -> HttpResponse {
    redirect("/portal")
}

/// Refuses unknown paths below `/portal/`, once the person has signed in.
///
/// # Errors
/// 404, always.
pub(crate) async fn not_found(_: PortalUser) -> Result<HttpResponse, PortalError> {
    Err(ServiceError::NotFound("page").into())
}
