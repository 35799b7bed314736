//! Requests at a steady rate: due times do not depend on the answers. Latency counts from the due time; the node's
//! processor time is measured too.

use std::collections::HashMap;
use std::fs::{read_dir, read_to_string};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::scale::GrowthScale;
use crate::connection::parse_answer;
use crate::process::Server;
use crate::{Failure, load};

/// Number of connections, which take turns: more than ever wait at once.
const CONNECTIONS: usize = 32;
/// The share of a turn that is warm-up.
const WARM_UP_SHARE: f64 = 0.2;

/// Requests and the expected status.
#[derive(Clone, Copy)]
pub(super) struct Requests<'a> {
    pub(super) bytes: &'a [Vec<u8>],
    /// True if each request is sent once; otherwise the requests are repeated.
    pub(super) each_once: bool,
    pub(super) status: u16,
}

/// Result of a turn.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// Time until the answer, in milliseconds, sorted.
    millis: Vec<f64>,
    /// Processor time of the node for one request, in microseconds.
    pub(super) micros: f64,
    /// Share of requests that were sent late.
    pub(super) late_share: f64,
    /// Due time of each measured request, by its index.
    pub(super) due: Vec<(usize, Instant)>,
}

/// Returns a quantile of sorted figures.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let index = (sorted.len() as f64 * share) as usize;
    sorted.get(index.min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
}

impl Turn {
    pub(super) fn quantile(&self, share: f64) -> f64 {
        quantile(&self.millis, share)
    }
}

/// Runs one turn for each round; requests that are sent once are divided between the turns.
pub(super) fn turns(server: &Server, requests: Requests<'_>, scale: GrowthScale) -> Result<Vec<Turn>, Failure> {
    if !requests.each_once {
        return (0..scale.rounds).map(|_| turn(server, requests, scale)).collect();
    }
    let parts = requests.bytes.chunks(requests.bytes.len().div_ceil(scale.rounds).max(1));
    parts.map(|bytes| turn(server, Requests { bytes, ..requests }, scale)).collect()
}

/// Runs one turn. If each request is sent once, their number sets its length.
pub(super) fn turn(server: &Server, requests: Requests<'_>, scale: GrowthScale) -> Result<Turn, Failure> {
    if requests.bytes.is_empty() {
        return Err("there is nothing to send".into());
    }
    let span =
        if requests.each_once { Duration::from_secs_f64(requests.bytes.len() as f64 / scale.rate) } else { scale.span };
    let interval = Duration::from_secs_f64(CONNECTIONS as f64 / scale.rate);
    let start_time = Instant::now() + Duration::from_millis(20);
    let (measured_from, end) = (start_time + span.mul_f64(WARM_UP_SHARE), start_time + span);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let start = |number: usize| {
            let due = start_time + interval.mul_f64(number as f64 / CONNECTIONS as f64);
            let driver =
                Driver { due, interval, random: number as u64 + 1, measured_from, end, samples: Vec::new(), late: 0 };
            let next = &next;
            scope.spawn(move || driver.drive(server, requests, next))
        };
        let threads: Vec<_> = (0..CONNECTIONS).map(start).collect();
        load::pause(measured_from.saturating_duration_since(Instant::now()));
        let before = processor_nanos(server)?;
        let parts = threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked")?);
        let parts: Vec<Driver> = parts.collect::<Result<_, Failure>>()?;
        let nanos = processor_nanos_since(server, &before)?;
        let late: usize = parts.iter().map(|part| part.late).sum();
        let samples: Vec<(usize, Instant, f64)> = parts.into_iter().flat_map(|part| part.samples).collect();
        let count = samples.len().max(1) as f64;
        let mut millis: Vec<f64> = samples.iter().map(|(_, _, millis)| *millis).collect();
        millis.sort_by(f64::total_cmp);
        let due = samples.iter().map(|(index, due, _)| (*index, *due)).collect();
        Ok(Turn { millis, micros: nanos as f64 / 1e3 / count, late_share: late as f64 / count, due })
    })
}

/// A connection whose requests are due about `interval` apart, at random.
struct Driver {
    due: Instant,
    interval: Duration,
    /// State of the random generator.
    random: u64,
    measured_from: Instant,
    end: Instant,
    /// Index, due time and milliseconds of each measured request.
    samples: Vec<(usize, Instant, f64)>,
    late: usize,
}

impl Driver {
    /// Sends requests until the end of the turn.
    fn drive(mut self, server: &Server, requests: Requests<'_>, next: &AtomicUsize) -> Result<Self, Failure> {
        let mut stream = TcpStream::connect(server.address)?;
        stream.set_nodelay(true)?;
        let mut buffer = vec![0; 256 * 1_024];
        while self.due < self.end {
            let now = Instant::now();
            if self.due > now {
                load::pause(self.due - now);
            } else if self.due >= self.measured_from {
                self.late += 1;
            }
            let number = next.fetch_add(1, Ordering::Relaxed);
            let index = if requests.each_once { number } else { number % requests.bytes.len() };
            let Some(bytes) = requests.bytes.get(index) else { break };
            let status = exchange(&mut stream, bytes, &mut buffer)?;
            if status != requests.status {
                return Err(format!(
                    "answered with {status}: {}",
                    String::from_utf8_lossy(bytes.get(..80).unwrap_or(bytes))
                )
                .into());
            }
            if self.due >= self.measured_from {
                self.samples.push((index, self.due, self.due.elapsed().as_secs_f64() * 1e3));
            }
            self.due = next_due(self.due, self.interval, &mut self.random);
        }
        Ok(self)
    }
}

/// Returns the due time of the request after one that is due at `due`: about `interval` later, at random.
pub(crate) fn next_due(due: Instant, interval: Duration, random: &mut u64) -> Instant {
    // Knuth's linear congruential generator, good enough to spread the requests.
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let share = (*random >> 40) as f64 / f64::from(1_u32 << 24);
    due + interval.mul_f64(0.5 + share)
}

/// Sends a request and returns the status of its answer.
pub(crate) fn exchange(stream: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> Result<u16, Failure> {
    stream.write_all(request)?;
    let mut length = 0;
    loop {
        let read = stream.read(&mut buffer[length..])?;
        length += read;
        match parse_answer(&buffer[..length])? {
            Some(answer) => return Ok(answer.status),
            None if read == 0 => return Err("the server closed a connection, or its answer is too long".into()),
            None => {}
        }
    }
}

/// Returns the processor time of each thread of the node so far, in nanoseconds.
pub(super) fn processor_nanos(server: &Server) -> Result<HashMap<String, u64>, Failure> {
    let mut nanos = HashMap::new();
    for task in read_dir(format!("/proc/{}/task", server.id()))? {
        let task = task?;
        // A thread may end between being listed and being read.
        let Ok(text) = read_to_string(task.path().join("schedstat")) else { continue };
        let thread_nanos =
            text.split_whitespace().next().and_then(|nanos| nanos.parse().ok()).ok_or("no processor time in /proc")?;
        nanos.insert(task.file_name().to_string_lossy().into_owned(), thread_nanos);
    }
    Ok(nanos)
}

/// Returns the processor time of the node since `before`, in nanoseconds, without threads that have ended meanwhile.
pub(super) fn processor_nanos_since(server: &Server, before: &HashMap<String, u64>) -> Result<u64, Failure> {
    let now = processor_nanos(server)?;
    Ok(now.iter().map(|(task, nanos)| nanos.saturating_sub(before.get(task).copied().unwrap_or(0))).sum())
}
