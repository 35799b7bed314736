//! What the service's deliveries are compared with: a client that posts the same bytes, as many at
//! a time, to the same receiver. Any answer but a success fails it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use sakshi_domain::delivery::DeliveryOutcome;
use sakshi_domain::http_url::{Schemes, WebhookUrl};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::Failure;
use crate::role::{say, told};

const PATIENCE: Duration = Duration::from_secs(20);

/// How it is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the service's client for webhooks, on a new connection each.
    Service,
    /// By hyper alone, on a new connection each.
    New,
    /// By hyper alone, on as many connections as there are requests at a time.
    Kept,
}

/// What is sent, where, and what is left of it.
struct Parcel {
    way: Way,
    client: WebhookClient,
    url: WebhookUrl,
    address: SocketAddr,
    headers: HeaderMap,
    body: Bytes,
    left: AtomicUsize,
}

/// Plays the role.
pub(crate) fn serve() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    say(&json!({}))?;
    let mut orders = told();
    while let Some(order) = runtime.block_on(orders.recv()) {
        match send(&order) {
            Ok(()) => say(&json!({}))?,
            Err(error) => say(&json!({ "failed": error.to_string() }))?,
        }
    }
    Ok(())
}

fn send(order: &Value) -> Result<(), Failure> {
    let number = |name: &str| order[name].as_u64().and_then(|number| usize::try_from(number).ok()).ok_or("the order lacks a number");
    let (threads, in_flight) = (number("threads")?, number("in_flight")?);
    let parcel = Arc::new(Parcel::read(order, number("send")?)?);
    let thread = |_| {
        let parcel = Arc::clone(&parcel);
        std::thread::spawn(move || parcel.send(in_flight / threads))
    };
    let threads: Vec<_> = (0..threads).map(thread).collect();
    threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread of the sender panicked")?)
}

impl Parcel {
    fn read(order: &Value, count: usize) -> Result<Self, Failure> {
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("the order lacks a text");
        let way = match order["how"].as_str() {
            Some("service") => Way::Service,
            Some("new") => Way::New,
            Some("kept") => Way::Kept,
            _ => return Err("no such way to send".into()),
        };
        let url = text(&order["to"])?;
        let authority = url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).ok_or("the address is no URL")?;
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(authority)?);
        for header in order["headers"].as_array().into_iter().flatten() {
            headers.insert(HeaderName::try_from(text(&header[0])?)?, HeaderValue::try_from(text(&header[1])?)?);
        }
        let options =
            WebhookClientOptions { allow_private: true, connect_timeout: PATIENCE, total_timeout: PATIENCE, extra_roots_pem: None };
        Ok(Self {
            way,
            client: WebhookClient::new(&options)?,
            address: authority.parse()?,
            url: WebhookUrl::parse(&url, Schemes::HttpAndHttps).map_err(|_| "not a webhook's address")?,
            headers,
            body: text(&order["body"])?.into(),
            left: AtomicUsize::new(count),
        })
    }

    fn send(self: Arc<Self>, lanes: usize) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let lanes: Vec<_> = (0..lanes).map(|_| tokio::spawn(Arc::clone(&self).lane())).collect();
            for lane in lanes {
                let done = lane.await?;
                if done.is_err() {
                    self.left.store(0, Ordering::SeqCst);
                }
                done?;
            }
            Ok(())
        })
    }

    async fn lane(self: Arc<Self>) -> Result<(), Failure> {
        let mut kept = if self.way == Way::Kept { Some(connect(self.address).await?) } else { None };
        while self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            match (self.way, &mut kept) {
                (Way::Service, _) => self.attempt().await?,
                (_, Some(connection)) => {
                    connection.ready().await?;
                    self.post(connection).await?;
                }
                (_, None) => self.post(&mut connect(self.address).await?).await?,
            }
        }
        Ok(())
    }

    async fn attempt(&self) -> Result<(), Failure> {
        let attempt = self.client.attempt(&self.url, self.body.clone()).await;
        if attempt.outcome == DeliveryOutcome::Delivered { Ok(()) } else { Err(attempt.outcome.as_str().into()) }
    }

    async fn post(&self, connection: &mut SendRequest<Full<Bytes>>) -> Result<(), Failure> {
        let mut request = Request::new(Full::new(self.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = "/hook".parse()?;
        *request.headers_mut() = self.headers.clone();
        let response = connection.send_request(request).await?;
        if !response.status().is_success() {
            return Err(format!("a POST was answered with {}", response.status()).into());
        }
        response.into_body().collect().await?;
        Ok(())
    }
}

/// A connection; it closes when it is dropped.
async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
