//! Server-sent events that show state changes on a page (WHATWG HTML, "Server-sent events").
//!
//! A stream lasts a minute; then the browser reconnects. A drain of the node ends it earlier. Each stream occupies a
//! connection, so each subscriber and each event has a fair share of the streams.

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

/// Lifetime of one stream.
const LIFETIME: Duration = Duration::from_secs(60);
/// Interval at which an unchanged state is sent again. Pages treat a longer silence as a lost network, and proxies
/// close silent streams.
pub const STATE_INTERVAL: Duration = Duration::from_secs(10);
/// Delay before the browser reconnects after the end of a stream.
const RETRY_LINE: &str = "retry: 2000\n\n";

/// The next event of a stream.
#[derive(Debug)]
pub enum Next<S> {
    /// The current state.
    State(S),
    /// The final state; the stream ends with it.
    Last(S),
    /// The stream ends, and the browser reconnects.
    End,
}

impl<S: Serialize> Next<S> {
    /// Returns the text to send, and true if the stream continues.
    fn text(&self) -> (String, bool) {
        let event = |state| format!("event: state\ndata: {}\n\n", serde_json::to_string(state).unwrap_or_default());
        match self {
            Self::State(state) => (event(state), true),
            Self::Last(state) => (event(state), false),
            Self::End => (RETRY_LINE.to_owned(), false),
        }
    }
}

/// Slots for streams, by subscriber and by event. Clones share the slots.
#[derive(Clone, Debug)]
pub struct StreamSlots {
    by_subscriber: FairSlots<IpAddr>,
    by_event: FairSlots<EventId>,
}

impl StreamSlots {
    /// Allows this number of concurrent streams.
    #[must_use]
    pub fn new(streams: usize) -> Self {
        Self { by_subscriber: FairSlots::new(streams), by_event: FairSlots::new(streams) }
    }

    /// Takes a slot of the subscriber, and one of the event if the stream is about an event; `None` without a free one.
    fn enter(
        &self,
        subscriber: IpAddr,
        event: Option<EventId>,
    ) -> Option<(FairSlot<IpAddr>, Option<FairSlot<EventId>>)> {
        let event_slot = match event {
            Some(event) => Some(self.by_event.enter(&event)?),
            None => None,
        };
        Some((self.by_subscriber.enter(&subscriber)?, event_slot))
    }
}

/// Responds with a stream about a transaction, or about `event`: `first`, then the results of `next`. A pending `next`
/// is dropped when the stream ends.
///
/// # Errors
/// [`ServiceError::Overloaded`] when the subscriber or the event has used up its share of streams.
pub fn event_stream<S: Serialize>(
    request: &HttpRequest,
    drain: &Drain,
    event: Option<EventId>,
    first: &Next<S>,
    next: impl AsyncFnMut() -> Next<S> + 'static,
) -> Result<HttpResponse, ApiError> {
    if request.method() == Method::HEAD {
        return Ok(response_head().finish());
    }
    let rates = request.app_data::<Data<RateLimits>>().ok_or_else(|| ApiError::internal("there are no limits"))?;
    let slots = rates.streams.enter(rates.client_address(request), event).ok_or(ServiceError::Overloaded)?;
    Ok(stream_response(drain, slots, first, next))
}

/// Begins the response of a stream. Proxies must not buffer it.
fn response_head() -> HttpResponseBuilder {
    let mut response = private(StatusCode::OK);
    response.content_type("text/event-stream").insert_header(("x-accel-buffering", "no"));
    response
}

/// Responds with a stream of `first`, then the results of `next`. It holds `slot` until it ends.
pub fn stream_response<S: Serialize>(
    drain: &Drain,
    slot: impl Sized + 'static,
    first: &Next<S>,
    next: impl AsyncFnMut() -> Next<S> + 'static,
) -> HttpResponse {
    let end = Instant::now() + LIFETIME;
    let (text, continues) = first.text();
    let first = format!("{RETRY_LINE}{text}");
    let further = unfold(continues.then(|| (next, drain.clone(), drain.enter(), slot)), move |state| async move {
        let (mut next, drain, in_flight, slot) = state?;
        let event = tokio::select! {
            biased;
            () = sleep_until(end) => Next::End,
            () = drain.wait_until_begun() => Next::End,
            event = next() => event,
        };
        let (text, continues) = event.text();
        Some((text, continues.then_some((next, drain, in_flight, slot))))
    });
    response_head().streaming(once(async { first }).chain(further).map(|text| Ok::<_, Infallible>(Bytes::from(text))))
}
