//! The page of a registered guest: the event and a ticket for the entrance, with a code that changes.
//! `GET /e/{eventId}/ticket` returns the current code.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::event::{Event, RegistrationCode};
use sakshi_domain::ids::EventId;
use sakshi_domain::time::Timestamp;
use sakshi_service::registration_codes::code_of;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::html::{page, private};
use sakshi_web::query::Query;
use sakshi_web::rate_limit::RateLimits;
use serde_json::json;

use super::start_and_place;
use super::visit::RegisteredGuest;
use crate::files::{TICKET_SCRIPT, TICKET_STYLE};
use crate::language::PageLanguage;
use crate::layout::Layout;
use crate::qr_code::QrCode;
use crate::requester::{Organiser, Requester};
use crate::time_left::date_and_time;

/// The page with the tickets of the guests who registered in this browser.
#[derive(Template)]
#[template(path = "ticket.html")]
struct TicketPage<'a> {
    layout: Layout,
    name: &'a str,
    organiser: Option<String>,
    occasion: Vec<String>,
    /// Path of the calendar file.
    calendar: Option<String>,
    guests: Vec<Guest>,
    next: NextStep,
}

/// A registered guest with the ticket.
#[derive(Debug)]
struct Guest {
    initials: String,
    code: RegistrationCode,
    /// Current code to scan, as inline SVG.
    code_svg: String,
    /// Path that returns the current code at any time.
    current_code_path: String,
    /// Time of the verification.
    at: Timestamp,
    at_in_words: String,
}

/// The next step for another guest, if any.
#[derive(Debug, Default)]
pub(crate) struct NextStep {
    /// Page of a verification that another guest has started on this phone.
    pub(crate) under_way: Option<String>,
    /// Target of the button for another guest.
    pub(crate) another: Option<String>,
}

/// Renders the tickets of these guests, for the page at `path`.
pub(crate) async fn render_ticket(
    service: &Service,
    event: &Event,
    guests: &[RegisteredGuest],
    language: PageLanguage,
    path: &str,
    next: NextStep,
) -> HttpResponse {
    let guest = |guest: &RegisteredGuest| {
        let code = code_of(&event.terms.secret, guest.number);
        Guest {
            initials: guest.initials.clone(),
            code,
            // A ticket without a QR code still has its code in letters.
            code_svg: draw_code(service, event.id, code).map(|code| code.inline()).unwrap_or_default(),
            current_code_path: format!(
                "/e/{}/ticket?code={code}&key={}",
                event.id,
                service.authority.ticket_key(event.id, code)
            ),
            at: guest.at,
            at_in_words: date_and_time(guest.at, event.terms.time_zone, language.texts),
        }
    };
    let requester = Requester::load_for_event(service, event).await;
    let layout =
        Layout { style: TICKET_STYLE.url(), script: TICKET_SCRIPT.url(), ..Layout::new(service, language, path) };
    let layout = layout.for_guests(service, event.terms.retention).requested_by(requester);
    let ticket = TicketPage {
        layout,
        name: event.terms.name.as_str(),
        organiser: Organiser::load(service, event).await.map(|organiser| organiser.line),
        occasion: start_and_place(&event.terms, language.texts),
        calendar: event.terms.starts_at.map(|_| format!("/e/{}/event.ics", event.id)),
        guests: guests.iter().map(guest).collect(),
        next,
    };
    page(StatusCode::OK, None, &ticket)
}

/// Draws the code that a door scans now.
fn draw_code(service: &Service, event: EventId, code: RegistrationCode) -> Result<QrCode, ApiError> {
    QrCode::for_screen(&service.authority.ticket_url(event, code, service.clock.now())).map_err(ApiError::internal)
}

/// Responds with the path data of the current code to a page with the ticket's key.
///
/// # Errors
/// 404 without the key; 429 when one address sends too many requests.
pub(crate) async fn current_code(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let not_found = || ApiError::from(ServiceError::NotFound("ticket"));
    let event: EventId = path.parse().map_err(|_| not_found())?;
    let mut query = Query::parse(request.query_string());
    let (code, key) = (query.text("code").unwrap_or_default(), query.text("key").unwrap_or_default());
    query.finish()?;
    let code =
        code.parse().ok().filter(|code| service.authority.is_ticket_key(event, *code, &key)).ok_or_else(not_found)?;
    Ok(private(StatusCode::OK).json(json!({ "path": draw_code(&service, event, code)?.path() })))
}
