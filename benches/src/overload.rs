//! Clients at twice the capacity of one node, then at half of it: the served share, and the time until service is
//! normal. Also the memory of an idle connection.

use std::sync::Arc;
use std::time::Duration;

use sakshi_kit::crowd::{Crowd, Requests, RetryPolicy};
use sakshi_kit::overload::{Outcome, P99_ALWAYS_ALLOWED, P99_FACTOR_MAX, Parts, overload};
use tokio::net::TcpStream;

use crate::connection::Connection;
use crate::node::{GENERATED_KEY, Service};
use crate::process::resident_bytes;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, requests};

/// The least goodput, as a share of the capacity.
const GOODPUT_MIN: f64 = 0.9;
/// Time limit, in seconds, until no request is refused and p99 is normal again.
const NORMAL_SECONDS_MAX: f64 = 10.0;
/// Length of the load at half the capacity, after the overload.
const AFTERWARDS: Duration = Duration::from_secs(30);
/// Number of idle connections.
const CONNECTIONS: u32 = 5_000;
const MILLION: f64 = 1e6;

/// Measures an overload with both retry policies, and the memory of an idle connection.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("overload");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let with_budget = runtime.block_on(run_overload(scale, RetryPolicy::Budget))?;
    let without = runtime.block_on(run_overload(scale, RetryPolicy::NoBudget))?;
    let runs = [&with_budget, &without];
    report.figure("capacity, inits per s", &runs.map(|run| run.capacity));
    report.figure("p99 at half of it, ms", &runs.map(|run| run.calm_p99.as_secs_f64() * 1e3));
    for (run, suffix) in [(&with_budget, ""), (&without, ", no jitter, no budget of retries")] {
        let ratio = run.goodput / run.capacity;
        report.figure_with_target(
            &format!("**served at twice the capacity ÷ capacity**{suffix}"),
            &[ratio],
            Target::AtLeast(GOODPUT_MIN),
        );
        let [at_capacity, overloaded] = run.seconds_per_client;
        report.figure_with_target(
            &format!("**the same for each second of the node's processor time**{suffix}"),
            &[at_capacity / overloaded],
            Target::AtLeast(GOODPUT_MIN),
        );
        report.figure_with_target(
            &format!("**seconds at half of it until all is as before**{suffix}"),
            &[run.seconds_to_normal as f64],
            Target::AtMost(NORMAL_SECONDS_MAX),
        );
        report.figure(&format!("clients that gave up after five attempts, %{suffix}"), &[run.gave_up_share * 100.0]);
    }
    report.lines.push(Line::new(
        ("inits at twice the capacity, per s", &[with_budget.goodput]),
        ("capacity", &[with_budget.capacity]),
        Some(Target::AtLeast(GOODPUT_MIN)),
    ));
    let bytes = runtime.block_on(idle_connection_bytes())?;
    report.figure("memory of an idle connection, bytes", &[bytes]);
    report.figure("the same of a million, GiB", &[bytes * MILLION / f64::from(1 << 30)]);
    report.note(format!(
        "Open loop: clients come whether or not others are served, {} s at twice the capacity. Each tries five \
         times, after Retry-After and up to half as long again, while the budget of its backend lasts \
         (`clients/`). Service is normal from the first second after which no request is refused and p99 is at \
         most {P99_FACTOR_MAX} times that of the calm time, or {P99_ALWAYS_ALLOWED:?}. A process takes no more \
         connections than it has descriptors for (docs/security.md), so a million needs as many descriptors on as \
         many nodes as have the memory.",
        scale.overload.as_secs()
    ));
    Ok(report)
}

async fn run_overload(scale: Scale, retry_policy: RetryPolicy) -> Result<Outcome, Failure> {
    let service = Service::start(GENERATED_KEY)?;
    let crowd = Crowd::new(service.server.address, retry_policy, inits(&service)?);
    let parts = Parts { capacity: scale.span, overload: scale.overload, afterwards: AFTERWARDS };
    let processor_time = || service.server.processor_time().unwrap_or_default();
    Ok(overload(&crowd, parts, processor_time).await)
}

/// Builds inits, each with its own idempotency key.
fn inits(service: &Service) -> Result<Requests, Failure> {
    let text = String::from_utf8(requests::init(&service.server)?)?;
    let (request_line, rest) = text.split_once("\r\n").ok_or("a request has lines")?;
    let (request_line, rest) = (request_line.to_owned(), rest.to_owned());
    Ok(Arc::new(move |number| format!("{request_line}\r\nIdempotency-Key: {number}\r\n{rest}").into_bytes()))
}

/// Returns the resident bytes of a node for each idle connection.
async fn idle_connection_bytes() -> Result<f64, Failure> {
    let service = Service::start(GENERATED_KEY)?;
    let bytes_before = resident_bytes(service.server.id())?;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(TcpStream::connect(service.server.address).await?);
    }
    // The answer on this connection comes after all earlier ones have been accepted.
    let mut last = Connection::open(service.server.address, None).await?;
    last.exchange(&requests::init(&service.server)?).await?;
    let bytes_after = resident_bytes(service.server.id())?;
    Ok(bytes_after.saturating_sub(bytes_before) as f64 / f64::from(CONNECTIONS))
}
