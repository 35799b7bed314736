//! Clients who arrive at a rate independent of the answers (an open loop), and retry as `docs/guides/errors.md` says.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until, timeout};

use super::random::Random;
use super::waiting::eventually;

/// Attempts of a client, as in `clients/`.
const ATTEMPTS: u32 = 5;
/// Timeout of an attempt, as in `clients/`.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of backends that send the requests.
const BACKENDS: usize = 16;
/// Most tenths of a retry that a backend may save up; a request adds a tenth, and a retry takes ten, as in `clients/`.
const TENTHS_MAX: u64 = 500;

/// The figures of one second of a run.
#[derive(Clone, Debug, Default)]
pub struct Second {
    /// Clients that arrived.
    pub arrived: u64,
    /// Clients whose request succeeded.
    pub served: u64,
    /// Refusals, and requests without an answer.
    pub refused: u64,
    /// Clients that gave up.
    pub gave_up: u64,
    /// Latencies of the clients that arrived in this second.
    pub latencies: Vec<Duration>,
}

impl Second {
    /// Returns the 99th percentile of the latencies.
    pub fn p99(&self) -> Duration {
        let mut latencies = self.latencies.clone();
        latencies.sort_unstable();
        latencies.get((latencies.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
    }
}

/// Builds the bytes of a request from its number.
pub type Requests = Arc<dyn Fn(u64) -> Vec<u8> + Send + Sync>;

/// The way in which the clients retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryPolicy {
    /// As `clients/`: with jitter, and a budget of retries for all requests of a backend.
    Budget,
    /// Without jitter and without a budget.
    NoBudget,
}

/// Clients of a few backends that share one address.
#[derive(Clone)]
pub struct Crowd {
    shared: Arc<Shared>,
}

struct Shared {
    address: SocketAddr,
    request: Requests,
    retry_policy: RetryPolicy,
    /// Tenths of a retry left to each backend.
    tenths: Vec<AtomicU64>,
    started_at: Instant,
    /// Number of requests so far.
    count: AtomicU64,
    /// Clients still waiting for success.
    waiting: AtomicU64,
    seconds: Mutex<Vec<Second>>,
    idle_connections: Mutex<Vec<TcpStream>>,
}

impl Crowd {
    pub fn new(address: SocketAddr, retry_policy: RetryPolicy, request: Requests) -> Self {
        let (count, waiting, seconds, idle_connections) =
            (AtomicU64::new(0), AtomicU64::new(0), Mutex::default(), Mutex::default());
        Self {
            shared: Arc::new(Shared {
                address,
                request,
                retry_policy,
                tenths: (0..BACKENDS).map(|_| AtomicU64::new(TENTHS_MAX)).collect(),
                started_at: Instant::now(),
                count,
                waiting,
                seconds,
                idle_connections,
            }),
        }
    }

    /// Returns the seconds so far, without the current one.
    pub fn seconds(&self) -> Vec<Second> {
        let mut seconds = self.shared.seconds.lock().unwrap().clone();
        seconds
            .resize(usize::try_from(self.shared.started_at.elapsed().as_secs()).expect("a number"), Second::default());
        seconds
    }

    /// Returns the answers per second to `clients` clients in a closed loop.
    pub async fn capacity(&self, clients: usize, span: Duration) -> f64 {
        let (is_over, mut tasks) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        let answer_count = Arc::new(AtomicU64::new(0));
        for _ in 0..clients {
            let (shared, is_over, answer_count) =
                (Arc::clone(&self.shared), Arc::clone(&is_over), Arc::clone(&answer_count));
            tasks.spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let request = (shared.request)(shared.count.fetch_add(1, Ordering::Relaxed));
                    if matches!(shared.exchange(&request).await, Some((200, _))) {
                        answer_count.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        sleep(span / 4).await;
        let (count_before, started_at) = (answer_count.load(Ordering::Relaxed), Instant::now());
        sleep(span).await;
        let rate = (answer_count.load(Ordering::Relaxed) - count_before) as f64 / started_at.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        tasks.join_all().await;
        rate
    }

    /// Sends `rate` clients each second for `span`. Unserved ones keep trying afterwards.
    pub async fn send_clients(&self, rate: f64, span: Duration) {
        let (started_at, interval) = (Instant::now(), Duration::from_secs_f64(1.0 / rate));
        for number in 0_u32.. {
            let due = started_at + interval * number;
            if due - started_at >= span {
                break;
            }
            // A slightly late timer wakes several clients at once.
            if due > Instant::now() {
                sleep_until(due.into()).await;
            }
            let shared = Arc::clone(&self.shared);
            // Counted before its task runs, which may be late if this process lacks processor time.
            shared.change_second(due, |second| second.arrived += 1);
            shared.waiting.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                shared.run_client(due).await;
                shared.waiting.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }

    /// Repeats the request of every client so far, each until it succeeds. Returns their number.
    pub async fn repeat_all(&self, connections: u64) -> u64 {
        let (total, mut tasks) = (self.shared.count.load(Ordering::SeqCst), JoinSet::new());
        for first in 0..connections {
            let shared = Arc::clone(&self.shared);
            tasks.spawn(async move {
                let mut number = first;
                while number < total {
                    if matches!(shared.exchange(&(shared.request)(number)).await, Some((200, _))) {
                        number += connections;
                    }
                }
            });
        }
        tasks.join_all().await;
        total
    }

    /// Waits until every client is served or has given up.
    pub async fn wait_until_done(&self) {
        let bound = ATTEMPT_TIMEOUT * (ATTEMPTS + 1);
        eventually("all clients are served or gave up", bound, || async {
            (self.shared.waiting.load(Ordering::SeqCst) == 0).then_some(())
        })
        .await;
    }
}

impl Shared {
    /// Changes the figures of the second that contains `at`.
    fn change_second(&self, at: Instant, change: impl FnOnce(&mut Second)) {
        let second = usize::try_from(at.duration_since(self.started_at).as_secs()).expect("a number");
        let mut seconds = self.seconds.lock().unwrap();
        if seconds.len() <= second {
            seconds.resize(second + 1, Second::default());
        }
        change(&mut seconds[second]);
    }

    /// Runs one client, due at this time, until success or its last attempt.
    async fn run_client(&self, due: Instant) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let (request, mut random) = ((self.request)(number), Random::from_seed(number));
        let add_tenth = |tenths: u64| Some((tenths + 1).min(TENTHS_MAX));
        let _ = self.tenths_of(number).fetch_update(Ordering::Relaxed, Ordering::Relaxed, add_tenth);
        for attempt in 0..ATTEMPTS {
            let answer = self.exchange(&request).await;
            if let Some((200, _)) = answer {
                let now = Instant::now();
                self.change_second(now, |second| second.served += 1);
                return self.change_second(due, |second| second.latencies.push(now - due));
            }
            self.change_second(Instant::now(), |second| second.refused += 1);
            let retry_after = answer.and_then(|(_, retry_after)| retry_after);
            let pause = Duration::from_secs(retry_after.unwrap_or(1 << attempt));
            if attempt + 1 == ATTEMPTS || self.retry_policy == RetryPolicy::Budget && !self.take_retry(number) {
                break;
            }
            // Up to half as long again.
            let jitter_per_mille = if self.retry_policy == RetryPolicy::Budget { random.below(500) as u32 } else { 0 };
            sleep(pause + pause * jitter_per_mille / 1_000).await;
        }
        self.change_second(Instant::now(), |second| second.gave_up += 1);
    }

    /// Returns the budget of the backend that sends a request.
    fn tenths_of(&self, number: u64) -> &AtomicU64 {
        &self.tenths[usize::try_from(number).expect("a number") % self.tenths.len()]
    }

    /// Takes a retry from the budget; returns false if none is left.
    fn take_retry(&self, number: u64) -> bool {
        let take_retry = |tenths: u64| tenths.checked_sub(10);
        self.tenths_of(number).fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_retry).is_ok()
    }

    /// Sends a request on a free connection. Returns the status and the seconds of `Retry-After`; `None` without an
    /// answer.
    async fn exchange(&self, request: &[u8]) -> Option<(u16, Option<u64>)> {
        timeout(ATTEMPT_TIMEOUT, async {
            let idle = self.idle_connections.lock().unwrap().pop();
            let mut stream = match idle {
                Some(stream) if is_open(&stream) => stream,
                _ => TcpStream::connect(self.address).await.ok()?,
            };
            stream.set_nodelay(true).ok()?;
            stream.write_all(request).await.ok()?;
            let head = read_head(&mut stream).await?;
            if !head.to_ascii_lowercase().contains("connection: close") {
                self.idle_connections.lock().unwrap().push(stream);
            }
            let status = head.get(9..12)?.parse().ok()?;
            Some((status, header(&head, "retry-after").and_then(|seconds| seconds.parse().ok())))
        })
        .await
        .ok()?
    }
}

/// Returns true if the peer has not closed the connection.
fn is_open(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

/// Reads a whole response and returns its head.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::with_capacity(4_096);
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length: usize = header(&head, "content-length")?.parse().ok()?;
        if bytes.len() >= end + 4 + length {
            return Some(head);
        }
    }
}

/// Returns the value of a header.
fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
