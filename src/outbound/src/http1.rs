//! One request over an HTTP/1.1 connection, which is not reused: if the receiver closed it just as the next request is
//! sent, that delivery would be lost.

use std::future::pending;
use std::pin::{Pin, pin};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Connection, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use sakshi_domain::delivery::{AttemptPart, DeliveryOutcome, FailureReason};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::exchange::{Answer, ReadBudget, Target, headers};
use crate::failure::Failure;

type BoxedConnection<Io> = Pin<Box<Connection<TokioIo<Io>, Full<Bytes>>>>;

/// Sends the request. Dropping the future or the answer closes the connection.
///
/// # Errors
/// [`Failure`] when the connection broke before the status arrived.
pub(crate) async fn post<Io>(io: Io, target: &Target, body: Bytes) -> Result<Answer, Failure>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let unsendable = Failure::Ended(DeliveryOutcome::Broken, FailureReason::Unknown, AttemptPart::Answer);
    let request = build_request(target, body).ok_or(unsendable)?;
    let (mut sender, connection) =
        handshake(TokioIo::new(io)).await.map_err(|error| Failure::from_broken_connection(&error))?;
    let mut connection = Box::pin(connection);
    let mut response = pin!(sender.send_request(request));
    let response = tokio::select! {
        biased;
        response = &mut response => response,
        // The connection has ended; the response, if any, is complete.
        _ = &mut connection => response.await,
    };
    let (head, body) = response.map_err(|error| Failure::from_broken_connection(&error))?.into_parts();
    let remaining_body = if body.is_end_stream() { None } else { Some(drain_body(connection, body).boxed()) };
    Ok(Answer { status: head.status, remaining_body })
}

/// Builds the request; `None` when the host cannot be a header's value.
fn build_request(target: &Target, body: Bytes) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from(target.path.clone());
    *request.headers_mut() = headers();
    request.headers_mut().insert(HOST, HeaderValue::from_str(target.authority.as_str()).ok()?);
    Some(request)
}

/// Reads the rest of a body, up to a limit.
async fn drain_body<Io>(connection: BoxedConnection<Io>, mut body: Incoming)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let read_body = async {
        let mut budget = ReadBudget::new();
        while let Some(Ok(frame)) = body.frame().await {
            if !budget.consume(frame.data_ref().map_or(0, Bytes::len)) {
                break;
            }
        }
    };
    // Reads and writes for `read_body`, and never completes.
    let drive_connection = async {
        let _ = connection.await;
        pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = read_body => {}
        () = drive_connection => {}
    }
}
