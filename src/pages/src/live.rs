//! Live status of a transaction for its page: `GET /v/{txnId}/events` as server-sent events, and
//! `GET /v/{txnId}/status` for browsers that cannot hold a stream. Neither says anything personal.

use std::convert::Infallible;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::{Stream, StreamExt as _, once, unfold};
use sakshi_domain::ids::TxnId;
use sakshi_domain::transaction::Pending;
use sakshi_service::drain::UnderWay;
use sakshi_service::error::ServiceError;
use sakshi_service::service::Service;
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use sakshi_web::rate_limit::RateLimits;
use serde::Serialize;
use tokio::time::Instant;

use super::state::PageState;
use super::time_left::TimeLeft;

/// How long one stream lasts; the browser opens the next one by itself.
const STREAM_LIFETIME: Duration = Duration::from_secs(60);
/// How often a silent stream sends a comment, so that no proxy closes it.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Tells the browser when to reconnect after the stream has ended.
const RETRY: &str = "retry: 2000\n\n";

/// The status that a page shows.
#[derive(Debug, Serialize)]
struct Status<'a> {
    state: &'static str,
    remaining_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_url: Option<&'a str>,
}

impl<'a> Status<'a> {
    fn of(state: &'a PageState, service: &Service) -> Self {
        let left = |pending: &Pending| TimeLeft::of(pending, service.clock.now()).0;
        let remaining_s = if let PageState::Waiting(pending) = state { left(pending) } else { 0 };
        Self { state: state.word(), remaining_s, redirect_url: state.redirect_url() }
    }
}

/// Answers once.
///
/// # Errors
/// 404, 429 and 503 of the error table.
pub async fn status(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    match PageState::of_path(&service, &path).await? {
        PageState::Unknown => Err(ApiError::Service(ServiceError::TransactionNotFound)),
        state => Ok(private(StatusCode::OK).json(Status::of(&state, &service))),
    }
}

/// Answers with the state now and again when it has changed.
///
/// # Errors
/// 404, 429 and 503 of the error table.
pub async fn events(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, ApiError> {
    rates.pages.take(&rates.client_address(&request))?;
    let state = PageState::of_path(&service, &path).await?;
    let Some(opened) = state.opened() else { return Err(ApiError::Service(ServiceError::TransactionNotFound)) };
    let mut response = private(StatusCode::OK);
    response.content_type("text/event-stream").insert_header(("x-accel-buffering", "no"));
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    let watch = StatusStream { id: opened.id, ends: Instant::now() + STREAM_LIFETIME, _under_way: service.drain.enter(), service };
    Ok(response.streaming(watch.stream(&state)))
}

/// One open stream.
struct StatusStream {
    service: Data<Service>,
    id: TxnId,
    ends: Instant,
    _under_way: UnderWay,
}

impl StatusStream {
    fn stream(self, state: &PageState) -> impl Stream<Item = Result<Bytes, Infallible>> + use<> {
        let first = format!("{RETRY}{}", self.state(state));
        let watch = matches!(state, PageState::Waiting(_)).then_some(self);
        let rest = unfold(watch, |watch| async move {
            let watch = watch?;
            let (text, more) = watch.next().await;
            Some((text, more.then_some(watch)))
        });
        once(async { first }).chain(rest).map(|text| Ok(Bytes::from(text)))
    }

    /// The next text of the stream, and whether another one follows.
    async fn next(&self) -> (String, bool) {
        let left = self.ends.saturating_duration_since(Instant::now());
        let changed = self.service.transactions.look_when_changed(self.id, left.min(HEARTBEAT));
        let view = tokio::select! {
            view = changed => view,
            () = self.service.drain.begun() => return (RETRY.to_owned(), false),
        };
        match view.map_err(ApiError::from).and_then(|view| PageState::of_view(&self.service, view)) {
            Ok(PageState::Waiting(_)) if Instant::now() < self.ends => (": waiting\n\n".to_owned(), true),
            Ok(PageState::Waiting(_)) | Err(_) => (RETRY.to_owned(), false),
            Ok(state) => (self.state(&state), false),
        }
    }

    fn state(&self, state: &PageState) -> String {
        let json = serde_json::to_string(&Status::of(state, &self.service)).unwrap_or_default();
        format!("event: state\ndata: {json}\n\n")
    }
}
