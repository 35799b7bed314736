//! `GET /v/{txnId}`: the verify page (`requestUrl`), and the intent for an identity app that follows a scanned
//! `requestUrl` (specification, OVSE rules 1 and 2).

use std::rc::Rc;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, SET_COOKIE};
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::future::join;
use sakshi_actors::View;
use sakshi_domain::ids::TxnId;
use sakshi_domain::limits::PAGE_SIGNATURE_COST;
use sakshi_domain::transaction::Pending;
use sakshi_service::transactions::{load_stored_intent, note_page};
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::rate_limit::RateLimits;

use super::accept::{JWT, wants_intent};
use super::event::ticket::{NextStep, render_ticket};
use super::event::visit::{RegisteredGuest, registered_cookie};
use super::intents::{PageIntent, PageIntents};
use super::language::PageLanguage;
use super::notice::{Retry, render_busy, render_ended};
use super::platform::Platform;
use super::state::PageState;
use super::waiting::render_waiting;

/// Shows the state of the transaction, or returns its intent to the identity app.
///
/// # Errors
/// For the identity app, the reason why the transaction has no intent.
pub(crate) async fn verify(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    let id = path.parse().ok();
    let mut source = id
        .and_then(|id| PageIntents::of_worker(&request).find_reusable(id, service.clock.now()))
        .map_or(IntentSource::Unknown, IntentSource::Cached);
    let is_cached = matches!(source, IntentSource::Cached(_));
    let state = match rates.pages.take(&rates.client_address(&request)) {
        Ok(()) => {
            let (state, stored_source) = join(PageState::load(&service, id), source.or_stored(&service, id)).await;
            source = stored_source;
            state
        }
        Err(refusal) => Err(refusal),
    };
    // A page with a cached intent has been noted before.
    if let (Ok(PageState::Waiting(pending)), false) = (&state, is_cached) {
        note_page(&service, pending.id);
    }
    let intents = IntentLookup { service: &service, source, request: &request, rates: &rates };
    if wants_intent(&request) {
        return respond_with_intent(&state?, intents).await;
    }
    let opened = state.as_ref().ok().and_then(PageState::opened);
    let language = PageLanguage::from_request(&request, opened.map(|opened| opened.terms.language));
    let page = match state {
        Ok(PageState::Waiting(pending)) => render_pending(&pending, language, intents).await,
        Ok(other) => match render_registered(&service, &other, language, request.path()).await {
            Some(ticket) => Ok(ticket),
            None => Ok(render_ended(&service, &other, language, request.path()).await),
        },
        Err(error) => Err(error),
    };
    Ok(page.unwrap_or_else(|error| render_busy(&service, &error, language, request.path(), Retry::Automatic)))
}

/// Renders the page of a pending transaction.
async fn render_pending(
    pending: &Pending,
    language: PageLanguage,
    intents: IntentLookup<'_>,
) -> Result<HttpResponse, ApiError> {
    let (service, request) = (intents.service, intents.request);
    let intent = intents.find_or_sign(pending).await?;
    render_waiting(service, pending, &intent, language, Platform::from_request(request), asks_for_help(request)).await
}

/// The intent of a transaction, as far as it is known while the transaction is still being loaded.
enum IntentSource {
    /// The intent in this worker's cache.
    Cached(Rc<PageIntent>),
    /// Parts of the intent from the store.
    Stored(Vec<u8>),
    /// Neither the cache nor the store has the intent.
    Unknown,
}

impl IntentSource {
    /// Looks in the store unless the intent is cached.
    async fn or_stored(self, service: &Service, id: Option<TxnId>) -> Self {
        match (self, id) {
            (Self::Unknown, Some(id)) => load_stored_intent(service, id).await.map_or(Self::Unknown, Self::Stored),
            (source, _) => source,
        }
    }
}

/// The lookup of a transaction's intent for a request.
struct IntentLookup<'a> {
    service: &'a Service,
    source: IntentSource,
    request: &'a HttpRequest,
    rates: &'a RateLimits,
}

impl IntentLookup<'_> {
    /// Returns the cached or stored intent, or signs a new one. A signature counts more towards the page limit of the
    /// caller's address.
    async fn find_or_sign(self, pending: &Pending) -> Result<Rc<PageIntent>, ApiError> {
        let Self { service, source, request, rates } = self;
        let now = service.clock.now();
        let known_jwt = match source {
            IntentSource::Cached(intent) => return Ok(intent),
            IntentSource::Stored(parts) => service.authority.rebuild_intent(pending, &parts, now),
            IntentSource::Unknown => None,
        };
        let jwt = match known_jwt {
            Some(jwt) => jwt,
            None => {
                rates.pages.take_extra(&rates.client_address(request), PAGE_SIGNATURE_COST)?;
                service.authority.sign_intent(pending, now).await?.jwt
            }
        };
        PageIntents::of_worker(request).cache(pending.id, jwt, now)
    }
}

/// Renders the page of a registered guest, and sets the cookie by which the event's page recognises the guest.
async fn render_registered(
    service: &Service,
    state: &PageState,
    language: PageLanguage,
    path: &str,
) -> Option<HttpResponse> {
    let PageState::Verified(opened, _) = state else { return None };
    let event = service.events.get_recent(opened.event?).await.ok()??;
    let View::Completed(record) = service.transactions.get(opened.id).await.ok()? else { return None };
    let guest = [RegisteredGuest::from_record(service, *record)?];
    let mut response = render_ticket(service, &event, &guest, language, path, NextStep::default()).await;
    response
        .headers_mut()
        .append(SET_COOKIE, HeaderValue::from_str(&registered_cookie(service, &event, &guest[0])).ok()?);
    Some(response)
}

/// Responds to the identity app with the intent. A refusal costs no signature.
async fn respond_with_intent(state: &PageState, intents: IntentLookup<'_>) -> Result<HttpResponse, ApiError> {
    match state {
        PageState::Waiting(pending) => Ok(intent_response(intents.find_or_sign(pending).await?.jwt.clone())),
        PageState::Verified(..) | PageState::NotVerified(..) => Err(ApiError::Service(ServiceError::AlreadyCompleted)),
        PageState::Expired(_) => Err(ApiError::Service(ServiceError::TransactionExpired)),
        PageState::Unknown => Err(ApiError::Service(ServiceError::TransactionNotFound)),
    }
}

/// Builds a response with an intent.
pub(super) fn intent_response(jwt: String) -> HttpResponse {
    private(StatusCode::OK).content_type(JWT).body(jwt)
}

/// Returns true if the page is to unfold its help, as after a link to the identity app has failed.
fn asks_for_help(request: &HttpRequest) -> bool {
    request.query_string().split('&').any(|pair| pair == "help=1")
}
