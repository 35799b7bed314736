//! The client for comparison with deliveries: it posts the same bytes, as many at a time, to the same receiver. An
//! answer other than a success is an error.

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
    /// hyper alone, on keep-alive connections, one for each concurrent request.
    KeepAlive,
}

/// A request, its destination, and the number of times that it is still to be sent.
struct Batch {
    mode: SendMode,
    client: WebhookClient,
    url: WebhookUrl,
    address: SocketAddr,
    headers: HeaderMap,
    body: Bytes,
    remaining: AtomicUsize,
}

/// Runs the role of the sender.
pub(crate) fn serve() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    send_line(&json!({}))?;
    let mut commands = commands();
    while let Some(command) = runtime.block_on(commands.recv()) {
        match send_batch(&command) {
            Ok(()) => send_line(&json!({}))?,
            Err(error) => send_line(&json!({ "failed": error.to_string() }))?,
        }
    }
    Ok(())
}

/// Sends the webhooks of a command from its number of threads, and waits until all have been answered.
fn send_batch(command: &Value) -> Result<(), Failure> {
    let number = |name: &str| {
        command[name].as_u64().and_then(|number| usize::try_from(number).ok()).ok_or("the command lacks a number")
    };
    let (threads, in_flight) = (number("threads")?, number("in_flight")?);
    let batch = Arc::new(Batch::from_command(command, number("send")?)?);
    let thread = |_| {
        let batch = Arc::clone(&batch);
        std::thread::spawn(move || batch.send(in_flight / threads))
    };
    let threads: Vec<_> = (0..threads).map(thread).collect();
    threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread of the sender panicked")?)
}

impl Batch {
    /// Reads the request of a command, to be sent `count` times.
    fn from_command(command: &Value, count: usize) -> Result<Self, Failure> {
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("the command lacks a text");
        let mode = match command["how"].as_str() {
            Some("service") => SendMode::Service,
            Some("new") => SendMode::New,
            Some("kept") => SendMode::KeepAlive,
            _ => return Err("unknown send mode".into()),
        };
        let url = text(&command["to"])?;
        let authority =
            url.strip_prefix("http://").and_then(|rest| rest.split('/').next()).ok_or("the address is no URL")?;
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(authority)?);
        for header in command["headers"].as_array().into_iter().flatten() {
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
            url: WebhookUrl::parse(&url, Schemes::HttpAndHttps).map_err(|_| "not a webhook's URL")?,
            headers,
            body: text(&command["body"])?.into(),
            remaining: AtomicUsize::new(count),
        })
    }

    /// Sends the remaining requests from concurrent tasks on this thread; other threads take their share of them.
    fn send(self: Arc<Self>, tasks: usize) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let tasks: Vec<_> = (0..tasks).map(|_| tokio::spawn(Arc::clone(&self).run_task())).collect();
            for task in tasks {
                let result = task.await?;
                if result.is_err() {
                    self.remaining.store(0, Ordering::SeqCst);
                }
                result?;
            }
            Ok(())
        })
    }

    /// Sends one request after another until none remains.
    async fn run_task(self: Arc<Self>) -> Result<(), Failure> {
        let mut keep_alive = if self.mode == SendMode::KeepAlive { Some(connect(self.address).await?) } else { None };
        while self
            .remaining
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| remaining.checked_sub(1))
            .is_ok()
        {
            match (self.mode, &mut keep_alive) {
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

    /// Sends the request with the service's client.
    async fn attempt(&self) -> Result<(), Failure> {
        let attempt = self.client.attempt(&self.url, self.body.clone()).await;
        if attempt.outcome == DeliveryOutcome::Delivered { Ok(()) } else { Err(attempt.outcome.as_str().into()) }
    }

    /// Sends the request with hyper, and reads the answer to its end.
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

/// Opens a connection, which is closed on drop.
async fn connect(address: SocketAddr) -> Result<SendRequest<Full<Bytes>>, Failure> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}
