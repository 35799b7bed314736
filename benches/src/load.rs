//! The load generator, the same for the service and for the bare servers.
//!
//! Closed loop: each connection sends its next request after the answer to the previous one. One thread per core. A
//! failed or refused request fails the measurement.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio_rustls::TlsConnector;

use crate::Failure;
use crate::connection::Connection;
use crate::process::Server;
use crate::scale::Scale;

/// Prepared requests.
pub(crate) type Requests = Arc<Vec<Vec<u8>>>;

/// Result of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    /// Answers per second.
    pub(crate) rate: f64,
    /// Processor time of the server for one answer, in microseconds.
    pub(crate) server_micros: f64,
    /// Mean bytes of a request and of an answer; zero if the requests were repeated.
    pub(crate) bytes: [f64; 2],
}

impl Measurement {
    /// Computes the figures from the number of answers, their duration and the server's processor time.
    pub(crate) fn new(answers: u64, duration: Duration, server_time: Duration) -> Self {
        let answers = answers.max(1) as f64;
        Self {
            rate: answers / duration.as_secs_f64(),
            server_micros: server_time.as_secs_f64() * 1e6 / answers,
            bytes: [0.0; 2],
        }
    }
}

/// Sleeps for a duration.
#[expect(clippy::disallowed_methods, reason = "a measurement lasts for a fixed time")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// Returns the number of cores of this machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The treatment of the bodies of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyMode {
    /// Bodies are returned, and those of redirects with their headers.
    Keep,
    Discard,
}

/// State that all connections of a turn share.
struct Shared {
    /// Addresses over which the connections are spread.
    addresses: Vec<(SocketAddr, Option<TlsConnector>)>,
    requests: Requests,
    /// Repeats the requests until `stop`, instead of sending each once.
    repeat: bool,
    body_mode: BodyMode,
    /// The time of the first request, and the pause between two requests; without a pause, nothing is delayed.
    pace: (Instant, Duration),
    /// Number of the next request.
    next: AtomicUsize,
    answered: AtomicU64,
    /// Bytes of the answers.
    received: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    /// Waits until the next request is due and returns it, unless the turn has ended.
    async fn next_request(&self) -> Option<&[u8]> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (first, pause) = self.pace;
        if !pause.is_zero() {
            tokio::time::sleep_until((first + pause.mul_f64(number as f64)).into()).await;
        }
        let index = if self.repeat { number % self.requests.len() } else { number };
        self.requests.get(index).map(Vec::as_slice)
    }

    /// Sends requests over connection `number` until none is left; returns the bodies if they are wanted.
    async fn drive(&self, number: usize) -> Result<Vec<Vec<u8>>, Failure> {
        let (address, tls) = &self.addresses[number % self.addresses.len()];
        let mut connection = Connection::open(*address, tls.as_ref()).await?;
        let mut bodies = Vec::new();
        while let Some(request) = self.next_request().await {
            let (status, body) = connection.exchange(request).await?;
            if !matches!(status, 200 | 303) {
                return Err(format!("{status}: {}", String::from_utf8_lossy(body)).into());
            }
            let (body_len, answer) = (body.len(), connection.received());
            self.answered.fetch_add(1, Ordering::Relaxed);
            self.received.fetch_add(answer.len() as u64, Ordering::Relaxed);
            if self.body_mode == BodyMode::Keep {
                let start = if status == 200 { answer.len() - body_len } else { 0 };
                bodies.push(answer[start..].to_vec());
            }
        }
        Ok(bodies)
    }
}

/// A running turn of the load generator.
struct Running {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<Result<Vec<Vec<u8>>, Failure>>>,
}

impl Running {
    fn start(shared: Shared, connections: usize) -> Self {
        let shared = Arc::new(shared);
        let threads = cores();
        let start = |_| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || run_thread(&shared, connections.div_ceil(threads)))
        };
        Self { threads: (0..threads).map(start).collect(), shared }
    }

    /// Waits until the turn has ended, and returns the bodies of the answers.
    fn finish(self) -> Result<Vec<Vec<u8>>, Failure> {
        let mut bodies = Vec::new();
        for thread in self.threads {
            bodies.extend(thread.join().map_err(|_| "a thread of the load generator panicked")??);
        }
        Ok(bodies)
    }
}

/// Drives some connections on the runtime of one thread.
fn run_thread(shared: &Arc<Shared>, connections: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let drive = |number| {
            let shared = Arc::clone(shared);
            tokio::spawn(async move { shared.drive(number).await })
        };
        let tasks: Vec<_> = (0..connections).map(drive).collect();
        let mut bodies = Vec::new();
        for task in tasks {
            let result = task.await?;
            if result.is_err() {
                shared.stop.store(true, Ordering::Relaxed);
            }
            bodies.extend(result?);
        }
        Ok(bodies)
    })
}

/// Returns the processor time of all servers.
fn processor_time(servers: &[&Server]) -> Result<Duration, Failure> {
    servers.iter().map(|server| server.processor_time()).sum()
}

/// Runs a turn: repeats the requests and measures after a warm-up.
pub(crate) fn cycle(server: &Server, requests: &Requests, scale: Scale) -> Result<Measurement, Failure> {
    cycle_over(&[server], requests, scale)
}

/// Runs a turn like [`cycle`], over several servers with as many connections to each.
pub(crate) fn cycle_over(servers: &[&Server], requests: &Requests, scale: Scale) -> Result<Measurement, Failure> {
    let shared = Shared {
        addresses: servers.iter().map(|server| (server.address, server.tls.clone())).collect(),
        requests: Arc::clone(requests),
        repeat: true,
        body_mode: BodyMode::Discard,
        pace: (Instant::now(), Duration::ZERO),
        next: AtomicUsize::new(0),
        answered: AtomicU64::new(0),
        received: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let running = Running::start(shared, scale.connections);
    let shared = Arc::clone(&running.shared);
    pause(scale.warm);
    let started = Instant::now();
    let (answered_before, time_before) = (shared.answered.load(Ordering::Relaxed), processor_time(servers)?);
    pause(scale.span);
    let measurement = Measurement::new(
        shared.answered.load(Ordering::Relaxed) - answered_before,
        started.elapsed(),
        processor_time(servers)?.saturating_sub(time_before),
    );
    shared.stop.store(true, Ordering::Relaxed);
    running.finish()?;
    Ok(measurement)
}

/// Sends each request once and measures. Returns the bodies of the answers if they are kept.
pub(crate) fn each_once(
    server: &Server,
    requests: Requests,
    scale: Scale,
    body_mode: BodyMode,
) -> Result<(Measurement, Vec<Vec<u8>>), Failure> {
    let no_pause = Duration::ZERO;
    each_once_over(&[server], requests, scale, body_mode, no_pause)
}

/// Sends each request once like [`each_once`], over several servers with a pause between two requests.
pub(crate) fn each_once_over(
    servers: &[&Server],
    requests: Requests,
    scale: Scale,
    body_mode: BodyMode,
    pause: Duration,
) -> Result<(Measurement, Vec<Vec<u8>>), Failure> {
    let count = requests.len() as u64;
    let sent: usize = requests.iter().map(Vec::len).sum();
    let shared = Shared {
        addresses: servers.iter().map(|server| (server.address, server.tls.clone())).collect(),
        requests,
        repeat: false,
        body_mode,
        pace: (Instant::now(), pause),
        next: AtomicUsize::new(0),
        answered: AtomicU64::new(0),
        received: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    };
    let (started, time_before) = (Instant::now(), processor_time(servers)?);
    let running = Running::start(shared, scale.connections);
    let shared = Arc::clone(&running.shared);
    let bodies = running.finish()?;
    let measurement = Measurement::new(count, started.elapsed(), processor_time(servers)?.saturating_sub(time_before));
    let bytes = [sent as u64, shared.received.load(Ordering::Relaxed)].map(|bytes| bytes as f64 / count.max(1) as f64);
    Ok((Measurement { bytes, ..measurement }, bodies))
}

/// Sends one request and returns the body of its answer.
pub(crate) fn send_one(server: &Server, request: &[u8]) -> Result<Vec<u8>, Failure> {
    let scale = Scale { connections: 1, ..Scale::QUICK };
    each_once(server, Arc::new(vec![request.to_vec()]), scale, BodyMode::Keep)?
        .1
        .pop()
        .ok_or_else(|| "no answer".into())
}
