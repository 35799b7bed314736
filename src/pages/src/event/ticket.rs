//! The page of a registered guest: the event and a ticket for the entrance, with a code that changes. `GET
//! /e/{eventId}/ticket` returns the current one.

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

use super::occasion;
use super::visit::Registered;
use crate::files::{TICKET, TICKET_STYLE};
use crate::language::PageLanguage;
use crate::layout::Layout;
use crate::qr_code::QrCode;
use crate::requester::{Organiser, Requester};
use crate::time_left::date_and_time;

#[derive(Template)]
#[template(path = "ticket.html")]
struct Ticket<'a> {
    layout: Layout,
    name: &'a str,
    organiser: Option<String>,
    occasion: Vec<String>,
    /// Path of the calendar file.
    calendar: Option<String>,
    guests: Vec<Guest>,
    next: Next,
}

#[derive(Debug)]
struct Guest {
    initials: String,
    code: RegistrationCode,
    /// The current code to scan.
    picture: String,
    /// Path of the later codes.
    later: String,
    at: Timestamp,
    at_in_words: String,
}

/// The next step for another guest, if any.
#[derive(Debug, Default)]
pub(crate) struct Next {
    /// Page of a verification that another guest has started on this phone.
    pub(crate) under_way: Option<String>,
    /// Target of the button for another guest.
    pub(crate) another: Option<String>,
}

/// Renders the page, which is at `path`.
pub(crate) async fn ticket(
    service: &Service,
    event: &Event,
    guests: &[Registered],
    language: PageLanguage,
    path: &str,
    next: Next,
) -> HttpResponse {
    let guest = |guest: &Registered| {
        let code = code_of(&event.terms.secret, guest.number);
        Guest {
            initials: guest.initials.clone(),
            code,
            // A ticket without a picture still has its code.
            picture: picture(service, event.id, code).map(|picture| picture.inline()).unwrap_or_default(),
            later: format!("/e/{}/ticket?code={code}&key={}", event.id, service.authority.ticket_key(event.id, code)),
            at: guest.at,
            at_in_words: date_and_time(guest.at, event.terms.time_zone, language.texts),
        }
    };
    let requester = Requester::of_event(service, event).await;
    let layout = Layout { style: TICKET_STYLE.url(), script: TICKET.url(), ..Layout::new(service, language, path) };
    let layout = layout.for_guests(service, event.terms.retention).requested_by(requester);
    let ticket = Ticket {
        layout,
        name: event.terms.name.as_str(),
        organiser: Organiser::of(service, event).await.map(|organiser| organiser.line),
        occasion: occasion(&event.terms, language.texts),
        calendar: event.terms.starts_at.map(|_| format!("/e/{}/event.ics", event.id)),
        guests: guests.iter().map(guest).collect(),
        next,
    };
    page(StatusCode::OK, None, &ticket)
}

fn picture(service: &Service, event: EventId, code: RegistrationCode) -> Result<QrCode, ApiError> {
    QrCode::for_screen(&service.authority.ticket_url(event, code, service.clock.now())).map_err(ApiError::internal)
}

/// Responds with the path of the current code, to the page that has the key of the ticket.
///
/// # Errors
/// 404 without that key; 429 when one address sends too many requests.
pub(crate) async fn current(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let none = || ApiError::from(ServiceError::NotFound("ticket"));
    let event: EventId = path.parse().map_err(|_| none())?;
    let mut query = Query::parse(request.query_string());
    let (code, key) = (query.text("code").unwrap_or_default(), query.text("key").unwrap_or_default());
    query.finish()?;
    let code = code.parse().ok().filter(|code| service.authority.is_ticket_key(event, *code, &key)).ok_or_else(none)?;
    Ok(private(StatusCode::OK).json(json!({ "path": picture(&service, event, code)?.path() })))
}
