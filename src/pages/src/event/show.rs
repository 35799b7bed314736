//! `GET /e/{eventId}`: the event's claims and the start button, at no cost. The identity app, which has asked its user
//! already, gets the intent of a new verification.

use actix_web::http::header::{HeaderValue, REFERRER_POLICY, SET_COOKIE};
use actix_web::http::{Method, StatusCode};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::event::{Event, EventRefusal};
use sakshi_domain::time::Timestamp;
use sakshi_service::entrance::Admission;
use sakshi_service::transactions::check_credits;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::html::page;
use sakshi_web::rate_limit::RateLimits;
use sakshi_web::same_site;

use super::refused::Refusal;
use super::start::{self, ANOTHER_GUEST};
use super::ticket::{NextStep, render_ticket};
use super::{find_event, start_and_place, visit};
use crate::accept::{may_be_cross_site, wants_intent};
use crate::claim_groups::{ClaimGroup, group_claims};
use crate::files::PICTURE_STYLE;
use crate::language::PageLanguage;
use crate::layout::Layout;
use crate::requester::Requester;
use crate::time_left::date_and_time;
use crate::verify::intent_response;

/// The page of an event with the start button.
#[derive(Template)]
#[template(path = "event.html")]
struct Page<'a> {
    layout: Layout,
    event: &'a Event,
    groups: Vec<ClaimGroup>,
    occasion: Vec<String>,
    until: String,
    expires_at: Timestamp,
    /// Page of a verification that this browser has already started.
    under_way: Option<String>,
    /// Target of the button.
    start: String,
}

impl Page<'_> {
    fn picture(&self) -> Option<String> {
        self.layout.requester.as_ref()?.picture()
    }

    fn picture_style() -> String {
        PICTURE_STYLE.url()
    }
}

/// Shows the event, or starts a verification for the identity app.
///
/// # Errors
/// The refusal itself, for the identity app and for a program that asks for JSON.
pub(crate) async fn show(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    // Other clients get the page with the start button.
    if wants_intent(&request) && request.method() == Method::GET && !may_be_cross_site(&request) {
        return respond_with_intent(&path, &request, &service, &rates).await;
    }
    match render_page(&path, &request, &service, &rates).await {
        Ok(page) => Ok(page),
        Err(refusal) => refusal.respond(&request, &service, &path).await,
    }
}

async fn render_page(
    path: &str,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<HttpResponse, Refusal> {
    rates.pages.take(&rates.client_address(request))?;
    let event = find_event(service, path).await?;
    let visits =
        visit::load_visits(service, request, &event).await.map_err(|error| Refusal::for_event(&event, error))?;
    let now = service.clock.now();
    let refusal = EventRefusal::from_status(event.status(now));
    let language = PageLanguage::from_request(request, Some(event.terms.language));
    let path = format!("/e/{}", event.id);
    let admission = service.authority.find_admission(&event, request.query_string(), now);
    let page_address = admission.as_ref().map_or_else(|| path.clone(), |admission| admission.add_to(&path));
    let under_way = visits.under_way.map(|pending| language.localise(&format!("/v/{}", pending.id)));
    if !visits.guests.is_empty() {
        let is_open = refusal.is_none();
        let another =
            admission.filter(|_| is_open).map(|admission| start_address(&admission, &path, Some(ANOTHER_GUEST)));
        let next = NextStep {
            under_way: under_way.filter(|_| is_open),
            another: another.map(|address| language.localise(&address)),
        };
        let page = render_ticket(service, &event, &visits.guests, language, &page_address, next).await;
        return Ok(with_start_headers(page, &visits.cookies));
    }
    if let Some(refusal) = refusal {
        return Err(Refusal::for_event(&event, refusal.into()));
    }
    if under_way.is_none() {
        check_start(&event, admission.as_ref()).map_err(|refusal| Refusal::for_event(&event, refusal.into()))?;
    }
    let PageLanguage { texts, .. } = language;
    // Without the permission to start, the button continues the verification that this browser has started.
    let start = admission
        .as_ref()
        .map_or_else(String::new, |admission| language.localise(&start_address(admission, &path, None)));
    let template = Page {
        layout: Layout::new(service, language, &page_address)
            .for_guests(service, event.terms.retention)
            .requested_by(Requester::load_for_event(service, &event).await),
        groups: group_claims(&event.terms.claims, texts),
        occasion: start_and_place(&event.terms, texts),
        until: date_and_time(event.terms.expires_at, event.terms.time_zone, texts),
        expires_at: event.terms.expires_at,
        under_way,
        start,
        event: &event,
    };
    Ok(with_start_headers(page(StatusCode::OK, None, &template), &visits.cookies))
}

/// Returns the target of the start button: the address of the start, with the part of the query that admits the guest.
fn start_address(admission: &Admission, path: &str, extra_query: Option<&str>) -> String {
    let address = admission.add_to(&format!("{path}/start"));
    extra_query.map_or_else(
        || address.clone(),
        |query| format!("{address}{}{query}", if address.contains('?') { '&' } else { '?' }),
    )
}

/// Refuses a guest whose start would fail, so that the page has no button that fails. The start itself decides.
fn check_start(event: &Event, admission: Option<&Admission>) -> Result<(), ServiceError> {
    admission.ok_or(ServiceError::CodeExpired)?;
    check_credits(event)
}

/// Adds cookies and the referrer policy to a page with a start button.
fn with_start_headers(mut response: HttpResponse, cookies: &[String]) -> HttpResponse {
    for cookie in cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    // Without a referrer, a browser sends the origin of the button's request as "null".
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

/// Opens a transaction for the identity app, and responds with its intent.
async fn respond_with_intent(
    path: &str,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(request))?;
    same_site::refuse_cross_site(request, service)?;
    let event = find_event(service, path).await?;
    start::refuse_closed(service, &event)?;
    let (_, jwt) = start::open_transaction(service, rates, request, &event).await?;
    Ok(intent_response(jwt))
}
