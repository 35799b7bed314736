//! `GET /assets/logo/{id}` and `GET /assets/brand/{colour}.css`: the logo of a client or an event, and its colour as a
//! style.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::brand::{Colour, LogoId, css};
use sakshi_service::names::Names;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

use super::app_icon::IMAGE_POLICY;

/// Caching for a day only: the file at an address never changes, but a logo may be withdrawn.
const CACHE_FOR_A_DAY: &str = "public, max-age=86400, immutable";

/// Responds with a logo. A logo that is not cached counts towards the page limit of the caller's address.
///
/// # Errors
/// 404 for an unknown logo; 429 when one address requests too many logos that are not cached.
pub(crate) async fn logo(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    let unknown = ServiceError::NotFound("logo");
    let id: LogoId = path.parse().map_err(|_| unknown.clone())?;
    let logo = match Names::cached_logo(&service, id) {
        Some(logo) => logo,
        None => {
            rates.pages.take(&rates.client_address(&request))?;
            Names::load_logo(&service, id).await?.ok_or(unknown)?
        }
    };
    let mut response = HttpResponse::Ok();
    response.insert_header((CACHE_CONTROL, CACHE_FOR_A_DAY)).insert_header((CONTENT_SECURITY_POLICY, IMAGE_POLICY));
    Ok(response.content_type(logo.content_type).body(logo.bytes.clone()))
}

/// Responds with the style of a colour, built from the address alone.
///
/// # Errors
/// 404 for text that is not a colour, and for an illegible colour.
pub(crate) async fn style(path: Path<String>) -> Result<HttpResponse, ApiError> {
    let colour: Colour = format!("#{path}").parse().map_err(|_| ServiceError::NotFound("colour"))?;
    let (light, dark) = (colour.light(), colour.dark());
    let style = format!(
        ":root{{--accent:{};--accent-deep:{};--on-accent:#fff}}\
         @media screen and (prefers-color-scheme:dark){{:root{{--accent:{};--accent-deep:{};--on-accent:#0d1118}}}}",
        css(light.plain),
        css(light.deep),
        css(dark.plain),
        css(dark.deep)
    );
    Ok(HttpResponse::Ok()
        .insert_header((CACHE_CONTROL, CACHE_FOR_A_DAY))
        .content_type("text/css; charset=utf-8")
        .body(style))
}
