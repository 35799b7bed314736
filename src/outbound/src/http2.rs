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

/// Interval of the checks that a connection is still needed.
const CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// Number of consecutive checks that may find a connection without requests, or with failing writes. After the next
/// such check it is dropped, although the receiver has not closed it.
const UNNEEDED_CHECKS_MAX: u32 = 4;

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
    let mut unneeded_checks = 0;
    let end_of_connection = loop {
        tokio::select! {
            result = &mut *connection => break Some(result),
            _ = checks.tick() => {
                // Two references belong to the connection itself and to this function.
                let is_needed = pool.is_available(id) || Arc::strong_count(&activity) > 2;
                unneeded_checks = if is_needed && !activity.write_failed() { 0 } else { unneeded_checks + 1 };
                if unneeded_checks > UNNEEDED_CHECKS_MAX {
                    break None;
                }
            }
        }
    };
    pool.retire(id);
    if let Some(Err(error)) = end_of_connection
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
    let unsendable = Failure::Ended(DeliveryOutcome::Broken, FailureReason::Unknown, AttemptPart::Answer);
    let request = build_request(target, body.len()).ok_or(unsendable)?;
    let (written_before, queued_at) = (slot.activity.written(), Instant::now());
    slot.activity.add_request();
    let has_no_body = body.is_empty();
    let Ok((response, mut body_stream)) = slot.requests.send_request(request, has_no_body) else {
        // The receiver closed the connection or announced it; the request was not queued.
        slot.pool.retire(slot.id);
        return Err(Failure::Unprocessed);
    };
    if !has_no_body {
        // If the stream has failed, its response says why. The body is queued without a copy.
        let end_of_stream = true;
        let _ = body_stream.send_data(body, end_of_stream);
    }
    let mut pending = PendingRequest { slot, queued_at, response, has_response: false };
    let response = (&mut pending.response).await;
    pending.has_response = true;
    match response {
        Ok(response) => {
            let (head, body) = response.into_parts();
            let remaining_body =
                if body.is_end_stream() { None } else { Some(drain_body(body, body_stream, pending).boxed()) };
            Ok(Answer { status: head.status, remaining_body })
        }
        Err(error) => {
            let is_unwritten = pending.slot.activity.written() == written_before;
            Err(classify_failure(&error, is_unwritten, &pending.slot))
        }
    }
}

/// Classifies the failure of a request's stream. `is_unwritten` means that no byte of the request was sent. Also stops
/// the use of the connection, or of HTTP/2, if the error requires it.
fn classify_failure(error: &h2::Error, is_unwritten: bool, slot: &StreamSlot) -> Failure {
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
        _ if is_unwritten => Failure::Unprocessed,
        Some(error) => Failure::from_broken_connection(error),
        None => {
            let reason = if error.is_remote() { FailureReason::Reset } else { FailureReason::Unknown };
            Failure::Ended(DeliveryOutcome::Broken, reason, AttemptPart::Answer)
        }
    }
}

/// A request that waits for its response.
struct PendingRequest {
    slot: StreamSlot,
    queued_at: Instant,
    response: ResponseFuture,
    /// True once the response, or its failure, is known.
    has_response: bool,
}

impl Drop for PendingRequest {
    /// Retires the connection if the request was abandoned and nothing was read after it was sent.
    fn drop(&mut self) {
        if !self.has_response && self.slot.activity.last_read() < self.queued_at {
            self.slot.pool.retire(self.slot.id);
        }
    }
}

/// Builds the request without its body, which has this length; `None` when the URL is invalid.
fn build_request(target: &Target, body_length: usize) -> Option<Request<()>> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    let uri =
        Uri::builder().scheme(Scheme::HTTPS).authority(target.authority.clone()).path_and_query(target.path.clone());
    *request.uri_mut() = uri.build().ok()?;
    *request.headers_mut() = headers();
    request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body_length));
    Some(request)
}

/// Reads the rest of a body, up to a limit. Then it drops the stream and its slot.
async fn drain_body(mut body: RecvStream, _body_stream: h2::SendStream<Bytes>, _request: PendingRequest) {
    let mut budget = ReadBudget::new();
    while let Some(Ok(part)) = body.data().await {
        if !budget.consume(part.len()) || body.flow_control().release_capacity(part.len()).is_err() {
            return;
        }
    }
}
