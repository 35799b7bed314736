//! A small webhook receiver, for the demo, for `sakshi listen` and for tests: it records what arrives
//! and answers as it is told to, well or badly. [`listen`] asks about each request instead, and keeps
//! none.
//!
//! It is a real HTTP/1.1 server on the caller's runtime, and it ends, connections included, when it
//! is dropped.

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

/// Bytes of a body that is recorded; a longer one breaks the connection.
const BODY_BYTES_MAX: usize = 32 * 1_024 * 1_024;
/// How long [`Behaviour::CloseIdle`] keeps a connection before closing it.
const IDLE_TIME: Duration = Duration::from_millis(2);

/// How the receiver treats the requests that it records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Answers with this status.
    Answer(u16),
    /// Never answers and keeps the connection open.
    Hang,
    /// Closes the connection without an answer.
    Drop,
    /// Answers 302 with this `Location`.
    Redirect(String),
    /// Answers 200 after a while.
    SlowAnswer(Duration),
    /// Answers 200, promises to keep the connection, and closes it a moment later without looking
    /// whether a request is arriving.
    CloseIdle,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    /// Its method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// When the last byte of it had arrived.
    pub at: Timestamp,
}

/// A request that waits to be told how it is treated; dropping it closes the connection.
#[derive(Debug)]
pub struct Arrival {
    /// The request.
    pub request: Received,
    told: oneshot::Sender<Behaviour>,
}

impl Arrival {
    /// Treats the request like this.
    pub fn treat(self, behaviour: Behaviour) {
        // Whoever sent it may have hung up meanwhile.
        let _ = self.told.send(behaviour);
    }
}

/// Says how a request is treated.
enum Judge {
    /// Every one like this, after it was recorded.
    Fixed(Recorder),
    /// Whoever listens says it for each.
    Asked(mpsc::Sender<Arrival>),
}

struct Recorder {
    behaviour: Mutex<Behaviour>,
    received: Mutex<Vec<Received>>,
    count: watch::Sender<usize>,
}

/// A running receiver.
pub struct WebhookReceiver {
    address: SocketAddr,
    judge: Arc<Judge>,
    server: AbortHandle,
}

/// Starts a receiver at an address, on the current tokio or actix runtime. What arrives comes out of
/// the channel, one at a time, and waits there to be told how it is treated.
///
/// # Errors
/// The address cannot be bound.
pub async fn listen(address: SocketAddr) -> io::Result<(WebhookReceiver, mpsc::Receiver<Arrival>)> {
    let (arrivals, arrived) = mpsc::channel(1);
    Ok((WebhookReceiver::bind(address, Judge::Asked(arrivals)).await?, arrived))
}

impl WebhookReceiver {
    /// Starts on a free port of the loopback interface, on the current tokio or actix runtime.
    ///
    /// # Errors
    /// No port could be bound.
    pub async fn start(behaviour: Behaviour) -> io::Result<Self> {
        let recorder = Recorder { behaviour: Mutex::new(behaviour), received: Mutex::default(), count: watch::Sender::new(0) };
        Self::bind(SocketAddr::from(([127, 0, 0, 1], 0)), Judge::Fixed(recorder)).await
    }

    async fn bind(address: SocketAddr, judge: Judge) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let judge = Arc::new(judge);
        let server = tokio::spawn(serve(listener, Arc::clone(&judge))).abort_handle();
        Ok(Self { address, judge, server })
    }

    fn recorder(&self) -> Option<&Recorder> {
        match &*self.judge {
            Judge::Fixed(recorder) => Some(recorder),
            Judge::Asked(_) => None,
        }
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of a path on it; the path begins with `/`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Treats the requests from now on in another way, unless each of them is asked about.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        if let Some(recorder) = self.recorder() {
            *lock(&recorder.behaviour) = behaviour;
        }
    }

    /// What has arrived so far, in the order of arrival; nothing where each request is asked about.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.recorder().map_or_else(Vec::new, |recorder| lock(&recorder.received).clone())
    }

    /// Waits until at least `count` requests have arrived and returns all that have; fewer when the
    /// time is up first.
    pub async fn wait_for(&self, count: usize, time: Duration) -> Vec<Received> {
        if let Some(recorder) = self.recorder() {
            let mut arrivals = recorder.count.subscribe();
            // Both a time-out and success are told by what is returned.
            let _ = timeout(time, arrivals.wait_for(|arrived| *arrived >= count)).await;
        }
        self.received()
    }
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(listener: TcpListener, judge: Arc<Judge>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(stream, Arc::clone(&judge)));
                }
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, judge: Arc<Judge>) {
    let answered_idle = AtomicBool::new(false);
    let service = service_fn(|request| answer(request, &judge, &answered_idle));
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    poll_fn(|context| match connection.as_mut().poll(context) {
        Poll::Ready(_ended) => Poll::Ready(()),
        // A small answer is written in the poll that produced it.
        Poll::Pending if answered_idle.load(Ordering::Relaxed) => Poll::Ready(()),
        Poll::Pending => Poll::Pending,
    })
    .await;
    if answered_idle.load(Ordering::Relaxed) {
        sleep(IDLE_TIME).await;
    }
}

/// Records a request and answers it; an error closes the connection.
async fn answer(request: Request<Incoming>, judge: &Judge, answered_idle: &AtomicBool) -> Result<Response<Full<Bytes>>, Dropped> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await.map_err(|_| Dropped)?.to_bytes();
    let path = head.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let received = Received { method: head.method, path, headers: head.headers, body, at: SystemClock.now() };
    let behaviour = match judge {
        Judge::Fixed(recorder) => recorder.record(received),
        Judge::Asked(arrivals) => ask(arrivals, received).await?,
    };

    let mut response = Response::new(Full::default());
    match behaviour {
        Behaviour::Answer(status) => *response.status_mut() = StatusCode::from_u16(status).map_err(|_| Dropped)?,
        Behaviour::Hang => pending().await,
        Behaviour::Drop => return Err(Dropped),
        Behaviour::Redirect(target) => {
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert(LOCATION, target.parse().map_err(|_| Dropped)?);
        }
        Behaviour::SlowAnswer(time) => sleep(time).await,
        Behaviour::CloseIdle => answered_idle.store(true, Ordering::Relaxed),
    }
    Ok(response)
}

impl Recorder {
    fn record(&self, request: Received) -> Behaviour {
        let behaviour = lock(&self.behaviour).clone();
        let mut received = lock(&self.received);
        received.push(request);
        self.count.send_replace(received.len());
        behaviour
    }
}

async fn ask(arrivals: &mpsc::Sender<Arrival>, request: Received) -> Result<Behaviour, Dropped> {
    let (told, behaviour) = oneshot::channel();
    arrivals.send(Arrival { request, told }).await.map_err(|_| Dropped)?;
    behaviour.await.map_err(|_| Dropped)
}

/// The receiver hangs up.
#[derive(Debug, thiserror::Error)]
#[error("the receiver hangs up")]
struct Dropped;

/// Each critical section leaves its data whole, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
