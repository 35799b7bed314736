//! `GET /portal/events/{eventId}/live`: an event's counts as server-sent events, as they change. The
//! stream ends when the key is no longer valid.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use actix_web::web::{Bytes, Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::stream::{Stream, StreamExt as _, once, unfold};
use sakshi_actors::EventWatch;
use sakshi_domain::event::Event;
use sakshi_service::drain::UnderWay;
use sakshi_service::error::ServiceError;
use sakshi_service::events::own_event;
use sakshi_service::service::Service;
use sakshi_web::error::ApiError;
use sakshi_web::html::private;
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use super::status_label;
use crate::error::PortalError;
use crate::portal_user::{SessionCheck, StreamUser};

/// How long one stream lasts; the browser opens the next one by itself.
const STREAM_LIFETIME: Duration = Duration::from_secs(60);
/// How often the key is checked.
const CHECK: Duration = Duration::from_millis(900);
/// How often a silent stream sends a comment.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Tells the browser when to reconnect after the stream has ended.
const RETRY: &str = "retry: 2000\n\n";

/// The counts that a page shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) status: &'static str,
    pub(super) standing: &'static str,
    pub(super) registrations: u32,
    pub(super) remaining: u32,
    pub(super) scans: u64,
    pub(super) abandoned: u64,
}

impl Counts {
    pub(super) fn of(event: &Event, service: &Service) -> Self {
        let status = event.status(service.clock.now());
        Self {
            status: status.as_str(),
            standing: status_label(status),
            registrations: event.counts.registrations,
            remaining: event.remaining(),
            scans: event.counts.scans,
            abandoned: event.counts.abandoned,
        }
    }

    fn to_sse(&self) -> String {
        format!("event: state\ndata: {}\n\n", serde_json::to_string(self).unwrap_or_default())
    }
}

/// Answers with the counts now and whenever they have changed.
///
/// # Errors
/// 404 unless the app has such an event.
pub async fn events(
    user: StreamUser,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let StreamUser { caller, check } = user;
    let event = own_event(&service, &caller.app.app_id, &path).await?;
    let watch = service.events.watch(event.id).await?.ok_or(ServiceError::NotFound("event"))?;
    let mut response = private(StatusCode::OK);
    response.content_type("text/event-stream").insert_header(("x-accel-buffering", "no"));
    if request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    let ends = Instant::now() + STREAM_LIFETIME;
    let screen = CountStream { watch, check, told: None, ends, followed: true, _under_way: service.drain.enter(), service };
    Ok(response.streaming(screen.stream()))
}

/// One open stream.
struct CountStream {
    service: Data<Service>,
    watch: EventWatch,
    check: SessionCheck,
    told: Option<Counts>,
    ends: Instant,
    /// Whether the watch is open; that of an ended event closes after a while.
    followed: bool,
    _under_way: UnderWay,
}

impl CountStream {
    fn stream(mut self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        let first = format!("{RETRY}{}", self.news().unwrap_or_default());
        let rest = unfold(Some(self), |screen| async move {
            let mut screen = screen?;
            let text = screen.next().await;
            let more = text.is_some().then_some(screen);
            Some((text.unwrap_or_else(|| RETRY.to_owned()), more))
        });
        once(async { first }).chain(rest).map(|text| Ok(Bytes::from(text)))
    }

    /// The counts, if they have changed since they were sent.
    fn news(&mut self) -> Option<String> {
        let event = Arc::clone(&self.watch.borrow_and_update());
        let counts = Counts::of(&event, &self.service);
        let text = (self.told.as_ref() != Some(&counts)).then(|| counts.to_sse());
        self.told = Some(counts);
        text
    }

    /// The next text of the stream; `None` at its end.
    async fn next(&mut self) -> Option<String> {
        let beat = Instant::now() + HEARTBEAT;
        loop {
            tokio::select! {
                changed = self.watch.changed(), if self.followed => self.followed = changed.is_ok(),
                () = sleep_until((Instant::now() + CHECK).min(self.ends)) => {}
                () = self.service.drain.begun() => return None,
            }
            // While the store is unavailable the key counts as valid.
            if self.check.run().await == Err(ApiError::Service(ServiceError::Unauthorized)) || Instant::now() >= self.ends {
                return None;
            }
            match self.news() {
                Some(text) => return Some(text),
                None if Instant::now() >= beat => return Some(": nothing new\n\n".to_owned()),
                None => {}
            }
        }
    }
}
