//! The pace of webhooks beside that of the completions that queue them: callbacks at full load, a webhook for each, and
//! healthy receivers.
//!
//! Both rates and the delay come from the node's records of the deliveries.

use std::sync::Arc;
use std::time::Duration;

use sakshi_authority::intent::{IntentKey, decode_unverified};
use serde_json::{Value, json};

use super::WebhookBench;
use crate::bare_redis::start_redis;
use crate::completion::IdentityApp;
use crate::load::BodyMode;
use crate::node::{GENERATED_KEY, Service};
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, load, requests};

/// The least rate of webhooks, as a share of that of completions.
const RATIO_MIN: f64 = 0.8;
/// The most milliseconds from a completion to the end of its webhook's attempt.
const P99_MS_MAX: f64 = 1_000.0;
/// The least rate of draining on Redis, as a share of that on the embedded store.
const DRAIN_RATIO_MIN: f64 = 0.5;
/// Number of turns of `drain`.
const DRAIN_ROUNDS: usize = 2;
/// Connections of the load generator.
const CONNECTIONS: usize = 32;
/// Numbers of receivers, each at an origin of its own.
const ORIGINS: [usize; 2] = [1, 100];

/// Rates and delay of a turn.
struct Turn {
    /// Completions per second.
    completions: f64,
    /// Delivered webhooks per second.
    webhooks: f64,
    /// 99th percentile of the delay from a completion to the end of its webhook's attempt.
    p99_ms: f64,
    /// Processor time of the node for a completion and its webhook.
    node_micros: f64,
}

/// Measures the rates of webhooks and completions on each store.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let files = tempfile::tempdir()?;
    let key = files.path().join("es256.pem");
    std::fs::write(&key, IntentKey::generate_es256()?.1)?;
    let scale = Scale { connections: CONNECTIONS, ..scale };
    let mut report = Report::new("pace");
    for fsync in [None, Some("everysec"), Some("always")] {
        let redis = fsync.map(start_redis);
        let store = fsync.map_or_else(|| "embedded".to_owned(), |fsync| format!("Redis, AOF {fsync}"));
        let mut service = match &redis {
            Some(redis) => Service::on_redis(&redis.url(), Some(&key))?,
            None => Service::start(Some(&key))?,
        };
        let receiver = Server::start(&["receive"])?;
        for origins in ORIGINS {
            let label = format!("{store}, {origins} {}", if origins == 1 { "receiver" } else { "receivers" });
            measure_pace(&mut report, &label, &mut service, &receiver, origins, scale)?;
        }
    }
    report.note(format!(
        "{} callbacks a turn over {CONNECTIONS} connections, each with a fresh credential and a webhook of eight \
         claims over plain HTTP. The delay is from the completion to the end of the attempt. Sender, node, Redis and \
         receiver share the cores.",
        scale.paced
    ));
    Ok(report)
}

/// Drains a full outbox on each store.
pub(crate) fn drain(scale: Scale) -> Result<Report, Failure> {
    let mut report = Report::new("drain");
    let redis = start_redis("always");
    let mut services = [Service::start(GENERATED_KEY)?, Service::on_redis(&redis.url(), GENERATED_KEY)?];
    let (mut bench, mut turns) = (WebhookBench::start()?, [Vec::new(), Vec::new()]);
    for _ in 0..DRAIN_ROUNDS {
        for (service, turns) in services.iter_mut().zip(&mut turns) {
            turns.push(bench.drain(service, scale.backlog)?);
        }
    }
    let [embedded, redis] = &turns;
    let names = ["draining the outbox, Redis, AOF always", "draining the outbox, embedded"];
    report.compare((names[0], redis), (names[1], embedded), Some(Target::AtLeast(DRAIN_RATIO_MIN)));
    report.lines.push(Line::from_rates(
        (names[0], redis),
        ("the same, embedded", embedded),
        Some(Target::AtLeast(DRAIN_RATIO_MIN)),
    ));
    report.note(format!("{} webhooks a turn to one receiver, queued while it answered nothing.", scale.backlog));
    Ok(report)
}

/// Measures turns with a number of receivers and adds their figures.
fn measure_pace(
    report: &mut Report,
    label: &str,
    service: &mut Service,
    receiver: &Server,
    origins: usize,
    scale: Scale,
) -> Result<(), Failure> {
    let identity_app = IdentityApp::new(service)?;
    let mut turns = Vec::new();
    for _ in 0..scale.rounds {
        turns.push(run_turn(&identity_app, service, receiver, origins, scale)?);
    }
    let figures = |figure: fn(&Turn) -> f64| turns.iter().map(figure).collect::<Vec<_>>();
    let (completions, webhooks) = (figures(|turn| turn.completions), figures(|turn| turn.webhooks));
    report.figure(&format!("completions, {label}, per s"), &completions);
    report.figure(&format!("webhooks, {label}, per s"), &webhooks);
    report.figure_with_target(
        &format!("**webhooks ÷ completions, {label}**"),
        &figures(|turn| turn.webhooks / turn.completions),
        Target::AtLeast(RATIO_MIN),
    );
    report.figure_with_target(
        &format!("p99 of the delay, {label}, ms"),
        &figures(|turn| turn.p99_ms),
        Target::AtMost(P99_MS_MAX),
    );
    report.figure(&format!("node CPU of a completion and its webhook, {label}, µs"), &figures(|turn| turn.node_micros));
    let (work, limit) = (format!("webhooks, {label}, per s"), "their completions, per s");
    report.lines.push(Line::new((&work, &webhooks), (limit, &completions), Some(Target::AtLeast(RATIO_MIN))));
    Ok(())
}

/// Opens transactions, completes them at full load, and waits for their webhooks.
fn run_turn(
    identity_app: &IdentityApp,
    service: &mut Service,
    receiver: &Server,
    origins: usize,
    scale: Scale,
) -> Result<Turn, Failure> {
    let port = receiver.text("url")?.rsplit(':').next().unwrap_or_default().to_owned();
    let host = |number: usize| format!("127.0.0.{}", number % origins + 1);
    let inits = (0..scale.paced)
        .map(|number| requests::init_with_webhook(&service.server, &format!("http://{}:{port}", host(number))));
    let inits = Arc::new(inits.collect::<Result<Vec<_>, Failure>>()?);
    let (_, opened) = load::each_once(&service.server, inits, scale, BodyMode::Keep)?;
    let ids = opened.iter().map(|body| opened_txn_id(body)).collect::<Result<Vec<_>, Failure>>()?;
    let callbacks = Arc::new(identity_app.callbacks_for(&opened)?);
    let time_before = service.server.processor_time()?;
    load::each_once(&service.server, callbacks, scale, BodyMode::Discard)?;
    let settled = service.server.command(&json!({ "completed": ids }))?;
    let server_time = service.server.processor_time()?.saturating_sub(time_before);
    if settled["delivered"] != json!(ids.len()) {
        return Err(format!("of {} webhooks these were delivered: {}", ids.len(), settled["delivered"]).into());
    }
    let figure = |name: &str| settled[name].as_f64().ok_or("the node sent no rates");
    let node_micros = micros(server_time) / ids.len() as f64;
    Ok(Turn {
        completions: figure("completions")?,
        webhooks: figure("webhooks")?,
        p99_ms: figure("p99_ms")?,
        node_micros,
    })
}

/// Returns the id of the transaction that an init opened, from the body of the answer.
pub(crate) fn opened_txn_id(opened: &[u8]) -> Result<String, Failure> {
    let opened: Value = serde_json::from_slice(opened)?;
    Ok(decode_unverified(opened["intentJwt"].as_str().unwrap_or_default())?.txn)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
