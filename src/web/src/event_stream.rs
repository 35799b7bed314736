//! Server-sent events that show a page how a state changes (WHATWG HTML, "Server-sent events").
//!
//! A stream lasts a minute, and then the browser opens the next one by itself. A drain of the node ends it earlier. Each keeps a
//! connection, so nobody has more of them than are left for others: no subscriber, and no event.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use futures_util::stream::{StreamExt as _, once, unfold};
use sakshi_domain::ids::EventId;
use sakshi_service::ServiceError;
use sakshi_service::drain::Drain;
use sakshi_supervision::{FairSlot, FairSlots};
use serde::Serialize;
use tokio::time::{Instant, sleep_until};

use crate::error::ApiError;
use crate::html::private;
use crate::rate_limit::RateLimits;

/// How long one stream lasts.
const LIFETIME: Duration = Duration::from_secs(60);
/// How often an unchanged state is to be sent again: pages take longer silence for a lost network, and proxies close silent streams.
pub const STATE_INTERVAL: Duration = Duration::from_secs(10);
/// Tells the browser when to reconnect after the stream has ended.
const RETRY: &str = "retry: 2000\n\n";

/// What comes next on a stream.
#[derive(Debug)]
pub enum Next<S> {
    /// The state as it is now.
    State(S),
    /// The state that it keeps: the stream ends with it.
    Last(S),
    /// The stream ends, and the browser opens the next one.
    End,
}

impl<S: Serialize> Next<S> {
    /// The text on the stream, and whether more follows.
    fn text(&self) -> (String, bool) {
        let event = |state| format!("event: state\ndata: {}\n\n", serde_json::to_string(state).unwrap_or_default());
        match self {
            Self::State(state) => (event(state), true),
            Self::Last(state) => (event(state), false),
            Self::End => (RETRY.to_owned(), false),
        }
    }
}

/// Slots for streams, by who reads them and by the event that they show. Cloning shares them.
#[derive(Clone, Debug)]
pub struct StreamSlots {
    of_subscribers: FairSlots<IpAddr>,
    of_events: FairSlots<EventId>,
}

impl StreamSlots {
    /// So many streams at a time.
    #[must_use]
    pub fn new(streams: usize) -> Self {
        Self { of_subscribers: FairSlots::new(streams), of_events: FairSlots::new(streams) }
    }

    fn enter(&self, subscriber: IpAddr, event: Option<EventId>) -> Option<(FairSlot<IpAddr>, Option<FairSlot<EventId>>)> {
        let of_event = match event {
            Some(event) => Some(self.of_events.enter(&event)?),
            None => None,
        };
        Some((self.of_subscribers.enter(&subscriber)?, of_event))
    }
}

/// Answers with a stream about a transaction or an `event`: `first`, and then whatever `next` waits for. `next` is dropped while it
/// waits when the stream ends.
///
/// # Errors
/// [`ServiceError::Overloaded`] when the reader or the event has as many streams as are left for others.
pub fn event_stream<S: Serialize>(
    request: &HttpRequest,
    drain: &Drain,
    event: Option<EventId>,
    first: &Next<S>,
    next: impl AsyncFnMut() -> Next<S> + 'static,
) -> Result<HttpResponse, ApiError> {
    if request.method() == Method::HEAD {
        return Ok(head().finish());
    }
    let rates = request.app_data::<Data<RateLimits>>().ok_or_else(|| ApiError::internal("there are no limits"))?;
    let slots = rates.streams.enter(rates.client_address(request), event).ok_or(ServiceError::Overloaded)?;
    Ok(stream_of(drain, slots, first, next))
}

fn head() -> HttpResponseBuilder {
    let mut response = private(StatusCode::OK);
    response.content_type("text/event-stream").insert_header(("x-accel-buffering", "no"));
    response
}

/// Answers with a stream for a reader who has a `place` among those of its listener, which is given back when the stream ends.
pub fn stream_of<S: Serialize>(
    drain: &Drain,
    place: impl Sized + 'static,
    first: &Next<S>,
    next: impl AsyncFnMut() -> Next<S> + 'static,
) -> HttpResponse {
    let ends = Instant::now() + LIFETIME;
    let (text, more) = first.text();
    let first = format!("{RETRY}{text}");
    let rest = unfold(more.then(|| (next, drain.clone(), drain.enter(), place)), move |open| async move {
        let (mut next, drain, under_way, place) = open?;
        let event = tokio::select! {
            biased;
            () = sleep_until(ends) => Next::End,
            () = drain.begun() => Next::End,
            event = next() => event,
        };
        let (text, more) = event.text();
        Some((text, more.then_some((next, drain, under_way, place))))
    });
    head().streaming(once(async { first }).chain(rest).map(|text| Ok::<_, Infallible>(Bytes::from(text))))
}
