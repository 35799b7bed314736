//! Many requests over one HTTP/2 connection, and proof of those that the receiver did not process.
//!
//! A failed request may be sent again (RFC 9113 §8.7) in three cases: its stream is above the last one that GOAWAY
//! names, it was reset with REFUSED_STREAM, or none of its bytes were written. Any other request may have been
//! processed: its connection broke, it was reset for another reason, or it was never answered.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use hyper::header::{CONTENT_LENGTH, HeaderValue};
use hyper::http::uri::Scheme;
use hyper::{Method, Request, Uri};
use sakshi_domain::delivery::{AttemptPart, DeliveryOutcome, FailureReason};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{MissedTickBehavior, interval};

use crate::activity::{Activity, HEADERS_BYTES_MAX, TrackedIo};
use crate::exchange::{Answer, ReadBudget, Target, headers};
use crate::failure::Failure;
use crate::pool::{ConnectionId, OriginPool, StreamSlot};

/// Flow-control windows of a stream and of a connection, in bytes.
const STREAM_WINDOW: u32 = 64 * 1_024;
const CONNECTION_WINDOW: u32 = 256 * 1_024;

const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Checks after which a connection is dropped that has no requests, or whose writes fail, and does not end.
const CHECKS_UNTIL_DROPPED: u32 = 4;

type H2Connection<Io> = Connection<TrackedIo<Io>, Bytes>;

/// A connection whose receiver has sent its settings; [`drive`] must be called on it.
pub(crate) struct Handshake<Io> {
    pub(crate) requests: SendRequest<Bytes>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) connection: Box<H2Connection<Io>>,
}

/// Starts HTTP/2 and waits for the receiver's settings. They limit the concurrent requests, and some receivers refuse
/// requests before their settings are acknowledged.
///
/// # Errors
/// [`h2::Error`] when the receiver does not speak HTTP/2, or closed the connection. No request was sent.
pub(crate) async fn handshake<Io: AsyncRead + AsyncWrite + Unpin>(io: Io) -> Result<Handshake<Io>, h2::Error> {
    let activity = Activity::new();
    let mut builder = Builder::new();
    builder.enable_push(false).initial_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    builder.max_header_list_size(HEADERS_BYTES_MAX).initial_max_send_streams(0);
    let (requests, connection) = builder.handshake(TrackedIo::new(io, Arc::clone(&activity))).await?;
    let mut connection = Box::new(connection);
    poll_fn(|context| match Pin::new(&mut *connection).poll(context) {
        Poll::Ready(ended) => Poll::Ready(ended.and(Err(Reason::NO_ERROR.into()))),
        Poll::Pending if requests.current_max_send_streams() > 0 => Poll::Ready(Ok(())),
        Poll::Pending => Poll::Pending,
    })
    .await?;
    Ok(Handshake { requests, activity, connection })
}

/// Keeps a connection running. Closes it soon after the pool has dropped it and its last request has ended, even if the
/// receiver does not react.
pub(crate) async fn drive<Io>(
    mut connection: Box<H2Connection<Io>>,
    activity: Arc<Activity>,
    pool: Arc<OriginPool>,
    id: ConnectionId,
) where
    Io: AsyncRead + AsyncWrite + Unpin,
{
    let mut checks = interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut idle_checks = 0;
    let ended = loop {
        tokio::select! {
            ended = &mut *connection => break Some(ended),
            _ = checks.tick() => {
                // Two references belong to the connection itself and to this function.
                let needed = pool.is_available(id) || Arc::strong_count(&activity) > 2;
                idle_checks = if needed && !activity.write_failed() { 0 } else { idle_checks + 1 };
                if idle_checks > CHECKS_UNTIL_DROPPED {
                    break None;
                }
            }
        }
    };
    pool.retire(id);
    if let Some(Err(error)) = ended
        && error.is_library()
    {
        pool.disable_http2();
    }
}

/// Sends the request. Dropping the future or the answer resets the stream.
///
/// # Errors
/// [`Failure`] when no status arrived. [`Failure::Refused`] and [`Failure::Unprocessed`] prove that the receiver did
/// not process the request.
pub(crate) async fn post(mut slot: StreamSlot, target: &Target, body: Bytes) -> Result<Answer, Failure> {
    let request = request(target, body.len()).ok_or(Failure::Ended(
        DeliveryOutcome::Broken,
        FailureReason::Unknown,
        AttemptPart::Answer,
    ))?;
    let (before, began) = (slot.activity.written(), Instant::now());
    slot.activity.add_request();
    let Ok((response, mut sending)) = slot.requests.send_request(request, body.is_empty()) else {
        // The receiver closed the connection or announced it; the request was not queued.
        slot.pool.retire(slot.id);
        return Err(Failure::Unprocessed);
    };
    if !body.is_empty() {
        // If the stream has failed, its response says why. The body is queued without a copy.
        let _ = sending.send_data(body, true);
    }
    let mut pending = PendingRequest { slot, began, response, ended: false };
    let response = (&mut pending.response).await;
    pending.ended = true;
    match response {
        Ok(response) => {
            let (head, body) = response.into_parts();
            let remaining_body =
                if body.is_end_stream() { None } else { Some(discard(body, sending, pending).boxed()) };
            Ok(Answer { status: head.status, remaining_body })
        }
        Err(error) => {
            let unwritten = pending.slot.activity.written() == before;
            Err(classify_failure(&error, unwritten, &pending.slot))
        }
    }
}

/// Classifies the failure of a stream by its effect on the request.
fn classify_failure(error: &h2::Error, unwritten: bool, slot: &StreamSlot) -> Failure {
    if error.is_remote() && error.is_go_away() {
        slot.pool.retire(slot.id);
        return Failure::Unprocessed;
    }
    if error.is_remote() && error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM) {
        return Failure::Refused;
    }
    if error.is_library() || error.reason() == Some(Reason::HTTP_1_1_REQUIRED) {
        slot.pool.disable_http2();
    }
    if !error.is_reset() {
        slot.pool.retire(slot.id);
    }
    match error.get_io() {
        _ if unwritten => Failure::Unprocessed,
        Some(error) => Failure::broken(error),
        None => {
            let reason = if error.is_remote() { FailureReason::Reset } else { FailureReason::Unknown };
            Failure::Ended(DeliveryOutcome::Broken, reason, AttemptPart::Answer)
        }
    }
}

/// A request that waits for its status.
struct PendingRequest {
    slot: StreamSlot,
    began: Instant,
    response: ResponseFuture,
    ended: bool,
}

impl Drop for PendingRequest {
    /// Retires the connection if the request was abandoned and nothing was read after it was sent.
    fn drop(&mut self) {
        if !self.ended && self.slot.activity.last_read() < self.began {
            self.slot.pool.retire(self.slot.id);
        }
    }
}

fn request(target: &Target, length: usize) -> Option<Request<()>> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    let uri =
        Uri::builder().scheme(Scheme::HTTPS).authority(target.authority.clone()).path_and_query(target.path.clone());
    *request.uri_mut() = uri.build().ok()?;
    *request.headers_mut() = headers();
    request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    Some(request)
}

/// Reads the rest of a body; afterwards the stream and its slot are free.
async fn discard(mut body: RecvStream, _sending: h2::SendStream<Bytes>, _waiting: PendingRequest) {
    let mut budget = ReadBudget::new();
    while let Some(Ok(part)) = body.data().await {
        if !budget.consume(part.len()) || body.flow_control().release_capacity(part.len()).is_err() {
            return;
        }
    }
}
