//! A webhook receiver for the demo, `sakshi listen` and tests. A [`WebhookReceiver`] records requests and
//! answers as configured. [`listen`] passes each request to the caller, who decides the answer.
//!
//! It is an HTTP/1.1 server on the caller's runtime. Dropping it closes all connections.

use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, LOCATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_domain::time::Timestamp;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Maximum bytes of a body. A longer body closes the connection.
const BODY_BYTES_MAX: usize = 32 * 1_024 * 1_024;
/// Time after which [`Behaviour::CloseIdle`] closes an idle connection.
const IDLE_TIME: Duration = Duration::from_millis(2);

/// The way in which a receiver responds to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Answers with this status.
    Answer(u16),
    /// Keeps the connection open and never answers.
    Hang,
    /// Closes the connection without an answer.
    Drop,
    /// Answers 302 with this `Location`.
    Redirect(String),
    /// Answers 200 after a while.
    SlowAnswer(Duration),
    /// Answers 200 and closes the kept-alive connection a moment later, even if another request is arriving.
    CloseIdle,
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Received {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// HTTP headers.
    pub headers: HeaderMap,
    /// Complete body.
    pub body: Bytes,
    /// Time at which the request was complete.
    pub at: Timestamp,
}

/// A request that waits for a response. Dropping it closes the connection.
#[derive(Debug)]
pub struct Arrival {
    /// The waiting request.
    pub request: Received,
    behaviour: oneshot::Sender<Behaviour>,
}

impl Arrival {
    /// Responds to the request as `behaviour` says.
    pub fn respond(self, behaviour: Behaviour) {
        // The sender may have closed the connection meanwhile.
        let _ = self.behaviour.send(behaviour);
    }
}

/// The handling of requests.
enum Handler {
    /// Records requests and responds as configured.
    Record(Recorder),
    /// Passes requests to the caller of [`listen`].
    Forward(mpsc::Sender<Arrival>),
}

/// The requests so far, and the behaviour for later ones.
struct Recorder {
    behaviour: Mutex<Behaviour>,
    received: Mutex<Vec<Received>>,
    /// Number of received requests, for those who wait for it.
    count: watch::Sender<usize>,
}

/// A running receiver.
pub struct WebhookReceiver {
    address: SocketAddr,
    handler: Arc<Handler>,
    server: AbortHandle,
}

/// Starts a receiver at an address, on the current tokio or actix runtime. The channel yields the requests, one at a
/// time.
///
/// # Errors
/// The address cannot be bound.
pub async fn listen(address: SocketAddr) -> io::Result<(WebhookReceiver, mpsc::Receiver<Arrival>)> {
    let (sender, arrivals) = mpsc::channel(1);
    Ok((WebhookReceiver::bind(address, Handler::Forward(sender)).await?, arrivals))
}

impl WebhookReceiver {
    /// Starts a receiver on a free port of the loopback interface, on the current tokio or actix runtime.
    ///
    /// # Errors
    /// No port could be bound.
    pub async fn start(behaviour: Behaviour) -> io::Result<Self> {
        let recorder =
            Recorder { behaviour: Mutex::new(behaviour), received: Mutex::default(), count: watch::Sender::new(0) };
        Self::bind(SocketAddr::from(([127, 0, 0, 1], 0)), Handler::Record(recorder)).await
    }

    /// Listens on an address, and serves requests with a handler.
    async fn bind(address: SocketAddr, handler: Handler) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let handler = Arc::new(handler);
        let server = tokio::spawn(serve(listener, Arc::clone(&handler))).abort_handle();
        Ok(Self { address, handler, server })
    }

    /// Returns the recorder; `None` for a receiver from [`listen`].
    fn recorder(&self) -> Option<&Recorder> {
        match &*self.handler {
            Handler::Record(recorder) => Some(recorder),
            Handler::Forward(_) => None,
        }
    }

    /// Returns the address on which the receiver listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL of a path on the receiver. The path begins with `/`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sets the behaviour for later requests. It has no effect on a receiver from [`listen`].
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        if let Some(recorder) = self.recorder() {
            *lock(&recorder.behaviour) = behaviour;
        }
    }

    /// Returns the requests received so far, in order. The list is empty for a receiver from [`listen`].
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.recorder().map_or_else(Vec::new, |recorder| lock(&recorder.received).clone())
    }

    /// Waits until at least `count` requests have arrived, or the time limit has passed. Returns all requests.
    pub async fn wait_for(&self, count: usize, time_limit: Duration) -> Vec<Received> {
        if let Some(recorder) = self.recorder() {
            let mut received = recorder.count.subscribe();
            // The number of returned requests shows a timeout.
            let _ = timeout(time_limit, received.wait_for(|received| *received >= count)).await;
        }
        self.received()
    }
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// Accepts connections, and serves each in a task that ends with this future.
async fn serve(listener: TcpListener, handler: Arc<Handler>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve_connection(stream, Arc::clone(&handler)));
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

/// Serves one connection, and closes it when idle if a response says so.
async fn serve_connection(stream: TcpStream, handler: Arc<Handler>) {
    let must_close_idle = AtomicBool::new(false);
    let service = service_fn(|request| respond(request, &handler, &must_close_idle));
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    poll_fn(|context| match connection.as_mut().poll(context) {
        Poll::Ready(_ended) => Poll::Ready(()),
        // The poll that produced a small response has also written it.
        Poll::Pending if must_close_idle.load(Ordering::Relaxed) => Poll::Ready(()),
        Poll::Pending => Poll::Pending,
    })
    .await;
    if must_close_idle.load(Ordering::Relaxed) {
        sleep(IDLE_TIME).await;
    }
}

/// Responds to a request as the handler says. An error closes the connection.
async fn respond(
    request: Request<Incoming>,
    handler: &Handler,
    must_close_idle: &AtomicBool,
) -> Result<Response<Full<Bytes>>, ConnectionDropped> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|_| ConnectionDropped)?.to_bytes();
    let path = head.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let received = Received { method: head.method, path, headers: head.headers, body, at: SystemClock.now() };
    let behaviour = match handler {
        Handler::Record(recorder) => recorder.record(received),
        Handler::Forward(arrivals) => forward(arrivals, received).await?,
    };

    let mut response = Response::new(Full::default());
    match behaviour {
        Behaviour::Answer(status) => {
            *response.status_mut() = StatusCode::from_u16(status).map_err(|_| ConnectionDropped)?;
        }
        Behaviour::Hang => pending().await,
        Behaviour::Drop => return Err(ConnectionDropped),
        Behaviour::Redirect(target) => {
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert(LOCATION, target.parse().map_err(|_| ConnectionDropped)?);
        }
        Behaviour::SlowAnswer(delay) => sleep(delay).await,
        Behaviour::CloseIdle => must_close_idle.store(true, Ordering::Relaxed),
    }
    Ok(response)
}

impl Recorder {
    /// Records a request, and returns the behaviour for it.
    fn record(&self, request: Received) -> Behaviour {
        let behaviour = lock(&self.behaviour).clone();
        let mut received = lock(&self.received);
        received.push(request);
        self.count.send_replace(received.len());
        behaviour
    }
}

/// Passes a request to the caller of [`listen`], and waits for the behaviour that it chooses.
async fn forward(arrivals: &mpsc::Sender<Arrival>, request: Received) -> Result<Behaviour, ConnectionDropped> {
    let (sender, behaviour) = oneshot::channel();
    arrivals.send(Arrival { request, behaviour: sender }).await.map_err(|_| ConnectionDropped)?;
    behaviour.await.map_err(|_| ConnectionDropped)
}

/// Makes hyper close the connection.
#[derive(Debug, thiserror::Error)]
#[error("the receiver closes the connection")]
struct ConnectionDropped;

/// Locks a mutex. No critical section can leave inconsistent data, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
