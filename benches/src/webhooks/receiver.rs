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

/// The requests since the count began, and the state of the receiver.
struct Tally {
    seen: AtomicU64,
    span: Mutex<Span>,
    complete: Notify,
    held: AtomicBool,
    gate: watch::Sender<bool>,
    /// True if the next request becomes the sample.
    keep: AtomicBool,
    sample: Mutex<Value>,
    /// True once something other than a complete POST arrived.
    broken: AtomicBool,
}

/// The measured requests: from the one after number `from` up to number `to`.
#[derive(Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
    began: Instant,
    took: Duration,
}

/// Runs the role.
pub(crate) fn serve() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(load::cores()).enable_all().build()?;
    runtime.block_on(async {
        // All loopback addresses, so that one receiver has many origins.
        let listener = TcpListener::bind("0.0.0.0:0").await?;
        let url = format!("http://127.0.0.1:{}/hook", listener.local_addr()?.port());
        let tally = Arc::new(Tally::new());
        tokio::spawn(accept(listener, Arc::clone(&tally)));
        send_line(&json!({ "url": url }))?;
        let mut orders = commands();
        while let Some(order) = orders.recv().await {
            tally.handle(&order).await?;
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
            let service = service_fn(|request| tally.take(request));
            // A broken connection leaves its request uncounted, which fails the measurement.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tally {
    fn new() -> Self {
        Self {
            seen: AtomicU64::new(0),
            span: Mutex::new(Span { from: 0, to: 0, began: Instant::now(), took: Duration::ZERO }),
            complete: Notify::new(),
            held: AtomicBool::new(false),
            gate: watch::Sender::new(true),
            keep: AtomicBool::new(true),
            sample: Mutex::default(),
            broken: AtomicBool::new(false),
        }
    }

    async fn handle(&self, order: &Value) -> Result<(), Failure> {
        if order["hold"].as_bool() == Some(true) {
            self.gate.send_replace(false);
            self.held.store(true, Ordering::SeqCst);
            return send_line(&json!({}));
        }
        if order["sample"].as_bool() == Some(true) {
            let sample = lock(&self.sample).take();
            return send_line(&sample);
        }
        let number = |name: &str| order["count"][name].as_u64().ok_or("the count is missing");
        let (from, measured) = (number("warm")?, number("measured")?);
        *lock(&self.span) = Span { from, to: from + measured, began: Instant::now(), took: Duration::ZERO };
        self.seen.store(0, Ordering::SeqCst);
        self.held.store(false, Ordering::SeqCst);
        self.gate.send_replace(true);
        send_line(&json!({}))?;
        let arrived = timeout(TIMEOUT, self.complete.notified()).await.is_ok();
        let seen = self.seen.load(Ordering::SeqCst);
        if !arrived || self.broken.load(Ordering::SeqCst) {
            return send_line(&json!({ "failed": format!("{seen} of {} requests arrived, or one of them was \
                    broken", from + measured) }));
        }
        let took = lock(&self.span).took;
        send_line(&json!({ "seconds": took.as_secs_f64() }))
    }

    async fn take(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = match body.collect().await {
            Ok(body) if head.method == Method::POST => body.to_bytes(),
            _ => {
                self.broken.store(true, Ordering::SeqCst);
                let mut refusal = Response::new(Full::default());
                *refusal.status_mut() = StatusCode::BAD_REQUEST;
                return Ok(refusal);
            }
        };
        if self.held.load(Ordering::Relaxed) {
            // The gate lives as long as the process.
            let _ = self.gate.subscribe().wait_for(|open| *open).await;
        }
        if self.keep.swap(false, Ordering::Relaxed) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            // A client that sends it again sets these itself.
            let others = head.headers.iter().filter(|(name, _)| **name != HOST && **name != CONTENT_LENGTH);
            let headers: Vec<[String; 2]> =
                others.map(|(name, value)| [name.to_string(), text(value.as_bytes())]).collect();
            *lock(&self.sample) = json!({ "headers": headers, "body": text(&body) });
        }
        self.count();
        Ok(Response::new(Full::default()))
    }

    fn count(&self) {
        let number = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        let mut span = lock(&self.span);
        if number == span.from {
            span.began = Instant::now();
        } else if number == span.to {
            span.took = span.began.elapsed();
            self.complete.notify_one();
        }
    }
}
