//! `GET /assets/app-icon`: the identity app's icon, a file provided by the operator (`pages.app_icon_path`).

use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use actix_web::web::Data;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;

/// Path of the icon.
pub(super) const APP_ICON_PATH: &str = "/assets/app-icon";
/// Content security policy for images: an SVG opened by itself could otherwise run scripts on our origin.
pub(super) const IMAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";

/// Responds with the icon.
///
/// # Errors
/// 404 if no icon is configured.
pub(crate) async fn icon(service: Data<Service>) -> Result<HttpResponse, ApiError> {
    let icon = service.pages.app_icon.as_ref().ok_or(ServiceError::NotFound("icon"))?;
    let mut response = HttpResponse::Ok();
    response
        .insert_header((CACHE_CONTROL, "public, max-age=3600"))
        .insert_header((CONTENT_SECURITY_POLICY, IMAGE_POLICY));
    Ok(response.content_type(icon.content_type).body(icon.bytes.clone()))
}
