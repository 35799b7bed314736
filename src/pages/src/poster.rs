//! An event's code for print, for its organiser: a poster as a page and as SVG, A4 or A3, and the bare
//! code as SVG and PNG.

use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sakshi_domain::event::Event;
use sakshi_domain::ids::AppId;
use sakshi_domain::time::Timestamp;
use sakshi_service::Service;
use sakshi_service::events::own_event;
use sakshi_service::names::Names;
use sakshi_web::authenticated::Authenticated;
use sakshi_web::error::ApiError;
use sakshi_web::html::{page as rendered, private};
use sakshi_web::query::Query;

use super::event::occasion;
use super::files::{POSTER, POSTER_A3};
use super::poster_text::{Heading, Step, line_size};
use super::qr_code::QrCode;
use super::requester::Organiser;
use super::text::Texts;
use super::time_left::date_and_time;

/// Millimetres of the code's side on the sheet, and of the letters that say when and where, at most: there is little room above them.
const CODE_SIDE: f64 = 120.0;
const OCCASION_SIZE_MAX: f64 = 4.0;
const SVG: &str = "image/svg+xml";

/// The paper that a poster fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, utoipa::ToSchema)]
enum PaperSize {
    A4,
    /// Twice as large, the sides longer by the square root of two.
    A3,
}

/// What is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Print {
    /// The poster as a page that prints on one sheet.
    Page,
    /// The poster as one drawing, for layout programs.
    Drawing,
    /// The bare code as SVG, with its quiet zone.
    CodeSvg,
    /// The bare code as PNG, with its quiet zone.
    CodePng,
}

impl Print {
    /// Answers with an event of an app.
    ///
    /// # Errors
    /// 404 unless the app has such an event.
    pub async fn answer(self, request: &HttpRequest, service: &Service, app: &AppId, event: &str) -> Result<HttpResponse, ApiError> {
        let mut query = Query::of(request.query_string());
        let is_sheet = matches!(self, Self::Page | Self::Drawing);
        let size = if is_sheet { query.one_of("size", [("A4", PaperSize::A4), ("A3", PaperSize::A3)]) } else { PaperSize::A4 };
        query.finish()?;
        let event = own_event(service, app, event).await?;
        let address = service.authority.event_url(event.id);
        let code = QrCode::for_print(&address).map_err(ApiError::internal)?;
        let file = |content_type, body: Vec<u8>| Ok(private(StatusCode::OK).content_type(content_type).body(body));
        match self {
            Self::Page => Ok(as_page(&event, &About::of(service, &event).await, &code, address, &service.authority.public_base, size)),
            Self::Drawing => file(SVG, as_drawing(&event, &About::of(service, &event).await, &code, address, size)?.into()),
            Self::CodeSvg => file(SVG, code.file().into()),
            Self::CodePng => file("image/png", code.png().map_err(ApiError::internal)?),
        }
    }
}

#[derive(Template)]
#[template(path = "poster.html")]
struct Page<'a> {
    texts: &'static Texts,
    name: &'a str,
    occasion: &'a [String],
    about: &'a [String],
    logo: Option<&'a str>,
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
    /// Millimetres of the paper; the drawing is laid out as on A4.
    paper: (u16, u16),
    texts: &'static Texts,
    name: &'a str,
    occasion: &'a [String],
    occasion_size: f64,
    /// Its line is above that of the organiser.
    occasion_y: u16,
    about: &'a [String],
    logo: Option<&'a str>,
    about_size: f64,
    /// Where it stands, above the time until which the event is open.
    about_y: u16,
    heading: Heading,
    /// Where the call to scan stands: words that slope reach higher up.
    call_y: u8,
    code_scale: String,
    code_path: String,
    steps: Vec<Step>,
    until: String,
    address: String,
}

fn as_page(event: &Event, about: &About, code: &QrCode, address: String, base: &str, size: PaperSize) -> HttpResponse {
    let texts = Texts::of(event.terms.language);
    let name = event.terms.name.as_str();
    let poster = Page {
        texts,
        name,
        occasion: &about.occasion,
        about: &about.lines,
        logo: about.logo.as_deref(),
        length: match name.chars().count() {
            0..=40 => "short",
            41..=110 => "long",
            _ => "longest",
        },
        // In full, so that a saved copy finds it too.
        style: format!("{base}{}", if size == PaperSize::A3 { POSTER_A3.url() } else { POSTER.url() }),
        code: code.inline(),
        until: date_and_time(event.terms.expires_at, event.terms.time_zone, texts),
        expires_at: event.terms.expires_at,
        address,
    };
    let mut response = rendered(StatusCode::OK, None, &poster);
    let policy =
        format!("default-src 'none'; style-src 'self' {base}; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// Beginning and place, organiser and purpose, any of which may be missing, and the logo as a `data:` URL: a printed page loads nothing.
#[derive(Debug, Default)]
struct About {
    occasion: Vec<String>,
    lines: Vec<String>,
    logo: Option<String>,
}

impl About {
    async fn of(service: &Service, event: &Event) -> Self {
        let organiser = Organiser::of(service, event).await;
        let logo = match organiser.as_ref().and_then(|organiser| organiser.logo) {
            Some(logo) => Names::logo(service, logo).await.ok().flatten(),
            None => None,
        };
        let purpose = event.terms.purpose.as_ref().map(|purpose| purpose.as_str().to_owned());
        let occasion = occasion(&event.terms, Texts::of(event.terms.language));
        Self {
            occasion,
            lines: organiser.map(|organiser| organiser.line).into_iter().chain(purpose).collect(),
            logo: logo.map(|logo| format!("data:{};base64,{}", logo.content_type, STANDARD.encode(&logo.bytes))),
        }
    }
}

fn as_drawing(event: &Event, about: &About, code: &QrCode, address: String, size: PaperSize) -> Result<String, ApiError> {
    let texts = Texts::of(event.terms.language);
    let name = event.terms.name.as_str();
    let sheet = Sheet {
        paper: if size == PaperSize::A3 { (297, 420) } else { (210, 297) },
        texts,
        name,
        about_y: if texts.is_right_to_left() { 271 } else { 274 },
        occasion_y: if texts.is_right_to_left() { 264 } else { 267 },
        occasion_size: line_size(&about.occasion.join(" · ")).min(OCCASION_SIZE_MAX),
        occasion: &about.occasion,
        about_size: line_size(&about.lines.join(" · ")),
        about: &about.lines,
        logo: about.logo.as_deref(),
        heading: Heading::of(name, texts),
        call_y: if texts.is_right_to_left() { 80 } else { 76 },
        code_scale: format!("{:.5}", CODE_SIDE / f64::from(u16::try_from(code.side()).unwrap_or(u16::MAX))),
        code_path: code.path(),
        steps: Step::all(texts),
        until: date_and_time(event.terms.expires_at, event.terms.time_zone, texts),
        address,
    };
    sheet.render().map_err(ApiError::internal)
}

/// The poster as a page that prints on one sheet.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/poster", tag = "Events", operation_id = "getEventPoster",
    summary = "Get the poster",
    description = "A page to print, with the QR code, three steps and the end of the event.",
    params(("eventId" = String, Path), ("size" = inline(Option<PaperSize>), Query, description = "`A4` (default) or `A3`.")),
    responses((status = 200, body = String, content_type = "text/html", description = "The page."),
              (status = 404, description = "The application has no such event.")),
    security(("api_key" = [], "app_id" = []))
)]
pub(crate) async fn page(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Print::Page.answer(&request, &service, &caller.app.app_id, &path).await
}

/// The poster as one drawing, for layout programs.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/poster.svg", tag = "Events", operation_id = "getEventPosterSvg",
    summary = "Get the poster as SVG",
    description = "One drawing, 210 by 297 mm or 297 by 420 mm, for layout programs.",
    params(("eventId" = String, Path), ("size" = inline(Option<PaperSize>), Query, description = "`A4` (default) or `A3`.")),
    responses((status = 200, body = String, content_type = "image/svg+xml", description = "The drawing."),
              (status = 404, description = "The application has no such event.")),
    security(("api_key" = [], "app_id" = []))
)]
pub(crate) async fn svg(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Print::Drawing.answer(&request, &service, &caller.app.app_id, &path).await
}

/// The bare code as SVG, with its quiet zone.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/qr.svg", tag = "Events", operation_id = "getEventQrSvg",
    summary = "Get the code as SVG",
    description = "Error correction Q, four modules of quiet zone.",
    params(("eventId" = String, Path)),
    responses((status = 200, body = String, content_type = "image/svg+xml", description = "The code."),
              (status = 404, description = "The application has no such event.")),
    security(("api_key" = [], "app_id" = []))
)]
pub(crate) async fn qr_svg(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Print::CodeSvg.answer(&request, &service, &caller.app.app_id, &path).await
}

/// The bare code as PNG, with its quiet zone.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/qr.png", tag = "Events", operation_id = "getEventQrPng",
    summary = "Get the code as PNG",
    description = "Error correction Q, four modules of quiet zone, at least 1,000 pixels wide.",
    params(("eventId" = String, Path)),
    responses((status = 200, body = Vec<u8>, content_type = "image/png",
               description = "The code."),
              (status = 404, description = "The application has no such event.")),
    security(("api_key" = [], "app_id" = []))
)]
pub(crate) async fn qr_png(
    Authenticated(caller): Authenticated,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, ApiError> {
    Print::CodePng.answer(&request, &service, &caller.app.app_id, &path).await
}
