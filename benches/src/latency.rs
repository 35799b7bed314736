//! Latency of an init with few and with many live transactions.
//!
//! Open loop: due times do not depend on the answers, and latency counts from the due time. The two nodes take turns.
//! The node with few transactions is new in each turn, because every measured init adds a live transaction.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::growth::open_loop::{exchange, next_due, quantile};
use crate::node::{GENERATED_KEY, Service};
use crate::report::{Report, Target, median};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, load, requests};

/// The largest p99 with many live transactions, as a ratio to that with few.
const RATIO_MAX: f64 = 1.3;
/// Number of live transactions of the node with few.
const FEW: usize = 1_000;
/// The request rate, as a share of the capacity.
const LOAD_SHARE: f64 = 0.4;
/// The largest share of late requests in a usable result.
const LATE_MAX: f64 = 0.05;
/// Number of connections, which take turns: many more than ever wait at once.
const CONNECTIONS: usize = 64;

/// Measures the latency of inits with few and with many live transactions.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let node_with_few = || -> Result<Service, Failure> {
        let mut service = Service::start(GENERATED_KEY)?;
        service.open(FEW)?;
        Ok(service)
    };
    let service = node_with_few()?;
    let capacity = load::cycle(&service.server, &Arc::new(vec![requests::init(&service.server)?]), scale)?.rate;
    drop(service);
    let rate = capacity * LOAD_SHARE;
    let mut many = Service::start(GENERATED_KEY)?;
    many.open(scale.live)?;
    let idle = idle_percent(&many, scale)?;

    let (mut with_few, mut with_many) = (Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        with_few.push(measure_turn(&node_with_few()?, rate, scale)?);
        with_many.push(measure_turn(&many, rate, scale)?);
    }
    let mut report = Report::new("latency");
    for (quantile, name, target) in [(0.5, "p50", None), (0.99, "p99", Some(Target::AtMost(RATIO_MAX)))] {
        let times = |turns: &[Turn]| turns.iter().map(|turn| turn.quantile(quantile)).collect::<Vec<_>>();
        let (few, many) = (times(&with_few), times(&with_many));
        report.figure(&format!("{name} of init with {FEW} live, ms"), &few);
        report.figure(&format!("{name} of init with {} live, ms", scale.live), &many);
        let ratios: Vec<f64> = many.iter().zip(&few).map(|(many, few)| many / few).collect();
        match target {
            Some(target) => {
                report.figure_with_target(&format!("**{name} with many ÷ with few**"), &ratios, target);
                let work = format!("{name} of init with {} live, ms", scale.live);
                report.lines.push(Line::new(
                    (&work, &many),
                    (&format!("the same with {FEW} live, ms"), &few),
                    Some(target),
                ));
            }
            None => report.figure(&format!("{name} with many ÷ with few"), &ratios),
        }
    }
    report.figure("idle CPU of the node with many, % of a core", &[idle]);
    let late: Vec<f64> = with_few.iter().chain(&with_many).map(|turn| turn.late_share).collect();
    report.note(format!(
        "Open loop at {rate:.0} inits/s, {:.0} % of the {capacity:.0}/s that one node answered in a closed loop, \
         RS256; latency counts from when a request was due; {:.2} % of the requests were sent late because their \
         connection was still waiting.",
        LOAD_SHARE * 100.0,
        median(&late) * 100.0
    ));
    if median(&late) > LATE_MAX {
        report.note("**That is too many: the machine was too busy, and these ratios say nothing.**");
    }
    Ok(report)
}

/// Returns the processor time of the idle node, in percent of a core.
fn idle_percent(service: &Service, scale: Scale) -> Result<f64, Failure> {
    let time_before = service.server.processor_time()?;
    load::pause(scale.span);
    let time = service.server.processor_time()?.saturating_sub(time_before);
    Ok(time.as_secs_f64() / scale.span.as_secs_f64() * 100.0)
}

/// Result of a turn.
struct Turn {
    /// Latencies in milliseconds, sorted.
    millis: Vec<f64>,
    /// Share of requests that were sent late.
    late_share: f64,
}

impl Turn {
    fn quantile(&self, share: f64) -> f64 {
        quantile(&self.millis, share)
    }
}

/// Sends inits at this rate, and measures their latencies after a warm-up.
fn measure_turn(service: &Service, rate: f64, scale: Scale) -> Result<Turn, Failure> {
    let request = requests::init(&service.server)?;
    let interval = Duration::from_secs_f64(CONNECTIONS as f64 / rate);
    let start = Instant::now() + Duration::from_millis(20);
    let (measured_from, end) = (start + scale.warm, start + scale.warm + scale.span * 2);
    let drive = |number: usize| {
        let first = start + interval.mul_f64(number as f64 / CONNECTIONS as f64);
        Pace { due: first, interval, random: number as u64 + 1 }.drive(
            service.server.address,
            &request,
            measured_from,
            end,
        )
    };
    let parts = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CONNECTIONS).map(|number| scope.spawn(move || drive(number))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a thread panicked")?)
            .collect::<Result<Vec<_>, Failure>>()
    })?;
    let late = parts.iter().map(|(_, late)| late).sum::<usize>();
    let mut millis: Vec<f64> = parts.into_iter().flat_map(|(millis, _)| millis).collect();
    millis.sort_by(f64::total_cmp);
    let late_share = late as f64 / millis.len().max(1) as f64;
    Ok(Turn { millis, late_share })
}

/// Due times of one connection's requests: about `interval` apart, at random.
struct Pace {
    due: Instant,
    interval: Duration,
    /// State of the random generator.
    random: u64,
}

impl Pace {
    /// Returns the latencies of the requests due after `measured_from`, and the number of those sent late.
    fn drive(
        mut self,
        address: SocketAddr,
        request: &[u8],
        measured_from: Instant,
        end: Instant,
    ) -> Result<(Vec<f64>, usize), Failure> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let (mut millis, mut late, mut buffer) = (Vec::new(), 0, vec![0; 16 * 1_024]);
        while self.due < end {
            let now = Instant::now();
            if self.due > now {
                load::pause(self.due - now);
            } else if self.due >= measured_from {
                late += 1;
            }
            let status = exchange(&mut stream, request, &mut buffer)?;
            if status != 200 {
                return Err(format!("an init was answered with {status}").into());
            }
            if self.due >= measured_from {
                millis.push(self.due.elapsed().as_secs_f64() * 1e3);
            }
            self.due = next_due(self.due, self.interval, &mut self.random);
        }
        Ok((millis, late))
    }
}
