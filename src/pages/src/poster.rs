//! An event's code for print, for its organiser: a poster as an A4 page and as SVG, and the bare
//! code as SVG and PNG.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::event::Event;
use sakshi_domain::time::Timestamp;
use sakshi_service::events::own_event;
use sakshi_service::service::Service;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::html::{page as rendered, private};
use sakshi_web::query::Query;

use super::files::POSTER;
use super::poster_text::{Heading, Step};
use super::qr_code::QrCode;
use super::text::Texts;
use super::time_left::written;

/// Millimetres of the code's side on the sheet.
const CODE_SIDE: f64 = 120.0;
const SVG: &str = "image/svg+xml";

#[derive(Template)]
#[template(path = "poster.html")]
struct Page<'a> {
    texts: &'static Texts,
    name: &'a str,
    /// Style of the name: the longer, the smaller.
    length: &'static str,
    style: String,
    code: String,
    until: String,
    expires_at: Timestamp,
    address: String,
}

#[derive(Template)]
#[template(path = "poster.svg")]
struct Sheet<'a> {
    texts: &'static Texts,
    name: &'a str,
    heading: Heading,
    /// Where the call to scan stands: words that slope reach higher up.
    call_y: u8,
    code_scale: String,
    code_path: String,
    steps: Vec<Step>,
    until: String,
    address: String,
}

/// The poster as a page that prints on one sheet of A4.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/poster", tag = "Events", operation_id = "poster",
    params(("eventId" = String, Path),
           ("utc_offset_minutes" = Option<i32>, Query, minimum = -840, maximum = 840,
            description = "The clock that the end is written in, in minutes east of UTC; 0 when absent.")),
    responses((status = 200, body = String, content_type = "text/html", description = "One A4 page: name, code, three steps, end."),
              (status = 404, description = "No such event of this app.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn page(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let offset = offset(&request)?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    as_page(&service, &event, offset)
}

/// The poster of an event as a page; `offset` is the clock's, in minutes east of UTC.
///
/// # Errors
/// A code that cannot be drawn.
pub fn as_page(service: &Service, event: &Event, offset: i32) -> Result<HttpResponse, ApiError> {
    let texts = Texts::of(event.terms.language);
    let name = event.terms.name.as_str();
    let base = &service.authority.public_base;
    let address = service.authority.event_url(event.id);
    let mut response = rendered(
        StatusCode::OK,
        None,
        &Page {
            texts,
            name,
            length: match name.chars().count() {
                0..=40 => "short",
                41..=110 => "long",
                _ => "longest",
            },
            // In full, so that a saved copy finds it too.
            style: format!("{base}{}", POSTER.url()),
            code: drawn(&address)?.inline(),
            until: written(event.terms.expires_at, offset, texts),
            expires_at: event.terms.expires_at,
            address,
        },
    );
    let policy =
        format!("default-src 'none'; style-src 'self' {base}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(response)
}

/// The poster as one drawing, for layout programs.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/poster.svg", tag = "Events", operation_id = "poster_svg",
    params(("eventId" = String, Path),
           ("utc_offset_minutes" = Option<i32>, Query, minimum = -840, maximum = 840,
            description = "The clock that the end is written in, in minutes east of UTC; 0 when absent.")),
    responses((status = 200, body = String, content_type = "image/svg+xml", description = "210 by 297 mm."),
              (status = 404, description = "No such event of this app.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn svg(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    let offset = offset(&request)?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    as_drawing(&service, &event, offset)
}

/// The poster of an event as a drawing; `offset` is the clock's, in minutes east of UTC.
///
/// # Errors
/// A code that cannot be drawn.
pub fn as_drawing(service: &Service, event: &Event, offset: i32) -> Result<HttpResponse, ApiError> {
    let texts = Texts::of(event.terms.language);
    let name = event.terms.name.as_str();
    let address = service.authority.event_url(event.id);
    let code = drawn(&address)?;
    let sheet = Sheet {
        texts,
        name,
        heading: Heading::of(name, texts),
        call_y: if texts.is_right_to_left() { 80 } else { 76 },
        code_scale: format!("{:.5}", CODE_SIDE / f64::from(u16::try_from(code.side()).unwrap_or(u16::MAX))),
        code_path: code.path(),
        steps: Step::all(texts),
        until: written(event.terms.expires_at, offset, texts),
        address,
    };
    let drawing = sheet.render().map_err(ApiError::internal)?;
    Ok(private(StatusCode::OK).content_type(SVG).body(drawing))
}

/// The bare code as SVG, with its quiet zone.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/qr.svg", tag = "Events",
    params(("eventId" = String, Path)),
    responses((status = 200, body = String, content_type = "image/svg+xml", description = "Error correction Q, four modules of quiet zone."),
              (status = 404, description = "No such event of this app.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn qr_svg(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Query::of(request.query_string()).finish()?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    code_as_svg(&service, &event)
}

/// The code of an event as SVG.
///
/// # Errors
/// A code that cannot be drawn.
pub fn code_as_svg(service: &Service, event: &Event) -> Result<HttpResponse, ApiError> {
    Ok(private(StatusCode::OK).content_type(SVG).body(code_of(event, service)?.file()))
}

/// The bare code as PNG, with its quiet zone.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/qr.png", tag = "Events",
    params(("eventId" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "image/png",
               description = "Error correction Q, four modules of quiet zone, at least 1,000 pixels wide."),
              (status = 404, description = "No such event of this app.")),
    security(("api_key" = [], "app_id" = []))
)]
pub async fn qr_png(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Query::of(request.query_string()).finish()?;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    code_as_png(&service, &event)
}

/// The code of an event as PNG.
///
/// # Errors
/// A code that cannot be drawn.
pub fn code_as_png(service: &Service, event: &Event) -> Result<HttpResponse, ApiError> {
    let png = code_of(event, service)?.png().map_err(ApiError::internal)?;
    Ok(private(StatusCode::OK).content_type("image/png").body(png))
}

fn code_of(event: &Event, service: &Service) -> Result<QrCode, ApiError> {
    drawn(&service.authority.event_url(event.id))
}

fn drawn(address: &str) -> Result<QrCode, ApiError> {
    QrCode::for_print(address).map_err(ApiError::internal)
}

/// The clock that a request asks for, in minutes east of UTC.
///
/// # Errors
/// An offset that no clock has.
pub fn offset(request: &HttpRequest) -> Result<i32, ApiError> {
    let mut query = Query::of(request.query_string());
    let offset = query.number(&["utc_offset_minutes", "utcOffsetMinutes"], -840..=840, 0);
    query.finish().map(|()| offset)
}
