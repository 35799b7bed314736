//! The client for comparison with deliveries: it posts the same bytes, as many at a time, to the same receiver. Any
//! answer but a success is an error.

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
use sakshi_outbound::Egress;
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::Failure;
use crate::role::{commands, send_line};

const TIMEOUT: Duration = Duration::from_secs(20);

/// The way to send a webhook.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendMode {
    /// The service's webhook client, on a new connection each.
    Service,
    /// hyper alone, on a new connection each.
    New,
    /// hyper alone, on kept connections, one for each concurrent request.
    Kept,
}

/// The request, its destination, and the number left.
struct Batch {
    mode: SendMode,
    client: WebhookClient,
    url: WebhookUrl,
    address: SocketAddr,
    headers: HeaderMap,
    body: Bytes,
    left: AtomicUsize,
}

/// Runs the role.
pub(crate) fn serve() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    send_line(&json!({}))?;
    let mut orders = commands();
    while let Some(order) = runtime.block_on(orders.recv()) {
        match send(&order) {
            Ok(()) => send_line(&json!({}))?,
            Err(error) => send_line(&json!({ "failed": error.to_string() }))?,
        }
    }
    Ok(())
}

fn send(order: &Value) -> Result<(), Failure> {
    let number = |name: &str| {
        order[name].as_u64().and_then(|number| usize::try_from(number).ok()).ok_or("the order lacks a number")
    };
    let (threads, in_flight) = (number("threads")?, number("in_flight")?);
    let batch = Arc::new(Batch::read(order, number("send")?)?);
    let thread = |_| {
        let batch = Arc::clone(&batch);
        std::thread::spawn(move || batch.send(in_flight / threads))
    };
    let threads: Vec<_> = (0..threads).map(thread).collect();
    threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread of the sender panicked")?)
}

impl Batch {
    fn read(order: &Value, count: usize) -> Result<Self, Failure> {
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("the order lacks a text");
        let mode = match order["how"].as_str() {
            Some("service") => SendMode::Service,
            Some("new") => SendMode::New,
            Some("kept") => SendMode::Kept,
            _ => return Err("unknown send mode".into()),
        };
        let url = text(&order["to"])?;
        let authority =
            url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).ok_or("the address is no URL")?;
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(authority)?);
        for header in order["headers"].as_array().into_iter().flatten() {
            headers.insert(HeaderName::try_from(text(&header[0])?)?, HeaderValue::try_from(text(&header[1])?)?);
        }
        let options = WebhookClientOptions {
            allow_private: true,
            connect_timeout: TIMEOUT,
            total_timeout: TIMEOUT,
            egress: Egress::default(),
        };
        Ok(Self {
            mode,
            client: WebhookClient::new(&options)?,
            address: authority.parse()?,
            url: WebhookUrl::parse(&url, Schemes::HttpAndHttps).map_err(|_| "not a webhook's address")?,
            headers,
            body: text(&order["body"])?.into(),
            left: AtomicUsize::new(count),
        })
    }

    fn send(self: Arc<Self>, tasks: usize) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(Arc::clone(&self).task())).collect();
            for task in tasks {
                let done = task.await?;
                if done.is_err() {
                    self.left.store(0, Ordering::SeqCst);
                }
                done?;
            }
            Ok(())
        })
    }

    async fn task(self: Arc<Self>) -> Result<(), Failure> {
        let mut kept = if self.mode == SendMode::Kept { Some(connect(self.address).await?) } else { None };
        while self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
            match (self.mode, &mut kept) {
                (SendMode::Service, _) => self.attempt().await?,
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

/// Opens a connection, closed on drop.
async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
