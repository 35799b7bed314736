//! Cost of a whole verification on each store: processor time of the node and of Redis, and the figures that
//! [`crate::costs`] stores for planning.

use std::ops::Add as _;
use std::time::Duration;

use sakshi_domain::ids::TxnId;
use sakshi_kit::redis::RedisServer;
use sakshi_kit::redis::resp::Reply;
use serde_json::{Value, json};

use crate::costs::{self, Arithmetic, StoreCosts};
use crate::node::{GENERATED_KEY, Service};
use crate::process::Server;
use crate::report::{Report, Target, median};
use crate::scale::Scale;
use crate::steps::{Cost, Deployment, GUEST_STEPS, NODE_INDEX, REDIS_INDEX, Steps, redis_number};
use crate::{Failure, requests};

/// The most microseconds of Redis for a whole verification.
const REDIS_MICROS_MAX: f64 = 250.0;
/// The largest cost of a node on Redis, as a ratio to that of a node with an embedded store.
const NODE_RATIO_MAX: f64 = 1.1;

/// Redis' production settings, except that it never rewrites its file, so that the file's growth can be measured.
const REDIS_LINES: &[&str] =
    &["appendonly yes", "appendfsync always", "hash-max-listpack-value 1024", "auto-aof-rewrite-percentage 0"];

/// Bytes of a transaction in Redis: memory, and the length of its key, fields and values alone.
#[derive(Default)]
struct RedisMemory {
    memory: Vec<f64>,
    content: Vec<f64>,
}

impl RedisMemory {
    /// Adds the bytes of one transaction.
    fn add(&mut self, redis: &RedisServer, id: &str) -> Result<(), Failure> {
        let id: TxnId = id.parse()?;
        let keys = redis.answer(&["KEYS", "*}txn:*"]);
        let belongs_to_id = |key: &&[u8]| key.ends_with(id.as_bytes());
        let key = keys
            .members()
            .iter()
            .filter_map(Reply::bytes)
            .find(belongs_to_id)
            .ok_or("the transaction is not in Redis")?;
        let memory = redis
            .answer(&[b"MEMORY", &b"USAGE"[..], key, b"SAMPLES", b"0"])
            .integer()
            .ok_or("Redis reports no memory usage")?;
        let size = |reply: &Reply| reply.bytes().map_or(0, <[u8]>::len);
        let content: usize = redis.answer(&[&b"HGETALL"[..], key]).members().iter().map(size).sum();
        self.memory.push(memory as f64);
        self.content.push((key.len() + content) as f64);
        Ok(())
    }
}

/// The kind of store on which nodes run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreKind {
    Embedded,
    Redis,
}

/// The nodes on one kind of store, and their results.
struct StoreRun {
    /// A single node, for the table.
    single: Deployment,
    /// Three nodes on Redis, for planning.
    three: Option<Deployment>,
    steps: Vec<Steps>,
    /// Costs of the three nodes.
    planning_steps: Vec<Steps>,
    /// Costs with a light load: the steps, a callback without a webhook, and a guest.
    light: Option<(Steps, [Cost; 2])>,
    /// Costs of a callback without a webhook.
    callbacks: Vec<Cost>,
    /// Costs of a guest, by step.
    guests: Vec<[Cost; 5]>,
    pending: RedisMemory,
    ended: RedisMemory,
    /// Resident bytes of a fresh node.
    node_bytes: f64,
    /// Bytes of a pending transaction in the node and in the store.
    pending_bytes: [f64; 2],
    /// Bytes of a completed transaction with its other records in the store, in each turn.
    ended_bytes: Vec<f64>,
}

impl StoreRun {
    /// Starts the nodes, and opens some transactions.
    fn start(store_kind: StoreKind, scale: Scale) -> Result<Self, Failure> {
        let redis = || RedisServer::start(REDIS_LINES);
        let (single, three) = if store_kind == StoreKind::Redis {
            let first = redis();
            let single = Deployment::new(Service::on_redis(&first.url(), GENERATED_KEY)?, Some(first))?;
            (single, Some(Deployment::with_three_nodes(redis())?))
        } else {
            let no_redis = None;
            (Deployment::new(Service::start(GENERATED_KEY)?, no_redis)?, None)
        };
        let node_bytes = single.resident_bytes()?[0] as f64;
        let (steps, planning_steps, pending, ended, ended_bytes) = Default::default();
        let (callbacks, guests, pending_bytes) = Default::default();
        let light = None;
        let mut run = Self {
            single,
            three,
            steps,
            planning_steps,
            light,
            callbacks,
            guests,
            pending,
            ended,
            node_bytes,
            pending_bytes,
            ended_bytes,
        };
        run.fill(scale.live / 10)?;
        Ok(run)
    }

    /// Opens `count` transactions without HTTP and measures the bytes of one.
    fn fill(&mut self, count: usize) -> Result<(), Failure> {
        let store_before = self.store_bytes()?;
        self.single.service.open(count)?;
        self.pending_bytes =
            [self.single.resident_bytes()?[0] as f64 - self.node_bytes, self.store_bytes()? - store_before]
                .map(|bytes| bytes / count as f64);
        Ok(())
    }

    /// Measures one turn: verifications, a callback without a webhook, and guests.
    fn measure_turn(&mut self, receiver: &mut Server, scale: Scale) -> Result<(), Failure> {
        let store_before = self.store_bytes()?;
        let (steps, ids) = self.single.verifications(receiver, scale)?;
        self.steps.push(steps);
        self.ended_bytes.push((self.store_bytes()? - store_before) / ids.len() as f64);
        let last = ids.last().ok_or("nothing was opened")?.clone();
        let settled = self.single.service.server.command(&json!({ "completed": ids }))?;
        if settled["delivered"] != json!(ids.len()) {
            return Err("a webhook was not delivered".into());
        }
        let (_, opened) = self.single.inits(
            requests::init_with_webhook(&self.single.service.server, receiver.text("url")?)?,
            Scale { paced: 1, ..scale },
        )?;
        if let Some(redis) = &self.single.redis {
            self.ended.add(redis, &last)?;
            self.pending.add(redis, &crate::webhooks::pace::opened_txn_id(&opened[0])?)?;
        }
        if let Some(three) = &self.three {
            self.planning_steps.push(three.verifications(receiver, scale)?.0);
        }
        self.callbacks.push(self.nodes().callback_alone(scale)?);
        self.guests.push(self.nodes().guests(receiver, scale)?);
        Ok(())
    }

    /// Returns the nodes whose costs are used for planning.
    fn nodes(&self) -> &Deployment {
        self.three.as_ref().unwrap_or(&self.single)
    }

    /// Measures all steps again with a light load.
    fn measure_light(&mut self, receiver: &mut Server) -> Result<(), Failure> {
        let steps = self.nodes().verifications(receiver, costs::LIGHT)?.0;
        let guest = total(&self.nodes().guests(receiver, costs::LIGHT)?);
        self.light = Some((steps, [self.nodes().callback_alone(costs::LIGHT)?, guest]));
        Ok(())
    }

    /// Returns the bytes in Redis' memory, or in the embedded store's files.
    fn store_bytes(&self) -> Result<f64, Failure> {
        match &self.single.redis {
            Some(redis) => redis_number(redis, "used_memory"),
            None => costs::directory_bytes(self.single.service.directory.path()).map(|bytes| bytes as f64),
        }
    }

    /// Returns the figures for `costs.json`.
    fn costs(&self) -> Value {
        let [node_pending, store_pending] = self.pending_bytes;
        let steps = if self.planning_steps.is_empty() { &self.steps } else { &self.planning_steps };
        let (light, store_ended) = (self.light.unwrap_or_default(), median(&self.ended_bytes));
        let callbacks_and_guests = &[self.callbacks.clone(), self.guests.iter().map(total).collect()];
        StoreCosts {
            steps,
            callbacks_and_guests,
            light,
            node: self.node_bytes,
            node_pending,
            store_pending,
            store_ended,
        }
        .to_json()
    }

    /// Returns the microseconds of a part of the steps in each turn, of the node or of Redis.
    fn micros(&self, process_index: usize, part: impl Fn(&Steps) -> Cost) -> Vec<f64> {
        self.steps.iter().map(|turn| part(turn).micros()[process_index]).collect()
    }
}

/// Returns the cost of all steps of a guest.
fn total(steps: &[Cost; 5]) -> Cost {
    steps.iter().copied().fold(Cost::default(), Cost::add)
}

/// Returns the processor time of a Redis and its child processes.
pub(crate) fn processor_time(redis: &RedisServer) -> Result<Duration, Failure> {
    let parts = ["used_cpu_user", "used_cpu_sys", "used_cpu_user_children", "used_cpu_sys_children"];
    Ok(Duration::from_secs_f64(parts.iter().map(|part| redis_number(redis, part)).sum::<Result<f64, _>>()?))
}

/// Measures whole verifications on both stores.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut receiver = Server::start(&["receive"])?;
    let mut runs = [StoreRun::start(StoreKind::Embedded, scale)?, StoreRun::start(StoreKind::Redis, scale)?];
    for _ in 0..scale.rounds {
        for run in &mut runs {
            run.measure_turn(&mut receiver, scale)?;
        }
    }
    for run in &mut runs {
        run.measure_light(&mut receiver)?;
    }
    let arithmetic = Arithmetic::measure(scale)?;
    let mut report = report(&runs, arithmetic, scale);
    let webhook_bytes = costs::webhook_bytes(&receiver.command(&json!({ "sample": true }))?);
    let [embedded, redis] = runs.each_ref().map(StoreRun::costs);
    // Stops the nodes, which would disturb the following measurements.
    drop(runs);
    report.costs = Some(costs::build(&embedded, &redis, webhook_bytes, arithmetic, scale)?);
    Ok(report)
}

/// Writes the microseconds of the node and of Redis, and the calls of Redis, for each step of a guest.
fn describe_guest_steps(turns: &[[Cost; 5]]) -> String {
    let step = |(number, name): (usize, &&str)| {
        let figure = |figure_of: &dyn Fn(Cost) -> f64| {
            median(&turns.iter().map(|turn| figure_of(turn[number])).collect::<Vec<_>>())
        };
        let [node, redis, calls] =
            [figure(&|cost| cost.micros()[0]), figure(&|cost| cost.micros()[1]), figure(&Cost::redis_calls)];
        if calls > 0.0 {
            format!("{name} {node:.0} + {redis:.0} µs, {calls:.1} calls")
        } else {
            format!("{name} {node:.0} µs")
        }
    };
    GUEST_STEPS.iter().enumerate().map(step).collect::<Vec<_>>().join("; ")
}

fn report([embedded, redis]: &[StoreRun; 2], Arithmetic { rs256, check }: Arithmetic, scale: Scale) -> Report {
    let mut report = Report::new("verification");
    report.figure("arithmetic: one RS256 signature, µs", &[rs256]);
    report.figure("arithmetic: two ES256 checks, µs", &[2.0 * check]);
    let whole = |run: &StoreRun, process| run.micros(process, |turn| turn.init + turn.all_but_init());
    for (name, run) in [("embedded", embedded), ("on Redis", redis)] {
        report.figure_beside_arithmetic(
            &format!("node {name}: init, µs"),
            &run.micros(NODE_INDEX, |turn| turn.init),
            rs256,
        );
        let all_but_init = run.micros(NODE_INDEX, |turn| turn.all_but_init());
        report.figure_beside_arithmetic(
            &format!("node {name}: poll, callback, webhook, poll, µs"),
            &all_but_init,
            2.0 * check,
        );
        report.figure_beside_arithmetic(
            &format!("node {name}: the whole, µs"),
            &whole(run, NODE_INDEX),
            rs256 + 2.0 * check,
        );
        let nodes = if run.three.is_some() { "three nodes on Redis" } else { "node embedded" };
        let guest = |part: &dyn Fn(Cost) -> f64| run.guests.iter().map(|steps| part(total(steps))).collect::<Vec<_>>();
        let micros = guest(&|cost| cost.micros()[0]);
        report.figure_beside_arithmetic(
            &format!("{nodes}: guest of an event, with webhook, µs"),
            &micros,
            rs256 + 2.0 * check,
        );
        if run.three.is_some() {
            report.figure("Redis: guest of an event, with webhook, µs", &guest(&|cost| cost.micros()[1]));
            report.figure("Redis: guest of an event, with webhook, calls", &guest(&Cost::redis_calls));
        }
        report.note(format!("A guest's steps, {nodes}: {}.", describe_guest_steps(&run.guests)));
    }
    report.figure("Redis: init, µs", &redis.micros(REDIS_INDEX, |turn| turn.init));
    report.figure("Redis: poll, callback, webhook, poll, µs", &redis.micros(REDIS_INDEX, |turn| turn.all_but_init()));
    report.figure_with_target("**Redis: the whole, µs**", &whole(redis, REDIS_INDEX), Target::AtMost(REDIS_MICROS_MAX));
    for (state, memory) in [("that waits", &redis.pending), ("that has ended", &redis.ended)] {
        report.figure(&format!("Redis memory of a transaction {state}, B"), &memory.memory);
        report.figure(&format!("its name, fields and values alone, {state}, B"), &memory.content);
    }
    let ratio = median(&whole(redis, NODE_INDEX)) / median(&whole(embedded, NODE_INDEX));
    report.figure_with_target("**node on Redis ÷ node embedded**", &[ratio], Target::AtMost(NODE_RATIO_MAX));
    report.note(format!(
        "{} verifications a turn with RS256 intents and eight claims, webhooks over plain HTTP, AOF always; as many \
         guests, each with page, start, verify page, intent and callback. Processor time only, without waiting. \
         [costs.json](costs.json) has each step by itself, over three nodes, with a light load, and its bytes on \
         disk and network.",
        scale.paced
    ));
    report
}
