//! Webhooks over TLS to common receivers: their rate, and one arrival of each while the receiver closes its connections
//! at random moments.
//!
//! The receiving application counts ids; the bench compares the counts with the sender's outcomes.

mod application;
mod programs;
mod sender;

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) use self::application::serve as receive;
use self::programs::{Certificates, Receiver};
pub(crate) use self::sender::serve as send;
use crate::Failure;
use crate::load::Measurement;
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;

/// The service's default for deliveries in flight to one host.
const IN_FLIGHT: usize = 64;
const RECEIVERS: [&str; 4] = ["nginx", "haproxy", "Node", "hyper"];
/// Milliseconds between two closures of connections.
const PAUSES: std::ops::Range<u64> = 50..600;
/// The least rate over HTTP/2, as a ratio to that with a new HTTP/1.1 connection for each webhook.
const RATIO_MIN: f64 = 5.0;
/// The timeout of an attempt.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for a receiver that hangs on purpose.
const SHORT_TIMEOUT: Duration = Duration::from_secs(3);

/// Measures webhooks over TLS to each kind of receiver.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let (certificates, mut report) = (Certificates::new()?, Report::new("https"));
    let mut sender = Server::start(&["https-send"])?;
    let mut missing = Vec::new();
    for name in RECEIVERS {
        let Some(mut receiver) = Receiver::start(name, &certificates)? else {
            missing.push(name);
            continue;
        };
        let mut https_sender = HttpsSender { sender: &mut sender, root: &certificates.root };
        https_sender.rates(&mut receiver, scale, &mut report)?;
        https_sender.deliver_while_connections_close(&mut receiver, "drain", scale.backlog, &mut report)?;
        if matches!(name, "Node" | "hyper") {
            https_sender.deliver_while_connections_close(&mut receiver, "cut", scale.backlog, &mut report)?;
        }
    }
    if !missing.is_empty() {
        report.note(format!("Not installed, and so not measured: {}.", missing.join(", ")));
    }
    report.note(format!(
        "{IN_FLIGHT} at a time, bodies of 600 bytes, ES256 certificates; server CPU is that of the sending process; \
         receiver and sender share the cores. \"As before\" is reqwest on one thread with a new HTTP/1.1 connection \
         for each webhook and TLS tickets, as the service sent webhooks before it used HTTP/2. HTTP/2 and HTTP/1.1 \
         are the service's client, with a receiver that offers the one or only the other. Drain and cut are {} \
         deliveries over HTTP/2 to an application that answers within 20 ms, while connections are closed every {} to \
         {} ms. In a drain nginx and haproxy reload their configuration; Node and hyper send GOAWAY and finish open \
         requests. In a cut Node and hyper close all connections at once, and sometimes reset a request or hang. \
         Lost: recorded as delivered, but did not arrive. Doubled: arrived twice. Ambiguous: broke off after it may \
         have been processed; recorded as such and never repeated.",
        scale.backlog, PAUSES.start, PAUSES.end
    ));
    Ok(report)
}

/// A sender, and the root certificate that it trusts.
struct HttpsSender<'a> {
    sender: &'a mut Server,
    root: &'a str,
}

impl HttpsSender<'_> {
    /// Builds the command that sends webhooks to a port.
    fn send_command(&self, mode: &str, port: &Value, count: usize, timeout: Duration) -> Value {
        let to = format!("https://localhost:{port}/hook");
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        json!({ "send": count, "how": mode, "to": to, "root": self.root, "in_flight": IN_FLIGHT,
            "timeout_ms": timeout_ms })
    }

    /// Measures the rates with each protocol, with and without session tickets.
    fn rates(&mut self, receiver: &mut Receiver, scale: Scale, report: &mut Report) -> Result<(), Failure> {
        let name = receiver.name;
        for (label, suffix) in [("", ""), (", no tickets", "_no_tickets")] {
            let (h1, h2) =
                (receiver.ports[format!("h1{suffix}")].clone(), receiver.ports[format!("h2{suffix}")].clone());
            let (mut new_connections, mut http1, mut http2) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..scale.rounds {
                new_connections.push(self.turn(receiver, "new", &h1, scale.deliveries / 4)?);
                http2.push(self.turn(receiver, "service", &h2, scale.deliveries)?);
                http1.push(self.turn(receiver, "service", &h1, scale.deliveries / 4)?);
            }
            let (work, limit) = (format!("{name}{label}: HTTP/2"), format!("{name}{label}: as before"));
            report.compare((&work, &http2), (&limit, &new_connections), Some(Target::AtLeast(RATIO_MIN)));
            report.rates(&format!("{name}{label}: HTTP/1.1"), &http1);
            if label.is_empty() {
                report.lines.push(Line::from_rates(
                    (&work, &http2),
                    (&limit, &new_connections),
                    Some(Target::AtLeast(RATIO_MIN)),
                ));
            }
        }
        Ok(())
    }

    /// Sends webhooks and measures their rate; fails unless each is delivered once.
    fn turn(
        &mut self,
        receiver: &mut Receiver,
        mode: &str,
        port: &Value,
        count: usize,
    ) -> Result<Measurement, Failure> {
        let time_before = self.sender.processor_time()?;
        let command = self.send_command(mode, port, count, TIMEOUT);
        let result = self.sender.command(&command)?;
        let server_time = self.sender.processor_time()?.saturating_sub(time_before);
        let counts = receiver.application.command(&json!({ "seen_ids": [] }))?;
        if result["delivered"] != json!(count) || counts["received"] != json!(count) || counts["doubled"] != json!(0) {
            return Err(format!(
                "{}, {mode}: of {count} these arrived: {counts}, and these did not: {}",
                receiver.name, result["undelivered"]
            )
            .into());
        }
        let seconds = result["seconds"].as_f64().ok_or("the sender sent no duration")?;
        Ok(Measurement::new(count as u64, Duration::from_secs_f64(seconds), server_time))
    }

    /// Sends webhooks while the receiver closes its connections again and again, and reports what was lost or doubled.
    fn deliver_while_connections_close(
        &mut self,
        receiver: &mut Receiver,
        close_mode: &str,
        count: usize,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let is_faulty = close_mode == "cut";
        let command =
            self.send_command("service", &receiver.ports["h2"], count, if is_faulty { SHORT_TIMEOUT } else { TIMEOUT });
        receiver.application.command(&json!({ "mode": if is_faulty { "faulty" } else { "slow" } }))?;
        let (end, ended) = mpsc::channel::<()>();
        let closing_receiver = &mut *receiver;
        let (result, closures) = std::thread::scope(|scope| {
            let closer = scope.spawn(move || {
                let (mut closures, mut random) = (0_u32, 1_u64);
                loop {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let pause = PAUSES.start + (random >> 33) % (PAUSES.end - PAUSES.start);
                    if ended.recv_timeout(Duration::from_millis(pause)) != Err(mpsc::RecvTimeoutError::Timeout) {
                        return Ok::<u32, Failure>(closures);
                    }
                    closing_receiver.close_connections(close_mode)?;
                    closures += 1;
                }
            });
            let result = self.sender.command(&command);
            drop(end);
            (
                result,
                closer
                    .join()
                    .map_err(|_| Failure::from("the thread that closes connections panicked"))
                    .and_then(|closures| closures),
            )
        });
        let (result, closures) = (result?, closures?);
        let undelivered = result["undelivered"].as_array().cloned().unwrap_or_default();
        let ids: Vec<&Value> = undelivered.iter().map(|entry| &entry[0]).collect();
        let counts = receiver.application.command(&json!({ "seen_ids": ids }))?;
        receiver.application.command(&json!({ "mode": "fast" }))?;
        let number = |value: &Value| value.as_u64().ok_or("the receiver sent no number");
        let (received, arrived, doubled) =
            (number(&counts["received"])?, number(&counts["of"])?, number(&counts["doubled"])?);
        let lost = number(&result["delivered"])?.saturating_sub(received - arrived);
        let title = format!("{}, {close_mode}", receiver.name);
        report.figure_with_target(&format!("{title}: lost"), &[lost as f64], Target::AtMost(0.0));
        report.figure_with_target(&format!("{title}: doubled"), &[doubled as f64], Target::AtMost(0.0));
        report.figure(&format!("{title}: ambiguous"), &[undelivered.len() as f64]);
        report.figure(&format!("{title}: of these, arrived"), &[arrived as f64]);
        report.figure(&format!("{title}: closures of connections"), &[f64::from(closures)]);
        let seconds = result["seconds"].as_f64().unwrap_or(f64::NAN);
        report.figure(&format!("{title}: deliveries per s meanwhile"), &[count as f64 / seconds]);
        let mut kinds = BTreeMap::<&str, usize>::new();
        undelivered.iter().filter_map(|entry| entry[1].as_str()).for_each(|kind| *kinds.entry(kind).or_default() += 1);
        if !kinds.is_empty() {
            report.note(format!("{title}, the ambiguous: {kinds:?}."));
        }
        Ok(())
    }
}
