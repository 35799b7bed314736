//! Cost of a verification beside the minimal Node and Python servers in `benches/peers/`, with the same driver and
//! requests in one run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use sakshi_authority::intent::IntentKey;
use sakshi_kit::redis::RedisServer;
use sakshi_sandbox::issuer::SandboxIssuer;
use serde_json::{Value, json};

use crate::bare_redis::start_redis;
use crate::completion::Forgery;
use crate::node::{GENERATED_KEY, Service};
use crate::process::{Server, process_tree, processor_time};
use crate::report::{Report, median, table};
use crate::scale::Scale;
use crate::steps::{Cost, Deployment, Steps};
use crate::{Failure, load, requests};

/// Number of processes of a peer.
const PROCESSES: &str = "2";
const KEY: &str = "peer-key-0123456789abcdef0123456789abcdef";
const APP: &str = "peer-app";
const ISSUER: &str = "https://issuer.sandbox.invalid";
const CREDITS: &str = "1000000000";
const HEAD: [&str; 6] = [
    "",
    "init (one RS256 signature)",
    "poll + callback with its verification + webhook + poll",
    "whole",
    "÷ first",
    "resident",
];

/// Costs of a server in each turn, and the final resident bytes of the server and of Redis.
struct ServerCosts {
    name: &'static str,
    turns: Vec<Steps>,
    resident_bytes: [u64; 2],
}

/// Measures a verification on this service and on the peers.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let directory = install()?;
    let mut receiver = Server::start(&["receive"])?;
    let always = start_redis("always");
    // A node has as many processor threads as a peer has processes.
    let embedded = Deployment::new(Service::start(GENERATED_KEY)?, None)?;
    let node = Deployment::new(Service::on_redis(&always.url(), GENERATED_KEY)?, Some(always))?;
    let deployments = [
        ("this service, embedded, durable", embedded),
        ("this service, Redis `always`: node + Redis", node),
        ("Node (fastify, jose, @sd-jwt), 2 processes, no durability", start_peer(&mut node_command(&directory))?),
        ("Python (FastAPI, sd-jwt), 2 processes, no durability", start_peer(&mut python_command(&directory))?),
    ];
    let (mut costs, mut indirect) = (Vec::new(), Duration::ZERO);
    for (name, deployment) in deployments {
        check_forgeries_are_refused(name, &deployment)?;
        // A warm-up.
        deployment.verifications(&mut receiver, scale)?;
        let turns = (0..scale.rounds)
            .map(|_| Ok(deployment.verifications(&mut receiver, scale)?.0))
            .collect::<Result<_, Failure>>()?;
        costs.push(ServerCosts { name, turns, resident_bytes: deployment.resident_bytes()? });
        for id in process_tree(deployment.service.server.id())?.into_iter().skip(1) {
            indirect += processor_time(id)?;
        }
    }
    let mut report = report(&costs, scale);
    report.indirect = indirect;
    Ok(report)
}

fn report(costs: &[ServerCosts], scale: Scale) -> Report {
    let mut report = Report::new("peers");
    let mut rows = Vec::new();
    let mut first = None;
    for server in costs {
        let figures = |part: fn(&Steps) -> Cost, process: usize| {
            server.turns.iter().map(|turn| part(turn).micros()[process]).collect::<Vec<_>>()
        };
        let [node_init, redis_init] = [0, 1].map(|process| figures(|turn| turn.init, process));
        let [node_rest, redis_rest] = [0, 1].map(|process| figures(|turn| turn.all_but_init(), process));
        report.figure(&format!("{}: init, µs", server.name), &node_init);
        report.figure(&format!("{}: the rest, µs", server.name), &node_rest);
        let micros = |node: &[f64], redis: &[f64]| {
            let redis_part =
                if server.resident_bytes[1] == 0 { String::new() } else { format!(" + {:.0}", median(redis)) };
            format!("{:.0}{redis_part} µs", median(node))
        };
        let whole: f64 = [&node_init, &node_rest, &redis_init, &redis_rest].map(|part| median(part)).iter().sum();
        let ratio = whole / *first.get_or_insert(whole);
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let resident = match server.resident_bytes {
            [server, 0] => format!("{:.0} MB", megabytes(server)),
            [server, redis] => format!("{:.0} + {:.0} MB", megabytes(server), megabytes(redis)),
        };
        let (init, rest) = (micros(&node_init, &redis_init), micros(&node_rest, &redis_rest));
        rows.push([server.name.to_owned(), init, rest, format!("{whole:.0} µs"), format!("{ratio:.1}"), resident]);
    }
    report.note(format!(
        "Processor time of a verification, + that of Redis where there is one:\n\n{}",
        table(&HEAD.map(str::to_owned), rows.iter().map(<[String; 6]>::as_slice))
    ));
    report.note(format!(
        "{} verifications a turn with RS256 intents, eight claims, holder binding, webhooks over plain HTTP; {} \
         connections. The peers do the same work but survive no crash: Redis without a file, webhooks in memory. \
         Processor time and memory of all processes of a server; resident after {} verifications, + that of Redis, \
         with shared pages counted once. Each server first had to refuse four kinds of forged credentials.",
        scale.paced,
        scale.connections,
        scale.paced * (scale.rounds + 1)
    ));
    report
}

/// Installs the peers and returns their directory.
fn install() -> Result<PathBuf, Failure> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let status = Command::new(root.join("peers/setup.sh")).status()?;
    if status.success() { Ok(root.join("../target/peers")) } else { Err("benches/peers/setup.sh failed".into()) }
}

fn node_command(directory: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg(directory.join("node/server.mjs"));
    command
}

fn python_command(directory: &Path) -> Command {
    let mut command = Command::new(directory.join("venv/bin/python"));
    command.arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/python/server.py"));
    command
}

/// Starts a peer on a new Redis without persistence, with credits and keys.
fn start_peer(command: &mut Command) -> Result<Deployment, Failure> {
    let redis = RedisServer::start(&["appendonly no"]);
    redis.answer(&["SET", "credits", CREDITS]);
    let directory = tempfile::Builder::new().prefix("sakshi-bench-").tempdir()?;
    let keys = directory.path().join("store").join("sandbox-keys");
    std::fs::create_dir_all(&keys)?;
    let issuer = SandboxIssuer::generate(ISSUER)?;
    std::fs::write(keys.join("issuer.p8"), issuer.to_pkcs8()?)?;
    std::fs::write(keys.join("jwks.json"), issuer.jwks_json())?;
    std::fs::write(keys.join("intent.pem"), IntentKey::generate_rs256()?.1)?;
    let key_digest: String =
        digest(&SHA256, KEY.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    command.env("PEER_PROCESSES", PROCESSES).env("PEER_REDIS", redis.url()).env("PEER_ISSUER", ISSUER);
    command.env("PEER_KEY_SHA256", key_digest).env("PEER_APP", APP);
    command.env("PEER_INTENT_KEY", keys.join("intent.pem")).env("PEER_JWKS", keys.join("jwks.json"));
    let mut server = Server::start_program(command)?;
    server.first_line["key"] = json!(KEY);
    server.first_line["app"] = json!(APP);
    Deployment::new(Service { server, directory }, Some(redis))
}

/// Sends forged credentials, which the server must refuse, and then a genuine one, which it must accept.
fn check_forgeries_are_refused(name: &str, deployment: &Deployment) -> Result<(), Failure> {
    let server = &deployment.service.server;
    let opened = load::send_one(server, &requests::init_without_webhook(server)?)?;
    for forgery in Forgery::ALL {
        match load::send_one(server, &deployment.identity_app.forged_callback(&opened, forgery)?) {
            Err(refusal) if refusal.to_string().starts_with("400") => {}
            Err(other) => return Err(format!("{name} did not refuse {forgery:?} with 400: {other}").into()),
            Ok(_) => return Err(format!("{name} accepted {forgery:?}").into()),
        }
    }
    let poll = requests::poll(server, &crate::webhooks::pace::opened_txn_id(&opened)?)?;
    let check_pending = |expected: bool| {
        let body: Value = serde_json::from_slice(&load::send_one(server, &poll)?)?;
        if body["data"]["pending"] == expected { Ok(()) } else { Err(Failure::from(format!("{name} says: {body}"))) }
    };
    check_pending(true)?;
    let callback = deployment.identity_app.callbacks_for(&[opened])?;
    load::send_one(server, &callback[0])?;
    check_pending(false)
}
