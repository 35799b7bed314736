//! Orders to upstreams: one HTTP request for each flow to be opened.
//!
//! `src/outbound/README.md` documents the interface for authors of connectors. This file has the parts that all orders
//! share; the body and the answer of each order are in the module of its flow. An order is never repeated: when it
//! fails, no flow is opened.

mod answer;
pub mod check;
pub mod doclocker;
mod error;
pub mod esign;
pub mod estamp;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod wealth;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Client, Response, StatusCode};
use sakshi_domain::flow::header::FlowHeader;
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_domain::limits::UPSTREAM_ANSWER_BYTES_MAX;
use sakshi_domain::request_id::RequestId;
use sakshi_supervision::FairSlots;
use sakshi_trace::TraceState;
use serde::Serialize;
use tokio::time::timeout;
use tracing::Instrument as _;
use url::Url;

use self::answer::Answer;
pub use self::error::UpstreamError;
use crate::egress::Egress;
use crate::error::ClientError;
use crate::recent::RecentCounts;

/// Options for sending orders to upstreams.
#[derive(Clone)]
pub struct UpstreamOptions {
    /// Token of this service at upstreams, without `Bearer`; visible ASCII. `Debug` does not show it.
    pub token: String,
    /// Limit on name resolution, connection and TLS handshake together.
    pub connect_timeout: Duration,
    /// Limit on the time until the end of the answer, connecting included.
    pub total_timeout: Duration,
    /// True if an upstream is called by HTTPS. Otherwise no root certificates are loaded.
    pub tls: bool,
    /// Settings of outgoing connections.
    pub egress: Egress,
}

/// Client that sends orders, the requests that open flows at upstreams. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct UpstreamClient {
    sender: Arc<dyn SendOrder>,
    total_timeout: Duration,
}

/// Sender of orders, each once.
pub trait SendOrder: fmt::Debug + Send + Sync + 'static {
    /// Sends the order, a JSON body, with the trace that the upstream may continue. Reads the body of its answer.
    fn send<'a>(&'a self, url: &'a Url, order: Vec<u8>, trace: Option<TraceState>) -> AnswerBody<'a>;
}

/// Future of the body of an upstream's answer.
pub type AnswerBody<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, UpstreamError>> + Send + 'a>>;

/// Sender of orders by HTTP. Connections are not reused: if the upstream closed one just as an order is sent, the order
/// would be lost.
struct HttpSender {
    http: Client,
    authorization: HeaderValue,
}

/// Initial capacity in bytes for the JSON of an order, in addition to its file.
const FILE_ORDER_BYTES: usize = 16 * 1_024;
/// Longest time that an order waits for a slot.
const SLOT_WAIT: Duration = Duration::from_secs(2);

/// The upstream for one kind of flow, with a limit on concurrent orders. So an upstream that hangs takes no capacity
/// from others, and a client takes none from other clients.
#[derive(Clone)]
pub struct Upstream {
    client: UpstreamClient,
    url: Url,
    slots: FairSlots<ClientId>,
    /// Counts of answers (kind 0) and failures (kind 1). Clones share them.
    recent: Arc<RecentCounts<2>>,
}

impl UpstreamClient {
    /// Builds a client.
    ///
    /// # Errors
    /// [`ClientError`] when no header can carry the token, or TLS cannot be set up.
    pub fn new(options: &UpstreamOptions) -> Result<Self, ClientError> {
        let http = options
            .egress
            .http_client(options.tls)?
            .connect_timeout(options.connect_timeout)
            .build()
            .map_err(ClientError::tls)?;
        let mut authorization =
            HeaderValue::from_str(&format!("Bearer {}", options.token)).map_err(|_| ClientError::Token)?;
        authorization.set_sensitive(true);
        Ok(Self::with_sender(Arc::new(HttpSender { http, authorization }), options.total_timeout))
    }

    /// Creates a client that uses this sender.
    #[must_use]
    pub fn with_sender(sender: Arc<dyn SendOrder>, total_timeout: Duration) -> Self {
        Self { sender, total_timeout }
    }

    /// Returns the upstream at this URL, which gets up to `in_flight_max` concurrent orders.
    #[must_use]
    pub fn upstream_at(&self, url: Url, in_flight_max: usize) -> Upstream {
        Upstream { client: self.clone(), url, slots: FairSlots::new(in_flight_max), recent: Arc::default() }
    }
}

impl Upstream {
    /// Returns the numbers of answered and of failed orders and questions in the last half hour to hour.
    #[must_use]
    pub fn recent(&self) -> [u64; 2] {
        self.recent.counts()
    }

    /// Sends an order of a client and reads its answer, a JSON object in UTF-8.
    async fn send(&self, client: &ClientId, order: Vec<u8>) -> Result<Answer, UpstreamError> {
        let span = sakshi_trace::order(|| self.url.origin().ascii_serialization());
        let result = self.send_in_span(client, order).instrument(span.clone()).await;
        // An order that waited in vain for a slot was not sent, so it says nothing about the upstream.
        if !matches!(result, Err(UpstreamError::Busy)) {
            self.recent.count(usize::from(result.is_err()));
        }
        if let Err(error) = &result {
            sakshi_trace::mark_failed(&span, error.code());
        }
        result
    }

    /// Sends an order with the trace, so that the upstream can continue it.
    async fn send_in_span(&self, client: &ClientId, order: Vec<u8>) -> Result<Answer, UpstreamError> {
        let _slot = self.slots.enter_within(client, SLOT_WAIT).await.ok_or(UpstreamError::Busy)?;
        let exchange = self.client.sender.send(&self.url, order, sakshi_trace::parent_of(&sakshi_trace::current()));
        let body = timeout(self.client.total_timeout, exchange).await.map_err(|_| UpstreamError::TimedOut)??;
        Answer::read(&body)
    }
}

impl SendOrder for HttpSender {
    fn send<'a>(&'a self, url: &'a Url, order: Vec<u8>, trace: Option<TraceState>) -> AnswerBody<'a> {
        let request = self.http.post(url.clone()).header(AUTHORIZATION, self.authorization.clone());
        let mut request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(order);
        if let Some(TraceState { parent, state }) = trace {
            request = request.header("traceparent", parent);
            if !state.is_empty() {
                request = request.header("tracestate", state);
            }
        }
        Box::pin(async move {
            let response = request.send().await.map_err(|error| to_error(&error))?;
            if response.status() != StatusCode::OK {
                return Err(UpstreamError::Refused(response.status().as_u16()));
            }
            read_body(response).await
        })
    }
}

/// Reads the body of an answer, up to the limit.
async fn read_body(mut response: Response) -> Result<Vec<u8>, UpstreamError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| to_error(&error))? {
        if body.len() + chunk.len() > UPSTREAM_ANSWER_BYTES_MAX {
            return Err(UpstreamError::Unreadable("is too long"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Maps an error of the HTTP client, whose only timeout is that of connecting.
fn to_error(error: &reqwest::Error) -> UpstreamError {
    if error.is_timeout() { UpstreamError::TimedOut } else { UpstreamError::Unreachable }
}

/// The app and the correlation id that every order names.
#[derive(Clone, Copy, Debug, Serialize)]
struct OrderContext<'a> {
    app_id: &'a AppId,
    request_id: &'a RequestId,
}

impl<'a> OrderContext<'a> {
    const fn new(header: &'a FlowHeader) -> Self {
        Self { app_id: &header.app, request_id: &header.request_id }
    }
}

/// Serialises an order without a file.
fn to_body(order: &impl Serialize) -> Vec<u8> {
    to_body_with_capacity(order, 0)
}

/// Serialises an order into a buffer of this initial capacity.
fn to_body_with_capacity(order: &impl Serialize, capacity: usize) -> Vec<u8> {
    let mut body = Vec::with_capacity(capacity);
    // Orders are plain data, which always serialise; the upstream would refuse a partial body.
    let _ = serde_json::to_writer(&mut body, order);
    body
}

impl fmt::Debug for UpstreamOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamOptions(connect {:?}, total {:?})", self.connect_timeout, self.total_timeout)
    }
}

impl fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpSender")
    }
}

/// Shows the origin only, because paths and queries may contain secrets.
impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upstream({}/…)", self.url.origin().ascii_serialization())
    }
}
