//! The pace of webhooks beside the completions that queue them: callbacks at full load, a webhook for each, healthy
//! receivers.
//!
//! Both rates and the delay come from the node's records of the deliveries.

use std::sync::Arc;
use std::time::Duration;

use sakshi_authority::intent::{IntentKey, decode_unverified};
use serde_json::{Value, json};

use super::Post;
use crate::bare_redis::redis;
use crate::completion::IdentityApp;
use crate::node::Service;
use crate::process::Server;
use crate::report::{Report, Target};
use crate::scale::Scale;
use crate::summary::Line;
use crate::{Failure, load, requests};

/// Webhooks per completion.
const RATIO_MIN: f64 = 0.8;
/// Time from a completion to the end of its attempt, in milliseconds.
const P99_MS: f64 = 1_000.0;
/// Draining on Redis ÷ on the embedded store.
const DRAIN_RATIO_MIN: f64 = 0.5;
const DRAINS: usize = 2;
/// Connections of the load generator.
const CONNECTIONS: usize = 32;
const ORIGINS: [usize; 2] = [1, 100];

/// Rates and delay of a turn.
struct Turn {
    completions: f64,
    webhooks: f64,
    p99_ms: f64,
    node_micros: f64,
}

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let files = tempfile::tempdir()?;
    let key = files.path().join("es256.pem");
    std::fs::write(&key, IntentKey::generate_es256()?.1)?;
    let scale = Scale { connections: CONNECTIONS, ..scale };
    let mut report = Report::new("pace");
    for fsync in [None, Some("everysec"), Some("always")] {
        let redis = fsync.map(redis);
        let store = fsync.map_or_else(|| "embedded".to_owned(), |fsync| format!("Redis, AOF {fsync}"));
        let mut service = match &redis {
            Some(redis) => Service::on_redis(&redis.url(), Some(&key))?,
            None => Service::start(Some(&key))?,
        };
        let receiver = Server::start(&["receive"])?;
        for origins in ORIGINS {
            let what = format!("{store}, {origins} {}", if origins == 1 { "receiver" } else { "receivers" });
            one(&mut report, &what, &mut service, &receiver, origins, scale)?;
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
    let redis = redis("always");
    let mut services = [Service::start(None)?, Service::on_redis(&redis.url(), None)?];
    let (mut post, mut turns) = (Post::start()?, [Vec::new(), Vec::new()]);
    for _ in 0..DRAINS {
        for (service, turns) in services.iter_mut().zip(&mut turns) {
            turns.push(post.drain(service, scale.backlog)?);
        }
    }
    let [embedded, redis] = &turns;
    let names = ["draining the outbox, Redis, AOF always", "draining the outbox, embedded"];
    report.compare((names[0], redis), (names[1], embedded), Some(Target::AtLeast(DRAIN_RATIO_MIN)));
    report.lines.push(Line::of_rates(
        (names[0], redis),
        ("the same, embedded", embedded),
        Some(Target::AtLeast(DRAIN_RATIO_MIN)),
    ));
    report.note(format!("{} webhooks a turn to one receiver, queued while it answered nothing.", scale.backlog));
    Ok(report)
}

fn one(
    report: &mut Report,
    what: &str,
    service: &mut Service,
    receiver: &Server,
    origins: usize,
    scale: Scale,
) -> Result<(), Failure> {
    let identity_app = IdentityApp::new(service)?;
    let mut turns = Vec::new();
    for _ in 0..scale.rounds {
        turns.push(turn(&identity_app, service, receiver, origins, scale)?);
    }
    let all = |of: fn(&Turn) -> f64| turns.iter().map(of).collect::<Vec<_>>();
    let (completions, webhooks) = (all(|turn| turn.completions), all(|turn| turn.webhooks));
    report.figure(&format!("completions, {what}, per s"), &completions);
    report.figure(&format!("webhooks, {what}, per s"), &webhooks);
    report.judged(
        &format!("**webhooks ÷ completions, {what}**"),
        &all(|turn| turn.webhooks / turn.completions),
        Target::AtLeast(RATIO_MIN),
    );
    report.judged(&format!("p99 of the delay, {what}, ms"), &all(|turn| turn.p99_ms), Target::AtMost(P99_MS));
    report.figure(&format!("node CPU of a completion and its webhook, {what}, µs"), &all(|turn| turn.node_micros));
    let (ours, limit) = (format!("webhooks, {what}, per s"), "their completions, per s");
    report.lines.push(Line::of((&ours, &webhooks), (limit, &completions), Some(Target::AtLeast(RATIO_MIN))));
    Ok(())
}

fn turn(
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
    let (_, opened) = load::each_once(&service.server, inits, scale, true)?;
    let ids = opened.iter().map(|body| id_of(body)).collect::<Result<Vec<_>, Failure>>()?;
    let callbacks = Arc::new(identity_app.answers(&opened)?);
    let used = service.server.processor_time()?;
    load::each_once(&service.server, callbacks, scale, false)?;
    let settled = service.server.command(&json!({ "completed": ids }))?;
    let used = service.server.processor_time()?.saturating_sub(used);
    if settled["delivered"] != json!(ids.len()) {
        return Err(format!("of {} webhooks these were delivered: {}", ids.len(), settled["delivered"]).into());
    }
    let figure = |name: &str| settled[name].as_f64().ok_or("the node sent no rates");
    let node_micros = micros(used) / ids.len() as f64;
    Ok(Turn {
        completions: figure("completions")?,
        webhooks: figure("webhooks")?,
        p99_ms: figure("p99_ms")?,
        node_micros,
    })
}

/// Returns the id of the transaction opened by an init.
pub(crate) fn id_of(opened: &[u8]) -> Result<String, Failure> {
    let opened: Value = serde_json::from_slice(opened)?;
    Ok(decode_unverified(opened["intentJwt"].as_str().unwrap_or_default())?.txn)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
