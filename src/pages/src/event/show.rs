//! `GET /e/{eventId}`: the event's claims and the start button, at no cost. For the identity app, which has asked its
//! user already, it is the intent of a verification started now.

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
use super::start::{self, ANOTHER};
use super::ticket::{Next, ticket};
use super::{find_event, occasion, visit};
use crate::accept::{may_be_of_another_site, wants_intent};
use crate::claim_groups::{ClaimGroup, grouped};
use crate::files::PICTURE_STYLE;
use crate::language::PageLanguage;
use crate::layout::Layout;
use crate::requester::Requester;
use crate::time_left::date_and_time;
use crate::verify::intent_response;

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
/// The refusal, for the identity app and for programs that read the error table.
pub(crate) async fn show(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    // Others get the page, and press the button.
    if wants_intent(&request) && request.method() == Method::GET && !may_be_of_another_site(&request) {
        return intent(&path, &request, &service, &rates).await;
    }
    match shown(&path, &request, &service, &rates).await {
        Ok(page) => Ok(page),
        Err(refusal) => refusal.answer(&request, &service, &path).await,
    }
}

async fn shown(
    path: &str,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<HttpResponse, Refusal> {
    rates.pages.take(&rates.client_address(request))?;
    let event = find_event(service, path).await?;
    let visits = visit::recall(service, request, &event).await.map_err(|error| Refusal::at(&event, error))?;
    let now = service.clock.now();
    let closed = EventRefusal::of(event.status(now));
    let language = PageLanguage::of(request, Some(event.terms.language));
    let path = format!("/e/{}", event.id);
    let admission = service.authority.admits(&event, request.query_string(), now);
    let under_way = visits.under_way.map(|pending| language.at(&format!("/v/{}", pending.id)));
    if !visits.registered.is_empty() {
        let open = closed.is_none();
        let another = admission.filter(|_| open).map(|admission| start_address(&admission, &path, Some(ANOTHER)));
        let next =
            Next { under_way: under_way.filter(|_| open), another: another.map(|address| language.at(&address)) };
        let shown = ticket(service, &event, &visits.registered, language, &path, next).await;
        return Ok(with_start(shown, &visits.cookies));
    }
    if let Some(refusal) = closed {
        return Err(Refusal::at(&event, refusal.into()));
    }
    if under_way.is_none() {
        may_start(&event, admission.as_ref()).map_err(|refusal| Refusal::at(&event, refusal.into()))?;
    }
    let PageLanguage { texts, .. } = language;
    let (here, start) = match &admission {
        Some(admission) => (admission.address(&path), language.at(&start_address(admission, &path, None))),
        // Continues the verification that this browser has started.
        None => (path.clone(), String::new()),
    };
    let template = Page {
        layout: Layout::new(service, language, &here)
            .for_guests(service, event.terms.retention)
            .requested_by(Requester::of_event(service, &event).await),
        groups: grouped(&event.terms.claims, texts),
        occasion: occasion(&event.terms, texts),
        until: date_and_time(event.terms.expires_at, event.terms.time_zone, texts),
        expires_at: event.terms.expires_at,
        under_way,
        start,
        event: &event,
    };
    Ok(with_start(page(StatusCode::OK, None, &template), &visits.cookies))
}

/// Returns the target of the button.
fn start_address(admission: &Admission, path: &str, further: Option<&str>) -> String {
    let address = admission.address(&format!("{path}/start"));
    further.map_or_else(
        || address.clone(),
        |further| format!("{address}{}{further}", if address.contains('?') { '&' } else { '?' }),
    )
}

/// Refuses a guest who could not start. Only the start itself decides; this avoids a button that would fail.
fn may_start(event: &Event, admission: Option<&Admission>) -> Result<(), ServiceError> {
    admission.ok_or(ServiceError::CodeExpired)?;
    check_credits(event)
}

/// Adds these cookies to a page with a start button.
fn with_start(mut response: HttpResponse, cookies: &[String]) -> HttpResponse {
    for cookie in cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    // Without a referrer, a browser sends the origin of the button's request as "null".
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

async fn intent(
    path: &str,
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(request))?;
    same_site::refuse_cross_site(request, service)?;
    let event = find_event(service, path).await?;
    let (_, jwt) = start::open(service, rates, request, &event).await?;
    Ok(intent_response(jwt))
}
