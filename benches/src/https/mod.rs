//! Webhooks over TLS to common receivers: their rate, and exactly one delivery of each while the receiver closes its
//! connections at random moments.
//!
//! The receiving application counts ids, which are compared with the sender's outcomes.

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
use crate::load::Measured;
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;

/// The service's default for deliveries in flight to one host.
const IN_FLIGHT: usize = 64;
const RECEIVERS: [&str; 4] = ["nginx", "haproxy", "Node", "hyper"];
/// Milliseconds between two closings of connections.
const PAUSES: std::ops::Range<u64> = 50..600;
const RATIO_MIN: f64 = 5.0;
const TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout for a receiver that hangs on purpose.
const SHORT_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let (certificates, mut report) = (Certificates::new()?, Report::new("https"));
    let mut sender = Server::start(&["https-send"])?;
    let mut missing = Vec::new();
    for name in RECEIVERS {
        let Some(mut receiver) = Receiver::start(name, &certificates)? else {
            missing.push(name);
            continue;
        };
        let mut post = Post { sender: &mut sender, root: &certificates.root };
        post.rates(&mut receiver, scale, &mut report)?;
        post.storm(&mut receiver, "drain", scale.backlog, &mut report)?;
        if matches!(name, "Node" | "hyper") {
            post.storm(&mut receiver, "cut", scale.backlog, &mut report)?;
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

struct Post<'a> {
    sender: &'a mut Server,
    root: &'a str,
}

impl Post<'_> {
    fn order(&self, how: &str, port: &Value, count: usize, timeout: Duration) -> Value {
        let to = format!("https://localhost:{port}/hook");
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        json!({ "send": count, "how": how, "to": to, "root": self.root, "in_flight": IN_FLIGHT,
            "timeout_ms": timeout_ms })
    }

    fn rates(&mut self, receiver: &mut Receiver, scale: Scale, report: &mut Report) -> Result<(), Failure> {
        let name = receiver.name;
        for (without, suffix) in [("", ""), (", no tickets", "_no_tickets")] {
            let (h1, h2) =
                (receiver.ports[format!("h1{suffix}")].clone(), receiver.ports[format!("h2{suffix}")].clone());
            let (mut new, mut single, mut many) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..scale.rounds {
                new.push(self.turn(receiver, "new", &h1, scale.deliveries / 4)?);
                many.push(self.turn(receiver, "service", &h2, scale.deliveries)?);
                single.push(self.turn(receiver, "service", &h1, scale.deliveries / 4)?);
            }
            let (ours, before) = (format!("{name}{without}: HTTP/2"), format!("{name}{without}: as before"));
            report.compare((&ours, &many), (&before, &new), Some(Target::AtLeast(RATIO_MIN)));
            report.rates(&format!("{name}{without}: HTTP/1.1"), &single);
            if without.is_empty() {
                report.lines.push(Line::of_rates((&ours, &many), (&before, &new), Some(Target::AtLeast(RATIO_MIN))));
            }
        }
        Ok(())
    }

    /// Fails unless each webhook is delivered once.
    fn turn(&mut self, receiver: &mut Receiver, how: &str, port: &Value, count: usize) -> Result<Measured, Failure> {
        let used = self.sender.processor_time()?;
        let order = self.order(how, port, count, TIMEOUT);
        let done = self.sender.command(&order)?;
        let used = self.sender.processor_time()?.saturating_sub(used);
        let seen_ids = receiver.application.command(&json!({ "seen_ids": [] }))?;
        if done["delivered"] != json!(count) || seen_ids["received"] != json!(count) || seen_ids["doubled"] != json!(0)
        {
            return Err(format!(
                "{}, {how}: of {count} these arrived: {seen_ids}, and these did not: {}",
                receiver.name, done["undelivered"]
            )
            .into());
        }
        let seconds = done["seconds"].as_f64().ok_or("the sender sent no duration")?;
        Ok(Measured::of(count as u64, Duration::from_secs_f64(seconds), used))
    }

    /// Sends while the receiver closes its connections again and again.
    fn storm(&mut self, receiver: &mut Receiver, how: &str, count: usize, report: &mut Report) -> Result<(), Failure> {
        let faulty = how == "cut";
        let order = self.order("service", &receiver.ports["h2"], count, if faulty { SHORT_TIMEOUT } else { TIMEOUT });
        receiver.application.command(&json!({ "mode": if faulty { "faulty" } else { "slow" } }))?;
        let (ended, end) = mpsc::channel::<()>();
        let broken = &mut *receiver;
        let (done, times) = std::thread::scope(|scope| {
            let breaker = scope.spawn(move || {
                let (mut times, mut chance) = (0_u32, 1_u64);
                loop {
                    chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let pause = PAUSES.start + (chance >> 33) % (PAUSES.end - PAUSES.start);
                    if end.recv_timeout(Duration::from_millis(pause)) != Err(mpsc::RecvTimeoutError::Timeout) {
                        return Ok::<u32, Failure>(times);
                    }
                    broken.break_connections(how)?;
                    times += 1;
                }
            });
            let done = self.sender.command(&order);
            drop(ended);
            (done, breaker.join().map_err(|_| Failure::from("the storm panicked")).and_then(|times| times))
        });
        let (done, times) = (done?, times?);
        let undelivered = done["undelivered"].as_array().cloned().unwrap_or_default();
        let ids: Vec<&Value> = undelivered.iter().map(|one| &one[0]).collect();
        let seen_ids = receiver.application.command(&json!({ "seen_ids": ids }))?;
        receiver.application.command(&json!({ "mode": "fast" }))?;
        let number = |what: &Value| what.as_u64().ok_or("the receiver sent no number");
        let (received, of, doubled) =
            (number(&seen_ids["received"])?, number(&seen_ids["of"])?, number(&seen_ids["doubled"])?);
        let lost = number(&done["delivered"])?.saturating_sub(received - of);
        let title = format!("{}, {how}", receiver.name);
        report.judged(&format!("{title}: lost"), &[lost as f64], Target::AtMost(0.0));
        report.judged(&format!("{title}: doubled"), &[doubled as f64], Target::AtMost(0.0));
        report.figure(&format!("{title}: ambiguous"), &[undelivered.len() as f64]);
        report.figure(&format!("{title}: of these, arrived"), &[of as f64]);
        report.figure(&format!("{title}: times that connections were let go of"), &[f64::from(times)]);
        let seconds = done["seconds"].as_f64().unwrap_or(f64::NAN);
        report.figure(&format!("{title}: deliveries per s meanwhile"), &[count as f64 / seconds]);
        let mut kinds = BTreeMap::<&str, usize>::new();
        undelivered.iter().filter_map(|one| one[1].as_str()).for_each(|kind| *kinds.entry(kind).or_default() += 1);
        if !kinds.is_empty() {
            report.note(format!("{title}, the ambiguous: {kinds:?}."));
        }
        Ok(())
    }
}
