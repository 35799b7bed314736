//! A webhook receiver on hyper, on all cores: answers every POST with 200 and an empty body, counts, and measures the
//! rate by its own clock.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, HOST};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

use crate::role::{commands, send_line};
use crate::{Failure, load};

/// Time limit for the arrival of the announced requests.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The requests since the count started, and the state of the receiver.
struct Tally {
    count: AtomicU64,
    span: Mutex<Span>,
    /// Notified when all measured requests have arrived.
    complete: Notify,
    /// True while requests wait at the gate before they are answered.
    is_holding: AtomicBool,
    /// True while the gate is open.
    gate: watch::Sender<bool>,
    /// True if the next request becomes the sample.
    wants_sample: AtomicBool,
    sample: Mutex<Value>,
    /// True once anything other than a complete POST has arrived.
    has_broken_request: AtomicBool,
}

/// The measured requests: those after number `first` up to number `last`.
#[derive(Clone, Copy)]
struct Span {
    first: u64,
    last: u64,
    started: Instant,
    duration: Duration,
}

/// Runs the role of the receiver.
pub(crate) fn serve() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(load::cores()).enable_all().build()?;
    runtime.block_on(async {
        // All loopback addresses, so that one receiver has many origins.
        let listener = TcpListener::bind("0.0.0.0:0").await?;
        let url = format!("http://127.0.0.1:{}/hook", listener.local_addr()?.port());
        let tally = Arc::new(Tally::new());
        tokio::spawn(accept(listener, Arc::clone(&tally)));
        send_line(&json!({ "url": url }))?;
        let mut commands = commands();
        while let Some(command) = commands.recv().await {
            tally.carry_out(&command).await?;
        }
        Ok(())
    })
}

async fn accept(listener: TcpListener, tally: Arc<Tally>) {
    while let Ok((stream, _)) = listener.accept().await {
        let tally = Arc::clone(&tally);
        tokio::spawn(async move {
            // Otherwise an answer could wait for a delayed acknowledgement.
            let _ = stream.set_nodelay(true);
            let service = service_fn(|request| tally.answer(request));
            // A broken connection leaves its request uncounted, which fails the measurement.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    fn new() -> Self {
        Self {
            count: AtomicU64::new(0),
            span: Mutex::new(Span { first: 0, last: 0, started: Instant::now(), duration: Duration::ZERO }),
            complete: Notify::new(),
            is_holding: AtomicBool::new(false),
            gate: watch::Sender::new(true),
            wants_sample: AtomicBool::new(true),
            sample: Mutex::default(),
            has_broken_request: AtomicBool::new(false),
        }
    }

    /// Carries out a command: holds requests, returns the sample, or counts requests and measures their time.
    async fn carry_out(&self, command: &Value) -> Result<(), Failure> {
        if command["hold"].as_bool() == Some(true) {
            self.gate.send_replace(false);
            self.is_holding.store(true, Ordering::SeqCst);
            return send_line(&json!({}));
        }
        if command["sample"].as_bool() == Some(true) {
            let sample = lock(&self.sample).take();
            return send_line(&sample);
        }
        let number = |name: &str| command["count"][name].as_u64().ok_or("the count is missing");
        let (warm_up, measured) = (number("warm")?, number("measured")?);
        *lock(&self.span) =
            Span { first: warm_up, last: warm_up + measured, started: Instant::now(), duration: Duration::ZERO };
        self.count.store(0, Ordering::SeqCst);
        self.is_holding.store(false, Ordering::SeqCst);
        self.gate.send_replace(true);
        send_line(&json!({}))?;
        let all_arrived = timeout(TIMEOUT, self.complete.notified()).await.is_ok();
        let count = self.count.load(Ordering::SeqCst);
        if !all_arrived || self.has_broken_request.load(Ordering::SeqCst) {
            return send_line(&json!({ "failed": format!("{count} of {} requests arrived, or one of them was \
                    broken", warm_up + measured) }));
        }
        let duration = lock(&self.span).duration;
        send_line(&json!({ "seconds": duration.as_secs_f64() }))
    }

    /// Answers a webhook, as soon as the gate is open. Keeps one request as the sample that the bare client sends.
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) if head.method == Method::POST => body.to_bytes(),
            _ => {
                self.has_broken_request.store(true, Ordering::SeqCst);
                let mut refusal = Response::new(Full::default());
                *refusal.status_mut() = StatusCode::BAD_REQUEST;
                return Ok(refusal);
            }
        };
        if self.is_holding.load(Ordering::Relaxed) {
            // The gate lives as long as the process.
            let _ = self.gate.subscribe().wait_for(|open| *open).await;
        }
        if self.wants_sample.swap(false, Ordering::Relaxed) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            // The bare client sets these headers itself.
            let others = head.headers.iter().filter(|(name, _)| **name != HOST && **name != CONTENT_LENGTH);
            let headers: Vec<[String; 2]> =
                others.map(|(name, value)| [name.to_string(), text(value.as_bytes())]).collect();
            *lock(&self.sample) = json!({ "headers": headers, "body": text(&body) });
        }
        self.count_request();
        Ok(Response::new(Full::default()))
    }

    fn count_request(&self) {
        let number = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        let mut span = lock(&self.span);
        if number == span.first {
            span.started = Instant::now();
        } else if number == span.last {
            span.duration = span.started.elapsed();
            self.complete.notify_one();
        }
    }
}
