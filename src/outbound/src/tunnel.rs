//! A connection through a forward proxy, by CONNECT (RFC 9110 §9.3.6). The proxy resolves the receiver's name.

use std::future::pending;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1::handshake;
use hyper::header::{HOST, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Method, Request, Uri};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use sakshi_domain::delivery::{AttemptPart, DeliveryOutcome, FailureReason};
use tokio::net::TcpStream;

use crate::exchange::Target;
use crate::failure::Failure;

/// Failure to connect through the proxy; nothing was sent to the receiver.
pub(crate) const NO_TUNNEL: Failure =
    Failure::Ended(DeliveryOutcome::Unreachable, FailureReason::Proxy, AttemptPart::Proxy);

/// Asks the proxy at the other end of `stream` for a connection to the target.
///
/// # Errors
/// [`NO_TUNNEL`] when the proxy refused the connection, or failed.
pub(crate) async fn open(stream: TcpStream, proxy: &Intercept, target: &Target) -> Result<TcpStream, Failure> {
    let request = build_connect_request(proxy, target).ok_or(NO_TUNNEL)?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|_| NO_TUNNEL)?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        if !status.is_success() {
            tracing::warn!(
                proxy.status = status.as_u16(),
                receiver = target.authority.as_str(),
                "the proxy refused a connection"
            );
            return Ok(None);
        }
        hyper::upgrade::on(response).await.map(Some)
    };
    // Reads and writes for `exchange`, and never completes.
    let drive_connection = async {
        let _ = connection.with_upgrades().await;
        pending().await
    };
    let upgraded: Result<_, hyper::Error> = tokio::select! {
        biased;
        response = exchange => response,
        never = drive_connection => never,
    };
    let upgraded = upgraded.inspect_err(|error| tracing::warn!(%error, "the proxy failed")).map_err(|_| NO_TUNNEL)?;
    let parts = upgraded.ok_or(NO_TUNNEL)?.downcast::<TokioIo<TcpStream>>().map_err(|_| NO_TUNNEL)?;
    // A receiver sends nothing before the client does.
    if parts.read_buf.is_empty() { Ok(parts.io.into_inner()) } else { Err(NO_TUNNEL) }
}

fn build_connect_request(proxy: &Intercept, target: &Target) -> Option<Request<Empty<Bytes>>> {
    let authority = format!("{}:{}", target.host()?, target.port);
    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = Uri::try_from(&authority).ok()?;
    request.headers_mut().insert(HOST, HeaderValue::try_from(authority).ok()?);
    if let Some(authorization) = proxy.basic_auth() {
        request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
    }
    Some(request)
}
