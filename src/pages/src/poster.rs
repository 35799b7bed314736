//! An event's code in print: a poster as a page and as SVG, A4 or A3, and the bare code as SVG and PNG.

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
use sakshi_web::html::{page as html_page, private};
use sakshi_web::query::Query;

use super::claim_groups::group_claims;
use super::event::start_and_place;
use super::files::{POSTER_A3_STYLE, POSTER_STYLE};
use super::poster_text::{Block, Body, Heading, is_short};
use super::qr_code::QrCode;
use super::requester::Organiser;
use super::text::Texts;
use super::time_left::date_and_time;

// Sizes of letters on the drawing, in millimetres.
const ORGANISER_SIZE: f64 = 5.5;
const PURPOSE_SIZE: f64 = 4.6;
const OCCASION_SIZE: f64 = 4.6;
const CALL_SIZE: f64 = 9.0;
const APP_SIZE: f64 = 5.0;
const CLAIMS_SIZE: f64 = 4.2;
const END_SIZE: f64 = 5.0;
const ADDRESS_SIZE: f64 = 3.8;
// Most lines of a text on the drawing.
const ONE_LINE: usize = 1;
const TWO_LINES: usize = 2;
const SVG: &str = "image/svg+xml";

/// The paper that a poster fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, utoipa::ToSchema)]
enum PaperSize {
    A4,
    /// Twice the area of A4.
    A3,
}

impl PaperSize {
    /// Returns width and height.
    const fn millimetres(self) -> (u16, u16) {
        match self {
            Self::A4 => (210, 297),
            Self::A3 => (297, 420),
        }
    }
}

/// The formats in which an event's code is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintFormat {
    /// The poster as a page that prints on one sheet.
    Page,
    /// The poster as one drawing, for layout programs.
    Drawing,
    /// The bare code as SVG, with its quiet zone.
    CodeSvg,
    /// The bare code as PNG, with its quiet zone.
    CodePng,
}

impl PrintFormat {
    /// Responds with an event of an app in this format.
    ///
    /// # Errors
    /// 404 unless the app has such an event.
    pub async fn respond(
        self,
        request: &HttpRequest,
        service: &Service,
        app: &AppId,
        event: &str,
    ) -> Result<HttpResponse, ApiError> {
        let mut query = Query::parse(request.query_string());
        // The bare code has no paper size.
        let is_sheet = matches!(self, Self::Page | Self::Drawing);
        let size =
            if is_sheet { query.one_of("size", [("A4", PaperSize::A4), ("A3", PaperSize::A3)]) } else { PaperSize::A4 };
        query.finish()?;
        let event = own_event(service, app, event).await?;
        let address = service.authority.event_url(event.id);
        let code = QrCode::for_print(&address).map_err(ApiError::internal)?;
        let file = |content_type, body: Vec<u8>| Ok(private(StatusCode::OK).content_type(content_type).body(body));
        match self {
            Self::Page => Ok(render_page(
                &event,
                &PosterFacts::load(service, &event).await,
                &code,
                address,
                &service.authority.public_base,
                size,
            )),
            Self::Drawing => file(
                SVG,
                render_drawing(&event, &PosterFacts::load(service, &event).await, &code, &address, size)?.into(),
            ),
            Self::CodeSvg => file(SVG, code.svg_file().into()),
            Self::CodePng => file("image/png", code.png().map_err(ApiError::internal)?),
        }
    }
}

/// The poster as a page.
#[derive(Template)]
#[template(path = "poster.html")]
struct Page<'a> {
    texts: &'static Texts,
    name: &'a str,
    facts: &'a PosterFacts,
    /// Class for the length of the name: the longer the name, the smaller its letters.
    length: &'static str,
    style: String,
    code: String,
    until: String,
    expires_at: Timestamp,
    address: String,
}

/// The poster as a drawing.
#[derive(Template)]
#[template(path = "poster.svg")]
struct Sheet<'a> {
    /// Size of the paper in millimetres; the drawing is laid out as on A4.
    paper: (u16, u16),
    texts: &'static Texts,
    name: &'a str,
    logo: Option<&'a str>,
    heading: Heading,
    body: Body,
    /// Millimetres per module of the code.
    code_scale: String,
    code_path: String,
}

/// Renders the poster as a page. `base` is the public address of this installation.
fn render_page(
    event: &Event,
    facts: &PosterFacts,
    code: &QrCode,
    address: String,
    base: &str,
    size: PaperSize,
) -> HttpResponse {
    let texts = Texts::for_language(event.terms.language);
    let name = event.terms.name.as_str();
    let poster = Page {
        texts,
        name,
        facts,
        length: match name.chars().count() {
            0..=40 => "short",
            41..=110 => "long",
            _ => "longest",
        },
        // A full address, so that a saved page finds the style.
        style: format!("{base}{}", if size == PaperSize::A3 { POSTER_A3_STYLE.url() } else { POSTER_STYLE.url() }),
        code: code.inline(),
        until: date_and_time(event.terms.expires_at, event.terms.time_zone, texts),
        expires_at: event.terms.expires_at,
        address,
    };
    let mut response = html_page(StatusCode::OK, None, &poster);
    let policy = format!(
        "default-src 'none'; style-src 'self' {base}; img-src data:; base-uri 'none'; form-action 'none'; \
            frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The facts on a poster. The logo is a `data:` URL, because a saved page loads no images.
#[derive(Debug, Default)]
struct PosterFacts {
    organiser: Option<String>,
    purpose: Option<String>,
    occasion: Vec<String>,
    app: Option<String>,
    claims: Vec<&'static str>,
    logo: Option<String>,
}

impl PosterFacts {
    async fn load(service: &Service, event: &Event) -> Self {
        let organiser = Organiser::load(service, event).await;
        let logo = match organiser.as_ref().and_then(|organiser| organiser.logo) {
            Some(logo) => Names::load_logo(service, logo).await.ok().flatten(),
            None => None,
        };
        let texts = Texts::for_language(event.terms.language);
        Self {
            organiser: organiser.map(|organiser| organiser.line),
            purpose: event.terms.purpose.as_ref().map(|purpose| purpose.as_str().to_owned()),
            occasion: start_and_place(&event.terms, texts),
            app: service.pages.app_name_in(texts.tag).map(str::to_owned),
            claims: claim_labels(event, texts),
            logo: logo.map(|logo| format!("data:{};base64,{}", logo.content_type, STANDARD.encode(&logo.bytes))),
        }
    }
}

/// Returns the names of the requested claims, or the headings of their groups if the names do not fit.
fn claim_labels(event: &Event, texts: &Texts) -> Vec<&'static str> {
    let claims: Vec<_> = event.terms.claims.iter().map(texts.claim).collect();
    if is_short(&format!("{}: {}", texts.claims_heading, claims.join(" · ")), CLAIMS_SIZE) {
        return claims;
    }
    group_claims(&event.terms.claims, texts).into_iter().map(|group| group.heading).collect()
}

/// Renders the poster as a drawing.
fn render_drawing(
    event: &Event,
    facts: &PosterFacts,
    code: &QrCode,
    address: &str,
    size: PaperSize,
) -> Result<String, ApiError> {
    let texts = Texts::for_language(event.terms.language);
    let name = event.terms.name.as_str();
    let body = Body::new(
        texts,
        facts.logo.is_some(),
        blocks_above_code(facts, texts),
        blocks_below_steps(event, facts, address, texts),
    );
    let sheet = Sheet {
        paper: size.millimetres(),
        texts,
        name,
        logo: facts.logo.as_deref(),
        heading: Heading::new(name, texts, facts.logo.is_some()),
        code_scale: format!("{:.5}", body.code.side / f64::from(u16::try_from(code.side()).unwrap_or(u16::MAX))),
        code_path: code.path(),
        body,
    };
    sheet.render().map_err(ApiError::internal)
}

/// Returns the texts between the name and the code.
fn blocks_above_code(facts: &PosterFacts, texts: &Texts) -> Vec<Block> {
    let organiser = facts.organiser.iter().map(|text| Block::new(text, ORGANISER_SIZE, ONE_LINE).with_own_direction());
    let purpose = facts.purpose.iter().map(|text| Block::new(text, PURPOSE_SIZE, TWO_LINES).with_own_direction());
    let parts: Vec<_> = facts.occasion.iter().map(|part| isolate(part)).collect();
    let occasion = (!parts.is_empty()).then(|| Block::new(&parts.join(" · "), OCCASION_SIZE, ONE_LINE));
    let call = Block::new(texts.event.scan, CALL_SIZE, ONE_LINE).bold();
    organiser.chain(purpose).chain(occasion).chain([call]).collect()
}

/// Returns the texts below the steps.
fn blocks_below_steps(event: &Event, facts: &PosterFacts, address: &str, texts: &Texts) -> Vec<Block> {
    let app_line = |app: &String| format!("{}: {}", texts.identity_app, isolate(app));
    let app = facts.app.iter().map(|app| Block::new(&app_line(app), APP_SIZE, ONE_LINE).bold());
    let claims = Block::new(&format!("{}: {}", texts.claims_heading, facts.claims.join(" · ")), CLAIMS_SIZE, TWO_LINES);
    let until = date_and_time(event.terms.expires_at, event.terms.time_zone, texts);
    let until = format!("{}{}{}", texts.event.open_until.before, isolate(&until), texts.event.open_until.after);
    let address = Block::new(address, ADDRESS_SIZE, ONE_LINE).with_own_direction();
    app.chain([claims, Block::new(&until, END_SIZE, ONE_LINE), address]).collect()
}

/// Isolates a text, which gives it its own direction (Unicode Standard Annex 9, first strong isolate).
fn isolate(text: &str) -> String {
    format!("\u{2068}{text}\u{2069}")
}

/// Responds with the poster as a page that prints on one sheet.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/poster", tag = "Events", operation_id = "getEventPoster",
    summary = "Get the poster",
    description = "A page to print, with the QR code, three steps and the end of the event.",
    params(("eventId" = String, Path), ("size" = inline(Option<PaperSize>), Query, description = "`A4` (default) or \
        `A3`.")),
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
    PrintFormat::Page.respond(&request, &service, &caller.app.app_id, &path).await
}

/// Responds with the poster as one drawing, for layout programs.
///
/// # Errors
/// 404 unless the app has such an event.
#[utoipa::path(
    get, path = "/api/v1/nationalid-ovse/events/{eventId}/poster.svg", tag = "Events",
    operation_id = "getEventPosterSvg",
    summary = "Get the poster as SVG",
    description = "One drawing, 210 by 297 mm or 297 by 420 mm, for layout programs.",
    params(("eventId" = String, Path), ("size" = inline(Option<PaperSize>), Query, description = "`A4` (default) or \
        `A3`.")),
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
    PrintFormat::Drawing.respond(&request, &service, &caller.app.app_id, &path).await
}

/// Responds with the bare code as SVG, with its quiet zone.
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
    PrintFormat::CodeSvg.respond(&request, &service, &caller.app.app_id, &path).await
}

/// Responds with the bare code as PNG, with its quiet zone.
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
    PrintFormat::CodePng.respond(&request, &service, &caller.app.app_id, &path).await
}
