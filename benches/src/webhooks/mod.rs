//! Deliveries beside a bare hyper client that posts the same bytes to the same receiver.
//!
//! The whole path is measured: completions fill a node's outbox while the receiver accepts requests without answering;
//! then the receiver answers. The outbound client alone shows its share of the difference.

pub(crate) mod backlog;
pub(crate) mod pace;
pub(crate) mod receiver;
pub(crate) mod sender;

use std::time::Duration;

use serde_json::{Value, json};

use crate::Failure;
use crate::load::Measurement;
use crate::node::{GENERATED_KEY, Service};
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;

/// The least rate, as a share of that of hyper with new connections.
const RATIO_MIN: f64 = 0.7;
/// The service's default for deliveries in flight to one host.
const IN_FLIGHT: usize = 64;
/// One in this many deliveries is for warm-up.
const WARM_UP_DIVISOR: usize = 10;

/// Measures the delivery of webhooks from the outbox.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut service = Service::start(GENERATED_KEY)?;
    let mut bench = WebhookBench::start()?;
    bench.capture_sample(&mut service)?;
    let (mut ours, mut client, mut new_connections, mut one_thread, mut keep_alive) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        ours.push(bench.drain(&mut service, scale.deliveries)?);
        new_connections.push(bench.send("new", scale.deliveries)?);
        client.push(bench.send("service", scale.deliveries)?);
        one_thread.push(bench.send_from("new", 1, scale.deliveries)?);
        keep_alive.push(bench.send("kept", scale.deliveries)?);
    }
    let mut report = Report::new("webhooks");
    report.compare(
        ("delivery from the outbox", &ours),
        ("hyper, new connection", &new_connections),
        Some(Target::AtLeast(RATIO_MIN)),
    );
    report.rates("the service's client alone", &client);
    let ratios: Vec<f64> = client.iter().zip(&new_connections).map(|(client, raw)| client.rate / raw.rate).collect();
    report.figure("the service's client alone ÷ hyper, new connection", &ratios);
    report.rates("hyper, new connection, one thread", &one_thread);
    report.rates("hyper, kept connections", &keep_alive);
    report.lines.push(Line::from_rates(
        ("webhook delivery", &ours),
        ("raw hyper POST, new connection", &new_connections),
        Some(Target::AtLeast(RATIO_MIN)),
    ));
    report.note(format!(
        "Server CPU is that of the sending process. {} deliveries a turn, {IN_FLIGHT} at a time, body of {} bytes \
         with eight claims, plain HTTP. A delivery from the outbox reads and decrypts its transaction, writes the \
         payload, records its start durably, opens a connection, and records its end durably; all were recorded as \
         delivered. The dispatcher runs on one thread; hyper runs on all cores unless the row says one thread, with \
         the same headers and bytes. Kept connections are for information: the service never uses an HTTP/1.1 \
         connection twice. Receiver and sender share the cores.",
        scale.deliveries,
        bench.sample["body"].as_str().map_or(0, str::len)
    ));
    Ok(report)
}

/// A webhook receiver and a sender, each a process, and the webhook to send.
pub(crate) struct WebhookBench {
    receiver: Server,
    sender: Server,
    /// Headers and body of the webhook.
    sample: Value,
}

impl WebhookBench {
    /// Starts the processes; the webhook has 600 bytes until [`Self::capture_sample`].
    pub(crate) fn start() -> Result<Self, Failure> {
        let headers = json!([["content-type", "application/json"], ["accept", "*/*"]]);
        let sample = json!({ "headers": headers, "body": " ".repeat(600) });
        Ok(Self { receiver: Server::start(&["receive"])?, sender: Server::start(&["send"])?, sample })
    }

    /// Lets the service deliver one webhook, whose headers and bytes are sent from then on.
    fn capture_sample(&mut self, service: &mut Service) -> Result<(), Failure> {
        self.receiver.command(&json!({ "count": { "warm": 0, "measured": 1 } }))?;
        service.server.command(&json!({ "deliver": 1, "to": self.url()? }))?;
        self.receiver.read_line()?;
        service.server.command(&json!({ "settled": true }))?;
        self.sample = self.receiver.command(&json!({ "sample": true }))?;
        Ok(())
    }

    fn url(&self) -> Result<String, Failure> {
        self.receiver.text("url").map(str::to_owned)
    }

    /// Fills the outbox of a node and measures the rate at which it empties.
    fn drain(&mut self, service: &mut Service, count: usize) -> Result<Measurement, Failure> {
        self.receiver.command(&json!({ "hold": true }))?;
        service.server.command(&json!({ "deliver": count, "to": self.url()? }))?;
        let time_before = service.server.processor_time()?;
        self.start_count(count)?;
        let duration = self.finish_count()?;
        let server_time = service.server.processor_time()?.saturating_sub(time_before);
        let settled = service.server.command(&json!({ "settled": true }))?;
        if settled["delivered"] != json!(count) {
            return Err(format!("of {count} webhooks these were delivered: {}", settled["delivered"]).into());
        }
        Ok(measurement(count, duration, server_time))
    }

    /// Measures the sender on all cores; `mode` names a [`sender::SendMode`].
    pub(crate) fn send(&mut self, mode: &str, count: usize) -> Result<Measurement, Failure> {
        self.send_from(mode, crate::load::cores(), count)
    }

    /// Measures the sender on a number of threads.
    fn send_from(&mut self, mode: &str, threads: usize, count: usize) -> Result<Measurement, Failure> {
        let command = json!({
            "send": count, "how": mode, "to": self.url()?, "threads": threads, "in_flight": IN_FLIGHT,
            "headers": self.sample["headers"], "body": self.sample["body"],
        });
        let time_before = self.sender.processor_time()?;
        self.start_count(count)?;
        self.sender.command(&command)?;
        let duration = self.finish_count()?;
        Ok(measurement(count, duration, self.sender.processor_time()?.saturating_sub(time_before)))
    }

    /// Lets the receiver count from zero and answer.
    fn start_count(&mut self, count: usize) -> Result<(), Failure> {
        let warm_up = count / WARM_UP_DIVISOR;
        self.receiver.command(&json!({ "count": { "warm": warm_up, "measured": count - warm_up } })).map(drop)
    }

    /// Returns the duration of the deliveries after the warm-up.
    fn finish_count(&mut self) -> Result<Duration, Failure> {
        let count = self.receiver.read_line()?;
        Ok(Duration::from_secs_f64(count["seconds"].as_f64().ok_or("the receiver sent no duration")?))
    }
}

/// Computes the rate of the deliveries after the warm-up, and the processor time of all deliveries.
fn measurement(count: usize, duration: Duration, server_time: Duration) -> Measurement {
    let measurement = Measurement::new((count - count / WARM_UP_DIVISOR) as u64, duration, server_time);
    Measurement { server_micros: server_time.as_secs_f64() * 1e6 / count as f64, ..measurement }
}
