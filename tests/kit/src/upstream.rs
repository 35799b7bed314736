//! The upstream of a node: a real HTTP server that records the orders of every flow. A test chooses its responses.
//!
//! The contract is src/outbound/README.md. Reports come from a connector, not from the upstream.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::waiting::{TIMEOUT, eventually};

/// The token that authenticates the node.
pub const TOKEN: &str = "upstream-token-of-these-tests-and-of-nobody-else";

/// Part of every personal URL of the upstream: anyone with such a URL can act for the person.
pub const CAPABILITY: &str = "capability-of-one-person";

/// The flows, as settings and paths name them.
const FLOWS: [&str; 9] = ["esign", "doclocker", "estamp", "wealth", "pan", "gst", "bank_account", "ifsc", "voter_id"];

/// The upstream's response to an order.
#[derive(Clone, Debug)]
pub enum UpstreamBehaviour {
    /// A response that follows the contract.
    Accept,
    /// A response that follows the contract, after a delay.
    SlowAnswer(Duration),
    /// This text, with status 200.
    Body(String),
    /// A response that follows the contract, except for this status.
    Status(u16),
    /// A redirect to this URL.
    Redirect(String),
    /// No response: the connection is closed.
    Drop,
    /// No response: the connection stays open.
    Hang,
}

/// An order as it arrived.
#[derive(Clone, Debug)]
pub struct Order {
    pub flow: String,
    pub headers: HeaderMap,
    pub body: Value,
}

struct Shared {
    behaviour: Mutex<UpstreamBehaviour>,
    orders: Mutex<Vec<Order>>,
}

/// A running upstream, stopped on drop with all connections.
pub struct Upstream {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: AbortHandle,
}

impl Upstream {
    /// Starts an upstream whose responses follow the contract.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared { behaviour: Mutex::new(UpstreamBehaviour::Accept), orders: Mutex::default() });
        let server = tokio::spawn(serve(listener, Arc::clone(&shared))).abort_handle();
        Self { address, shared, server }
    }

    /// Returns the settings of a node that orders every flow here.
    pub fn settings(&self) -> Vec<(String, String)> {
        let urls = FLOWS.iter().map(|flow| (format!("UPSTREAMS__{}_URL", flow.to_uppercase()), self.url(flow)));
        urls.chain([("UPSTREAMS__TOKEN".to_owned(), TOKEN.to_owned())]).collect()
    }

    /// Returns the URL for orders of a flow.
    pub fn url(&self, flow: &str) -> String {
        format!("http://{}/orders/{flow}", self.address)
    }

    /// Changes the responses from now on.
    pub fn set_behaviour(&self, behaviour: UpstreamBehaviour) {
        *self.shared.behaviour.lock().unwrap() = behaviour;
    }

    /// Returns the orders so far, in order of arrival.
    pub fn orders(&self) -> Vec<Order> {
        self.shared.orders.lock().unwrap().clone()
    }

    /// Returns the last order, which must exist.
    pub fn last_order(&self) -> Order {
        self.orders().pop().expect("an order")
    }

    /// Waits for `count` orders and returns them.
    pub async fn wait_for_orders(&self, count: usize) -> Vec<Order> {
        eventually("the orders", TIMEOUT, || async { Some(self.orders()).filter(|orders| orders.len() >= count) }).await
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    let shared = Arc::clone(&shared);
                    connections.spawn(async move {
                        let service = service_fn(|request| handle(request, &shared));
                        // The client may have hung up.
                        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                    });
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

/// The error that closes the connection without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the upstream hangs up")]
struct HungUp;

impl From<Infallible> for HungUp {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

async fn handle(request: Request<Incoming>, shared: &Shared) -> Result<Response<Full<Bytes>>, HungUp> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map_err(|_| HungUp)?.to_bytes();
    let flow = head.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let contract_response = good_response(&flow, &body).to_string();
    shared.orders.lock().unwrap().push(Order { flow, headers: head.headers, body });

    let behaviour = shared.behaviour.lock().unwrap().clone();
    let (status, text) = match &behaviour {
        UpstreamBehaviour::Accept | UpstreamBehaviour::Redirect(_) => (200, contract_response),
        UpstreamBehaviour::SlowAnswer(time) => {
            sleep(*time).await;
            (200, contract_response)
        }
        UpstreamBehaviour::Body(text) => (200, text.clone()),
        UpstreamBehaviour::Status(status) => (*status, contract_response),
        UpstreamBehaviour::Drop => return Err(HungUp),
        UpstreamBehaviour::Hang => pending().await,
    };
    let mut response = Response::new(Full::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    *response.status_mut() = StatusCode::from_u16(status).map_err(|_| HungUp)?;
    if let UpstreamBehaviour::Redirect(target) = behaviour {
        *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
        response.headers_mut().insert(LOCATION, target.parse().map_err(|_| HungUp)?);
    }
    Ok(response)
}

/// Returns a new URL for one person.
fn personal_url() -> String {
    format!("https://upstream.example/{CAPABILITY}/{}", uuid::Uuid::new_v4())
}

/// Builds a response that follows the contract.
fn good_response(flow: &str, order: &Value) -> Value {
    match flow {
        "esign" => {
            let signers = order["signerInfo"].as_array().cloned().unwrap_or_default();
            let urls =
                signers.iter().map(|signer| json!({"signerId": signer["signerId"], "signingUrl": personal_url()}));
            json!({"signerInfo": urls.collect::<Vec<_>>()})
        }
        "doclocker" => json!({"requestUrl": personal_url()}),
        "wealth" => json!({"consentHandle": "handle-1", "requestUrl": personal_url()}),
        "gst" | "bank_account" | "ifsc" | "voter_id" => json!({"status": "valid", "name_match": true}),
        "pan" => {
            json!({"status": "valid", "category": "individual", "name_match": true, "nationalid_seeding_status": "y"})
        }
        _ => json!({}),
    }
}
