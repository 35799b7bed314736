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
use super::event::ticket::{Next, ticket};
use super::event::visit::{Registered, registered};
use super::intents::{PageIntent, PageIntents};
use super::language::PageLanguage;
use super::notice::{Retry, busy, ended};
use super::platform::Platform;
use super::state::PageState;
use super::waiting::waiting;

/// Shows the state of the transaction, or returns its intent to the identity app.
///
/// # Errors
/// The reason for a missing intent, for the identity app.
pub(crate) async fn verify(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    let id = path.parse().ok();
    let mut known = id
        .and_then(|id| PageIntents::of(&request).current(id, service.clock.now()))
        .map_or(IntentSource::Nothing, IntentSource::Shown);
    let is_shown = matches!(known, IntentSource::Shown(_));
    let state = match rates.pages.take(&rates.client_address(&request)) {
        Ok(()) => {
            let (state, kept) = join(PageState::of(&service, id), known.or_kept(&service, id)).await;
            known = kept;
            state
        }
        Err(refusal) => Err(refusal),
    };
    if let (Ok(PageState::Waiting(pending)), false) = (&state, is_shown) {
        note_page(&service, pending.id);
    }
    let intents = Intents { service: &service, known, request: &request, rates: &rates };
    if wants_intent(&request) {
        return intent(&state?, intents).await;
    }
    let opened = state.as_ref().ok().and_then(PageState::opened);
    let language = PageLanguage::of(&request, opened.map(|opened| opened.terms.language));
    let page = match state {
        Ok(PageState::Waiting(pending)) => shown_waiting(&pending, language, intents).await,
        Ok(other) => match shown_registered(&service, &other, language, request.path()).await {
            Some(ticket) => Ok(ticket),
            None => Ok(ended(&service, &other, language, request.path()).await),
        },
        Err(error) => Err(error),
    };
    Ok(page.unwrap_or_else(|error| busy(&service, &error, language, request.path(), Retry::Automatic)))
}

/// Renders the page of a pending transaction.
async fn shown_waiting(
    pending: &Pending,
    language: PageLanguage,
    intents: Intents<'_>,
) -> Result<HttpResponse, ApiError> {
    let (service, request) = (intents.service, intents.request);
    let intent = intents.of(pending).await?;
    waiting(service, pending, &intent, language, Platform::of(request), asks_for_help(request)).await
}

/// The intent of a transaction, if it is available before the transaction is loaded.
enum IntentSource {
    /// Currently shown by this worker's pages.
    Shown(Rc<PageIntent>),
    /// Parts of the intent from the store.
    Kept(Vec<u8>),
    Nothing,
}

impl IntentSource {
    async fn or_kept(self, service: &Service, id: Option<TxnId>) -> Self {
        match (self, id) {
            (Self::Nothing, Some(id)) => load_stored_intent(service, id).await.map_or(Self::Nothing, Self::Kept),
            (known, _) => known,
        }
    }
}

/// The lookup of a transaction's intent for a request.
struct Intents<'a> {
    service: &'a Service,
    known: IntentSource,
    request: &'a HttpRequest,
    rates: &'a RateLimits,
}

impl Intents<'_> {
    /// Returns the shown or stored intent, or a fresh one, which costs the address more than a page.
    async fn of(self, pending: &Pending) -> Result<Rc<PageIntent>, ApiError> {
        let Self { service, known, request, rates } = self;
        let now = service.clock.now();
        let again = match known {
            IntentSource::Shown(intent) => return Ok(intent),
            IntentSource::Kept(kept) => service.authority.rebuild_intent(pending, &kept, now),
            IntentSource::Nothing => None,
        };
        let jwt = match again {
            Some(jwt) => jwt,
            None => {
                rates.pages.take_extra(&rates.client_address(request), PAGE_SIGNATURE_COST)?;
                service.authority.sign_intent(pending, now).await?.jwt
            }
        };
        PageIntents::of(request).keep(pending.id, jwt, now)
    }
}

/// Renders the page of a registered guest. It sets a cookie by which the event's page recognises the guest.
async fn shown_registered(
    service: &Service,
    state: &PageState,
    language: PageLanguage,
    path: &str,
) -> Option<HttpResponse> {
    let PageState::Verified(opened, _) = state else { return None };
    let event = service.events.get_recent(opened.event?).await.ok()??;
    let View::Completed(record) = service.transactions.get(opened.id).await.ok()? else { return None };
    let guest = [Registered::of(service, *record)?];
    let mut response = ticket(service, &event, &guest, language, path, Next::default()).await;
    response.headers_mut().append(SET_COOKIE, HeaderValue::from_str(&registered(service, &event, &guest[0])).ok()?);
    Some(response)
}

/// Returns the intent to the identity app. A refusal costs no signature.
async fn intent(state: &PageState, intents: Intents<'_>) -> Result<HttpResponse, ApiError> {
    match state {
        PageState::Waiting(pending) => Ok(intent_response(intents.of(pending).await?.jwt.clone())),
        PageState::Verified(..) | PageState::NotVerified(..) => Err(ApiError::Service(ServiceError::AlreadyCompleted)),
        PageState::Expired(_) => Err(ApiError::Service(ServiceError::TransactionExpired)),
        PageState::Unknown => Err(ApiError::Service(ServiceError::TransactionNotFound)),
    }
}

/// Builds a response with an intent.
pub(super) fn intent_response(jwt: String) -> HttpResponse {
    private(StatusCode::OK).content_type(JWT).body(jwt)
}

fn asks_for_help(request: &HttpRequest) -> bool {
    request.query_string().split('&').any(|pair| pair == "help=1")
}
