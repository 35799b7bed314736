//! Deliveries beside a bare hyper client that posts the same bytes to the same receiver.
//!
//! The whole path is measured: completions fill a node's outbox while the receiver accepts requests without answering;
//! then it answers. The outbound client alone shows its share of the difference.

pub(crate) mod backlog;
pub(crate) mod pace;
pub(crate) mod receiver;
pub(crate) mod sender;

use std::time::Duration;

use serde_json::{Value, json};

use crate::Failure;
use crate::load::Measured;
use crate::node::Service;
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;

const RATIO_MIN: f64 = 0.7;
/// The service's default for deliveries in flight to one host.
const IN_FLIGHT: usize = 64;
/// One in this many deliveries is for warm-up.
const WARM_SHARE: usize = 10;

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut service = Service::start(None)?;
    let mut post = Post::start()?;
    post.learn(&mut service)?;
    let (mut ours, mut client, mut raw, mut single, mut kept) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..scale.rounds {
        ours.push(post.drain(&mut service, scale.deliveries)?);
        raw.push(post.send("new", scale.deliveries)?);
        client.push(post.send("service", scale.deliveries)?);
        single.push(post.send_from("new", 1, scale.deliveries)?);
        kept.push(post.send("kept", scale.deliveries)?);
    }
    let mut report = Report::new("webhooks");
    report.compare(
        ("delivery from the outbox", &ours),
        ("hyper, new connection", &raw),
        Some(Target::AtLeast(RATIO_MIN)),
    );
    report.rates("the service's client alone", &client);
    let ratios: Vec<f64> = client.iter().zip(&raw).map(|(client, raw)| client.rate / raw.rate).collect();
    report.figure("the service's client alone ÷ hyper, new connection", &ratios);
    report.rates("hyper, new connection, one thread", &single);
    report.rates("hyper, kept connections", &kept);
    report.lines.push(Line::of_rates(
        ("webhook delivery", &ours),
        ("raw hyper POST, new connection", &raw),
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
        post.sample["body"].as_str().map_or(0, str::len)
    ));
    Ok(report)
}

/// A receiver, a sender, and the webhook to send.
pub(crate) struct Post {
    receiver: Server,
    sender: Server,
    sample: Value,
}

impl Post {
    pub(crate) fn start() -> Result<Self, Failure> {
        let headers = json!([["content-type", "application/json"], ["accept", "*/*"]]);
        let sample = json!({ "headers": headers, "body": " ".repeat(600) });
        Ok(Self { receiver: Server::start(&["receive"])?, sender: Server::start(&["send"])?, sample })
    }

    /// Lets the service deliver one webhook; from then on its headers and bytes are sent.
    fn learn(&mut self, service: &mut Service) -> Result<(), Failure> {
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
    fn drain(&mut self, service: &mut Service, count: usize) -> Result<Measured, Failure> {
        self.receiver.command(&json!({ "hold": true }))?;
        service.server.command(&json!({ "deliver": count, "to": self.url()? }))?;
        let used = service.server.processor_time()?;
        self.begin(count)?;
        let took = self.end()?;
        let used = service.server.processor_time()?.saturating_sub(used);
        let settled = service.server.command(&json!({ "settled": true }))?;
        if settled["delivered"] != json!(count) {
            return Err(format!("of {count} webhooks these were delivered: {}", settled["delivered"]).into());
        }
        Ok(measured(count, took, used))
    }

    /// Measures the sender on all cores; `how` names a [`sender::SendMode`].
    pub(crate) fn send(&mut self, how: &str, count: usize) -> Result<Measured, Failure> {
        self.send_from(how, crate::load::cores(), count)
    }

    fn send_from(&mut self, how: &str, threads: usize, count: usize) -> Result<Measured, Failure> {
        let order = json!({
            "send": count, "how": how, "to": self.url()?, "threads": threads, "in_flight": IN_FLIGHT,
            "headers": self.sample["headers"], "body": self.sample["body"],
        });
        let used = self.sender.processor_time()?;
        self.begin(count)?;
        self.sender.command(&order)?;
        let took = self.end()?;
        Ok(measured(count, took, self.sender.processor_time()?.saturating_sub(used)))
    }

    /// Lets the receiver count from zero and answer.
    fn begin(&mut self, count: usize) -> Result<(), Failure> {
        let warm = count / WARM_SHARE;
        self.receiver.command(&json!({ "count": { "warm": warm, "measured": count - warm } })).map(drop)
    }

    /// Returns the duration of the deliveries after the warm-up.
    fn end(&mut self) -> Result<Duration, Failure> {
        let counted = self.receiver.read_line()?;
        Ok(Duration::from_secs_f64(counted["seconds"].as_f64().ok_or("the receiver sent no duration")?))
    }
}

/// Builds the result: the rate is of the deliveries after the warm-up, the processor time of all.
fn measured(count: usize, took: Duration, used: Duration) -> Measured {
    let measured = Measured::of((count - count / WARM_SHARE) as u64, took, used);
    Measured { server_micros: used.as_secs_f64() * 1e6 / count as f64, ..measured }
}
