//! One request over an HTTP/1.1 connection, which is not reused: if the receiver closed it just as the
//! next request is sent, that delivery would be lost.

use std::future::pending;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Connection, handshake};
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use sakshi_domain::delivery::{AttemptPart, DeliveryOutcome, FailureReason};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::exchange::{Answer, ReadBudget, Target, headers};
use crate::failure::Failure;

type Driven<Io> = Pin<Box<Connection<TokioIo<ReadsOn<Io>>, Full<Bytes>>>>;

/// Sends the request. Dropping the future or the answer closes the connection.
///
/// # Errors
/// The connection broke before the status arrived.
pub(crate) async fn post<Io>(io: Io, target: &Target, body: Bytes) -> Result<Answer, Failure>
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let unsendable = Failure::Ended(DeliveryOutcome::Broken, FailureReason::Unknown, AttemptPart::Answer);
    let request = request(target, body).ok_or(unsendable)?;
    let io = TokioIo::new(ReadsOn { io, write_error: None });
    let (mut sender, connection) = handshake(io).await.map_err(|error| Failure::broken(&error))?;
    let mut connection = Box::pin(connection);
    let mut response = pin!(sender.send_request(request));
    let response = tokio::select! {
        biased;
        response = &mut response => response,
        // The connection has ended; the response, if any, is complete.
        _ = &mut connection => response.await,
    };
    let (head, body) = response.map_err(|error| Failure::broken(&error))?.into_parts();
    let rest = if body.is_end_stream() { None } else { Some(discard(connection, body).boxed()) };
    Ok(Answer { status: head.status, rest })
}

fn request(target: &Target, body: Bytes) -> Option<Request<Full<Bytes>>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from(target.path.clone());
    *request.headers_mut() = headers();
    request.headers_mut().insert(HOST, HeaderValue::from_str(target.authority.as_str()).ok()?);
    Some(request)
}

async fn discard<Io>(connection: Driven<Io>, mut body: Incoming)
where
    Io: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let read = async {
        let mut budget = ReadBudget::new();
        while let Some(Ok(frame)) = body.frame().await {
            if !budget.consume(frame.data_ref().map_or(0, Bytes::len)) {
                break;
            }
        }
    };
    let drive = async {
        let _ = connection.await;
        pending::<()>().await;
    };
    tokio::select! {
        biased;
        () = read => {}
        () = drive => {}
    }
}

/// Reads on after a write has failed: a receiver may answer a request that it does not read to its end, and close the connection.
struct ReadsOn<Io> {
    io: Io,
    write_error: Option<io::Error>,
}

impl<Io: AsyncRead + Unpin> AsyncRead for ReadsOn<Io> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
        let is_end = buffer.filled().len() == before;
        Poll::Ready(self.write_error.take_if(|_| is_end).map_or(Ok(()), Err))
    }
}

impl<Io: AsyncWrite + Unpin> AsyncWrite for ReadsOn<Io> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.write_error.is_none() {
            match ready!(Pin::new(&mut self.io).poll_write(context, bytes)) {
                Ok(written) => return Poll::Ready(Ok(written)),
                Err(error) => self.write_error = Some(error),
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.write_error.is_none() {
            self.write_error = ready!(Pin::new(&mut self.io).poll_flush(context)).err();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
