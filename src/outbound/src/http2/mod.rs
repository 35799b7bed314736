//! Many requests over one connection, and the proof for those that the receiver has not processed.
//!
//! HTTP/2 says of a request that fails whether it may be sent again (RFC 9113 §8.7): its stream is
//! above the last one that GOAWAY names, or it was reset with REFUSED_STREAM. A request of which not
//! a byte was written has not been processed either. Nothing else is proof: whatever dies with its
//! connection, is reset for another reason or is never answered may have been processed.

mod drive;
mod pulse;

use bytes::Bytes;
use futures_util::FutureExt as _;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::http::uri::Scheme;
use hyper::{Method, Request, Uri};
use sakshi_domain::delivery::DeliveryOutcome;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

pub(crate) use self::drive::drive;
pub(crate) use self::pulse::Pulse;
use self::pulse::Watched;
use crate::exchange::{Answer, Failure, Patience, Target, headers};
use crate::origin::Slot;

/// Bytes of the headers of an answer; with more its stream is reset.
const HEADERS_MAX: u32 = 64 * 1_024;
/// Bytes of an answer, and of all answers of a connection, that may be under way.
const WINDOW: u32 = 64 * 1_024;
const CONNECTION_WINDOW: u32 = 256 * 1_024;

/// A connection that is to be driven.
pub(crate) type Driven<Io> = Connection<Watched<Io>, Bytes>;

/// A connection whose receiver has said its settings.
pub(crate) struct Begun<Io> {
    pub(crate) requests: SendRequest<Bytes>,
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) connection: Box<Driven<Io>>,
}

/// Begins HTTP/2 and waits for the receiver's settings. They say how many requests it takes at a
/// time, and some receivers refuse what comes before theirs are acknowledged.
///
/// # Errors
/// The receiver does not speak HTTP/2 after all, or has hung up. No request was sent.
pub(crate) async fn begin<Io: AsyncRead + AsyncWrite + Unpin>(io: Io) -> Result<Begun<Io>, h2::Error> {
    let pulse = Pulse::new();
    let mut builder = Builder::new();
    builder.enable_push(false).initial_window_size(WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    builder.max_header_list_size(HEADERS_MAX).initial_max_send_streams(0);
    let (requests, connection) = builder.handshake(Watched::new(io, Arc::clone(&pulse))).await?;
    let mut connection = Box::new(connection);
    poll_fn(|context| match Pin::new(&mut *connection).poll(context) {
        Poll::Ready(ended) => Poll::Ready(ended.and(Err(Reason::NO_ERROR.into()))),
        Poll::Pending if requests.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
        Poll::Pending => Poll::Pending,
    })
    .await?;
    Ok(Begun { requests, pulse, connection })
}

/// Sends the request. Dropping the future, or the answer, resets the stream.
///
/// # Errors
/// There was no status; [`Failure::Refused`] and [`Failure::Unprocessed`] are proof that the
/// receiver has not processed the request.
pub(crate) async fn post(mut slot: Slot, target: &Target, body: Bytes) -> Result<Answer, Failure> {
    let request = request(target, body.len()).ok_or(Failure::Ended(DeliveryOutcome::Broken))?;
    let (before, began) = (slot.pulse.written(), Instant::now().into_std());
    slot.pulse.ask();
    let Ok((response, mut sending)) = slot.requests.send_request(request, body.is_empty()) else {
        // The receiver has hung up, or said that it will: the request was not even queued.
        slot.retire();
        return Err(Failure::Unprocessed);
    };
    if !body.is_empty() {
        // A stream that has failed by now says why in the place of its answer. The body is queued by reference.
        let _ = sending.send_data(body, true);
    }
    let mut waiting = Waiting { slot, began, response, ended: false };
    let response = (&mut waiting.response).await;
    waiting.ended = true;
    match response {
        Ok(response) => {
            let (head, body) = response.into_parts();
            let rest = if body.is_end_stream() { None } else { Some(discard(body, sending, waiting).boxed()) };
            Ok(Answer { status: head.status, rest })
        }
        Err(error) => {
            let unwritten = waiting.slot.pulse.written() == before;
            Err(judge(&error, unwritten, &waiting.slot))
        }
    }
}

/// What a stream's failure says of its request.
fn judge(error: &h2::Error, unwritten: bool, slot: &Slot) -> Failure {
    if error.is_remote() && error.is_go_away() {
        slot.retire();
        return Failure::Unprocessed;
    }
    if error.is_remote() && error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM) {
        return Failure::Refused;
    }
    if error.is_library() || error.reason() == Some(Reason::HTTP_1_1_REQUIRED) {
        slot.distrust();
    }
    if !error.is_reset() {
        slot.retire();
    }
    if unwritten { Failure::Unprocessed } else { Failure::Ended(DeliveryOutcome::Broken) }
}

/// A request whose answer is awaited.
struct Waiting {
    slot: Slot,
    began: std::time::Instant,
    response: ResponseFuture,
    ended: bool,
}

impl Drop for Waiting {
    /// Given up without an answer, on a connection that has been silent since: nothing more is sent there.
    fn drop(&mut self) {
        if !self.ended && self.slot.pulse.heard() < self.began {
            self.slot.retire();
        }
    }
}

fn request(target: &Target, length: usize) -> Option<Request<()>> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    let uri = Uri::builder().scheme(Scheme::HTTPS).authority(target.authority.clone()).path_and_query(target.path.clone());
    *request.uri_mut() = uri.build().ok()?;
    *request.headers_mut() = headers();
    request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    Some(request)
}

/// Reads what is left of an answer; the stream and its place are given back afterwards.
async fn discard(mut body: RecvStream, _sending: h2::SendStream<Bytes>, _waiting: Waiting) {
    let mut patience = Patience::new();
    while let Some(Ok(part)) = body.data().await {
        if !patience.has_for(part.len()) || body.flow_control().release_capacity(part.len()).is_err() {
            return;
        }
    }
}
