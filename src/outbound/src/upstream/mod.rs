//! What this service asks of upstreams: one HTTP order for each flow that is to be opened.
//!
//! `src/outbound/README.md` is the interface for whoever writes a connector. Here is the exchange
//! that all orders share and what can become of it; what each order says, and which answer it wants,
//! is in the module of its flow. Nothing is repeated: an order that failed opens no flow.

mod answer;
pub mod doclocker;
pub mod esign;
pub mod estamp;
pub mod pan;
mod strict;
pub mod wealth;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Certificate, Client, Response, StatusCode, redirect, retry};
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::ids::AppId;
use sakshi_domain::limits::UPSTREAM_ANSWER_BYTES_MAX;
use sakshi_domain::request_id::RequestId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error as ThisError;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use url::Url;

pub use answer::PageUrl;

use self::strict::Object;
use crate::client::ClientError;

/// How orders are sent.
#[derive(Clone)]
pub struct UpstreamOptions {
    /// What upstreams know this service by, without `Bearer`; visible ASCII. Never shown.
    pub token: String,
    /// Bound on name resolution, connection and TLS handshake together.
    pub connect_timeout: Duration,
    /// Bound on everything up to the end of the answer, connecting included.
    pub total_timeout: Duration,
    /// Certificate authorities trusted besides the system's, as PEM.
    pub extra_roots_pem: Option<Vec<u8>>,
}

/// Why an order was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ThisError)]
pub enum UpstreamError {
    /// There was no whole answer in time; whether the order was taken is not known.
    #[error("the upstream did not answer in time")]
    TimedOut,
    /// There was no connection, or it ended early.
    #[error("the upstream cannot be reached")]
    Unreachable,
    /// It answered with another status than 200; a redirect is one.
    #[error("the upstream answered with status {0}")]
    Refused(u16),
    /// As many orders of this kind as may be are under way; this one was not sent.
    #[error("too many orders are under way")]
    Busy,
    /// It answered 200, and the rest was not what was asked for. The words say nothing of the content.
    #[error("the upstream's answer {0}")]
    Unreadable(&'static str),
}

/// Sends orders. Cloning is cheap; no connection is used twice, because an upstream that closes one
/// at the moment of sending would lose an order that is not repeated.
#[derive(Clone)]
pub struct UpstreamClient {
    http: Client,
    authorization: HeaderValue,
    total_timeout: Duration,
}

/// Where the orders of one flow go, and how many may be under way: one that hangs must not take what the others need.
#[derive(Clone)]
pub struct Upstream {
    client: UpstreamClient,
    url: Url,
    room: Arc<Semaphore>,
}

impl UpstreamClient {
    /// A client with these options.
    ///
    /// # Errors
    /// Unreadable extra roots, a token that no header can carry, or no usable TLS configuration.
    pub fn new(options: &UpstreamOptions) -> Result<Self, ClientError> {
        let mut builder = Client::builder()
            .http1_only()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .retry(retry::never())
            .pool_max_idle_per_host(0)
            .referer(false)
            .connect_timeout(options.connect_timeout);
        if let Some(pem) = &options.extra_roots_pem {
            let roots = Certificate::from_pem_bundle(pem).ok().filter(|roots| !roots.is_empty());
            builder = builder.tls_certs_merge(roots.ok_or(ClientError::ExtraRoots)?);
        }
        let http = builder.build().map_err(ClientError::tls)?;
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", options.token)).map_err(|_| ClientError::Token)?;
        authorization.set_sensitive(true);
        Ok(Self { http, authorization, total_timeout: options.total_timeout })
    }

    /// The upstream at this URL, which gets up to `most` orders at a time.
    #[must_use]
    pub fn at(&self, url: Url, most: usize) -> Upstream {
        Upstream { client: self.clone(), url, room: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))) }
    }
}

impl Upstream {
    /// Sends an order and reads its answer, a JSON object in UTF-8 throughout.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn ask<A: DeserializeOwned>(&self, order: Vec<u8>) -> Result<A, UpstreamError> {
        let _place = self.room.try_acquire().map_err(|_| UpstreamError::Busy)?;
        let exchange = async {
            let request = self.client.http.post(self.url.clone()).header(AUTHORIZATION, self.client.authorization.clone());
            let request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(order);
            let response = request.send().await.map_err(|error| failure(&error))?;
            if response.status() != StatusCode::OK {
                return Err(UpstreamError::Refused(response.status().as_u16()));
            }
            read(response).await
        };
        let body = timeout(self.client.total_timeout, exchange).await.map_err(|_| UpstreamError::TimedOut)??;
        // The reader of bytes would not look into the texts of members that nobody asks for.
        let text = str::from_utf8(&body).map_err(|_| UpstreamError::Unreadable("is not in UTF-8"))?;
        let read = serde_json::from_str(text).map_err(|_| UpstreamError::Unreadable("is not the JSON that was asked for"));
        read.map(|Object(answer)| answer)
    }
}

/// The body of an answer, as far as one may be long.
async fn read(mut response: Response) -> Result<Vec<u8>, UpstreamError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| failure(&error))? {
        if body.len() + chunk.len() > UPSTREAM_ANSWER_BYTES_MAX {
            return Err(UpstreamError::Unreadable("is too long"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The connection has a time-out of its own.
fn failure(error: &reqwest::Error) -> UpstreamError {
    if error.is_timeout() { UpstreamError::TimedOut } else { UpstreamError::Unreachable }
}

/// What every order says of the request that it comes from.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Origin<'a> {
    app_id: &'a AppId,
    request_id: &'a RequestId,
}

impl<'a> Origin<'a> {
    /// That of a request by this app.
    #[must_use]
    pub const fn of(app_id: &'a AppId, request_id: &'a RequestId) -> Self {
        Self { app_id, request_id }
    }

    const fn opening(opened: &'a FlowHeader) -> Self {
        Self::of(&opened.app, &opened.request_id)
    }
}

/// The answer to an order that nothing is asked back for: any JSON object.
#[derive(Debug, Deserialize)]
struct Taken {}

/// An order as it is sent; writing one into memory does not fail.
fn written(order: &impl Serialize, length: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(length);
    // What is written is plain data, and a part of it alone would be refused as unreadable.
    let _ = serde_json::to_writer(&mut body, order);
    body
}

impl fmt::Debug for UpstreamOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamOptions(connect {:?}, total {:?})", self.connect_timeout, self.total_timeout)
    }
}

impl fmt::Debug for UpstreamClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamClient(total {:?})", self.total_timeout)
    }
}

/// Shows the origin only: paths and queries may hold secrets.
impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({}/…)", self.url.origin().ascii_serialization())
    }
}
