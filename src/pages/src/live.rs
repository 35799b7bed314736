//! Live status of a transaction for its page: `GET /v/{txnId}/events` as server-sent events, and
//! `GET /v/{txnId}/status` for browsers that cannot hold a stream. Neither contains personal data.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use sakshi_service::{Service, ServiceError};
use sakshi_web::error::ApiError;
use sakshi_web::event_stream::{Next, STATE_INTERVAL, event_stream};
use sakshi_web::html::private;
use sakshi_web::rate_limit::RateLimits;
use serde::Serialize;

use super::state::PageState;
use super::time_left::TimeLeft;

/// The status that a page shows.
#[derive(Debug, Serialize)]
struct Status {
    state: &'static str,
    remaining_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_url: Option<String>,
}

impl Status {
    fn new(state: &PageState, service: &Service) -> Self {
        let remaining_s = if let PageState::Waiting(pending) = state {
            TimeLeft::until_expiry(pending, service.clock.now()).0
        } else {
            0
        };
        Self { state: state.as_str(), remaining_s, redirect_url: state.redirect_url().map(str::to_owned) }
    }
}

/// Responds with the current status.
///
/// # Errors
/// 404 for an unknown transaction, 429 when one address sends too many requests, 503 while the store is unavailable.
pub(crate) async fn status(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    match PageState::load(&service, path.parse().ok()).await? {
        PageState::Unknown => Err(ApiError::Service(ServiceError::TransactionNotFound)),
        state => Ok(private(StatusCode::OK).json(Status::new(&state, &service))),
    }
}

/// Streams the status now, every few seconds, and at the end of the transaction.
///
/// # Errors
/// 404 for an unknown transaction, 429 when one address sends too many requests, 503 while the store is unavailable.
pub(crate) async fn events(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let state = PageState::load(&service, path.parse().ok()).await?;
    let Some(opened) = state.opened() else { return Err(ApiError::Service(ServiceError::TransactionNotFound)) };
    let (id, status) = (opened.id, Status::new(&state, &service));
    let first = if matches!(state, PageState::Waiting(_)) { Next::State(status) } else { Next::Last(status) };
    let drain = service.drain.clone();
    event_stream(&request, &drain, None, &first, async move || {
        let view = service.transactions.wait_for_end(id, STATE_INTERVAL).await;
        match view.map_err(ApiError::from).and_then(|view| PageState::from_view(&service, view)) {
            Ok(state @ PageState::Waiting(_)) => Next::State(Status::new(&state, &service)),
            Ok(state) => Next::Last(Status::new(&state, &service)),
            Err(_) => Next::End,
        }
    })
}
