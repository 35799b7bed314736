//! `GET /v/{txnId}`: the verify page (`requestUrl`), and the intent for an identity app that
//! follows a scanned `requestUrl` (specification, OVSE rules 1 and 2).

use std::rc::Rc;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, SET_COOKIE};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_domain::limits::PAGE_SIGNATURE_COST;
use sakshi_domain::transaction::Pending;
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::rate_limit::RateLimits;

use super::accept::{JWT, wants_intent};
use super::event::ticket::{Next, ticket};
use super::event::visit::{Registered, registered};
use super::intents::{PageIntent, PageIntents};
use super::language::PageLanguage;
use super::notice::{Retry, busy, ended};
use super::platform::Platform;
use super::state::PageState;
use super::waiting::waiting;

/// Shows how the transaction stands, or hands its intent to the identity app.
///
/// # Errors
/// Why there is no intent, for the identity app.
pub(crate) async fn verify(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    let state = match rates.pages.take(&rates.client_address(&request)) {
        Ok(()) => PageState::of_path(&service, &path).await,
        Err(refusal) => Err(refusal),
    };
    if wants_intent(&request) {
        let state = state?;
        return intent(&service, &state, &request, &rates).await;
    }
    let opened = state.as_ref().ok().and_then(PageState::opened);
    let language = PageLanguage::of(&request, opened.map(|opened| opened.terms.language));
    let page = match state {
        Ok(PageState::Waiting(pending)) => shown_waiting(&service, &pending, language, &request, &rates).await,
        Ok(other) => match shown_registered(&service, &other, language, request.path()).await {
            Some(ticket) => Ok(ticket),
            None => Ok(ended(&service, &other, language, request.path()).await),
        },
        Err(error) => Err(error),
    };
    Ok(page.unwrap_or_else(|error| busy(&service, &error, language, request.path(), Retry::Automatic)))
}

/// The page of a transaction that waits.
async fn shown_waiting(
    service: &Service,
    pending: &Pending,
    language: PageLanguage,
    request: &HttpRequest,
    rates: &RateLimits,
) -> Result<HttpResponse, ApiError> {
    let intent = shown(service, pending, request, rates).await?;
    waiting(service, pending, &intent, language, Platform::of(request), asks_for_help(request)).await
}

/// The intent that this worker's pages show at the moment, or a fresh one, which costs the address more than a page.
async fn shown(service: &Service, pending: &Pending, request: &HttpRequest, rates: &RateLimits) -> Result<Rc<PageIntent>, ApiError> {
    let (intents, now) = (PageIntents::of(request), service.clock.now());
    if let Some(intent) = intents.current(pending.id, now) {
        return Ok(intent);
    }
    rates.pages.take_extra(&rates.client_address(request), PAGE_SIGNATURE_COST)?;
    intents.make(service, pending, now).await
}

/// The page of a guest who was registered. It leaves a cookie for the event's page, which knows the guest then.
async fn shown_registered(service: &Service, state: &PageState, language: PageLanguage, path: &str) -> Option<HttpResponse> {
    let PageState::Verified(opened, at) = state else { return None };
    let event = service.events.get(opened.event?).await.ok()??;
    let guest = Registered { txn: opened.id, at: *at };
    let mut response = ticket(service, &event, &[guest], language, path, Next::default()).await;
    response.headers_mut().append(SET_COOKIE, HeaderValue::from_str(&registered(service, &event, guest)).ok()?);
    Some(response)
}

/// The same for the identity app. Who gets none costs no signature.
async fn intent(service: &Service, state: &PageState, request: &HttpRequest, rates: &RateLimits) -> Result<HttpResponse, ApiError> {
    match state {
        PageState::Waiting(pending) => Ok(answer(shown(service, pending, request, rates).await?.jwt.clone())),
        PageState::Verified(..) | PageState::NotVerified(..) => Err(ApiError::Service(ServiceError::AlreadyCompleted)),
        PageState::Expired(_) => Err(ApiError::Service(ServiceError::TransactionExpired)),
        PageState::Unknown => Err(ApiError::Service(ServiceError::TransactionNotFound)),
    }
}

/// Answers with a freshly signed intent.
///
/// # Errors
/// An intent that cannot be signed.
pub(super) async fn intent_response(service: &Service, pending: &Pending) -> Result<HttpResponse, ApiError> {
    let intent = service.authority.intent(pending, service.clock.now()).await?;
    Ok(answer(intent.jwt))
}

fn answer(jwt: String) -> HttpResponse {
    private(StatusCode::OK).content_type(JWT).body(jwt)
}

fn asks_for_help(request: &HttpRequest) -> bool {
    request.query_string().split('&').any(|pair| pair == "help=1")
}
