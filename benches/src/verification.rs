//! Cost of a whole verification on each store and with each signature: processor time of the node and of Redis, and the
//! figures that [`crate::costs`] stores for planning.

use std::ops::Add as _;
use std::time::Duration;

use sakshi_domain::ids::TxnId;
use sakshi_kit::redis::RedisServer;
use sakshi_kit::redis::resp::Reply;
use serde_json::{Value, json};

use crate::costs::{self, Arithmetic, StoreCosts};
use crate::node::Service;
use crate::process::Server;
use crate::report::{Report, Target, median};
use crate::scale::Scale;
use crate::steps::{Cost, Deployment, GUEST, Steps, redis_number};
use crate::{Failure, requests};

/// Microseconds of Redis for a whole verification.
const REDIS_MICROS_MAX: f64 = 250.0;
/// A node on Redis ÷ an embedded one.
const NODE_RATIO_MAX: f64 = 1.1;

/// Production settings, except that the file is never rewritten, so that its growth can be measured.
const REDIS: &[&str] =
    &["appendonly yes", "appendfsync always", "hash-max-listpack-value 1024", "auto-aof-rewrite-percentage 0"];

/// Bytes of a transaction in Redis: memory, and the length of its key, fields and values alone.
#[derive(Default)]
struct RedisMemory {
    memory: Vec<f64>,
    content: Vec<f64>,
}

impl RedisMemory {
    fn sample(&mut self, redis: &RedisServer, id: &str) -> Result<(), Failure> {
        let id: TxnId = id.parse()?;
        let keys = redis.answer(&["KEYS", "*}txn:*"]);
        let is_of = |key: &&[u8]| key.ends_with(id.as_bytes());
        let key =
            keys.members().iter().filter_map(Reply::bytes).find(is_of).ok_or("the transaction is not in Redis")?;
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

/// One store with its nodes, and the results.
struct StoreRun {
    /// One node, for the table.
    one: Deployment,
    /// Three nodes on Redis, for planning.
    three: Option<Deployment>,
    steps: Vec<Steps>,
    planned: Vec<Steps>,
    light: Option<(Steps, [Cost; 2])>,
    /// Callbacks without a webhook.
    callbacks: Vec<Cost>,
    /// Guests, by step.
    guests: Vec<[Cost; 5]>,
    pending: RedisMemory,
    ended: RedisMemory,
    /// Resident bytes of a fresh node; then bytes of a pending transaction in the node and in the store.
    node: f64,
    waiting: [f64; 2],
    /// Bytes of a completed transaction with its other records.
    store_ended: Vec<f64>,
}

impl StoreRun {
    fn on(with_redis: bool, scale: Scale) -> Result<Self, Failure> {
        let redis = || RedisServer::start(REDIS);
        let (one, three) = if with_redis {
            let first = redis();
            let one = Deployment::new(Service::on_redis(&first.url(), None)?, Some(first))?;
            (one, Some(Deployment::three(redis())?))
        } else {
            (Deployment::new(Service::start(None)?, None)?, None)
        };
        let node = one.resident()?[0] as f64;
        let (steps, planned, pending, ended, store_ended) = Default::default();
        let (callbacks, guests, waiting) = Default::default();
        let light = None;
        let mut run =
            Self { one, three, steps, planned, light, callbacks, guests, pending, ended, node, waiting, store_ended };
        run.fill(scale.live / 10)?;
        Ok(run)
    }

    /// Opens `count` transactions without HTTP and measures the bytes of one.
    fn fill(&mut self, count: usize) -> Result<(), Failure> {
        let kept = self.kept()?;
        self.one.service.open(count)?;
        self.waiting =
            [self.one.resident()?[0] as f64 - self.node, self.kept()? - kept].map(|bytes| bytes / count as f64);
        Ok(())
    }

    fn turn(&mut self, receiver: &mut Server, scale: Scale) -> Result<(), Failure> {
        let before = self.kept()?;
        let (steps, ids) = self.one.verifications(receiver, scale)?;
        self.steps.push(steps);
        self.store_ended.push((self.kept()? - before) / ids.len() as f64);
        let last = ids.last().ok_or("nothing was opened")?.clone();
        let settled = self.one.service.server.command(&json!({ "completed": ids }))?;
        if settled["delivered"] != json!(ids.len()) {
            return Err("a webhook was not delivered".into());
        }
        let (_, waiting) = self.one.inits(
            requests::init_with_webhook(&self.one.service.server, receiver.text("url")?)?,
            Scale { paced: 1, ..scale },
        )?;
        if let Some(redis) = &self.one.redis {
            self.ended.sample(redis, &last)?;
            self.pending.sample(redis, &crate::webhooks::pace::id_of(&waiting[0])?)?;
        }
        if let Some(three) = &self.three {
            self.planned.push(three.verifications(receiver, scale)?.0);
        }
        self.callbacks.push(self.nodes().callback_alone(scale)?);
        self.guests.push(self.nodes().guests(receiver, scale)?);
        Ok(())
    }

    /// Returns the nodes whose costs are used for planning.
    fn nodes(&self) -> &Deployment {
        self.three.as_ref().unwrap_or(&self.one)
    }

    /// Measures everything again with a light load.
    fn measure_light(&mut self, receiver: &mut Server) -> Result<(), Failure> {
        let steps = self.nodes().verifications(receiver, costs::LIGHT)?.0;
        let guest = whole(&self.nodes().guests(receiver, costs::LIGHT)?);
        self.light = Some((steps, [self.nodes().callback_alone(costs::LIGHT)?, guest]));
        Ok(())
    }

    /// Returns the bytes in Redis' memory, or in the embedded store's files.
    fn kept(&self) -> Result<f64, Failure> {
        match &self.one.redis {
            Some(redis) => redis_number(redis, "used_memory"),
            None => costs::size_of(self.one.service.directory.path()).map(|bytes| bytes as f64),
        }
    }

    /// Returns the figures for `costs.json`.
    fn costs(&self) -> Value {
        let [node_pending, store_pending] = self.waiting;
        let steps = if self.planned.is_empty() { &self.steps } else { &self.planned };
        let (light, store_ended) = (self.light.unwrap_or_default(), median(&self.store_ended));
        let more = &[self.callbacks.clone(), self.guests.iter().map(whole).collect()];
        StoreCosts { steps, more, light, node: self.node, node_pending, store_pending, store_ended }.to_json()
    }

    fn micros(&self, who: usize, part: impl Fn(&Steps) -> Cost) -> Vec<f64> {
        self.steps.iter().map(|turn| part(turn).micros()[who]).collect()
    }
}

/// Returns the cost of all steps of a guest.
fn whole(steps: &[Cost; 5]) -> Cost {
    steps.iter().copied().fold(Cost::default(), Cost::add)
}

/// Returns the processor time of a Redis and its child processes.
pub(crate) fn processor_time(redis: &RedisServer) -> Result<Duration, Failure> {
    let parts = ["used_cpu_user", "used_cpu_sys", "used_cpu_user_children", "used_cpu_sys_children"];
    Ok(Duration::from_secs_f64(parts.iter().map(|part| redis_number(redis, part)).sum::<Result<f64, _>>()?))
}

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let mut receiver = Server::start(&["receive"])?;
    let mut runs = [StoreRun::on(false, scale)?, StoreRun::on(true, scale)?];
    for _ in 0..scale.rounds {
        for run in &mut runs {
            run.turn(&mut receiver, scale)?;
        }
    }
    for run in &mut runs {
        run.measure_light(&mut receiver)?;
    }
    let arithmetic = Arithmetic::measured(scale)?;
    let mut report = report(&runs, arithmetic, scale);
    let webhook = costs::bytes_of_webhook(&receiver.command(&json!({ "sample": true }))?);
    let [embedded, redis] = runs.each_ref().map(StoreRun::costs);
    // Otherwise they would disturb the following measurements.
    drop(runs);
    report.costs = Some(costs::all(&embedded, &redis, webhook, arithmetic, scale)?);
    Ok(report)
}

/// Writes the node's microseconds, Redis' and its calls, of each step of a guest.
fn steps_of_guest(turns: &[[Cost; 5]]) -> String {
    let step = |(number, name): (usize, &&str)| {
        let of = |part: &dyn Fn(Cost) -> f64| median(&turns.iter().map(|turn| part(turn[number])).collect::<Vec<_>>());
        let [node, redis, calls] = [of(&|cost| cost.micros()[0]), of(&|cost| cost.micros()[1]), of(&Cost::redis_calls)];
        if calls > 0.0 {
            format!("{name} {node:.0} + {redis:.0} µs, {calls:.1} calls")
        } else {
            format!("{name} {node:.0} µs")
        }
    };
    GUEST.iter().enumerate().map(step).collect::<Vec<_>>().join("; ")
}

fn report([embedded, redis]: &[StoreRun; 2], Arithmetic { rs256, check }: Arithmetic, scale: Scale) -> Report {
    let mut report = Report::new("verification");
    report.figure("arithmetic: one RS256 signature, µs", &[rs256]);
    report.figure("arithmetic: two ES256 checks, µs", &[2.0 * check]);
    let both = |run: &StoreRun, who| run.micros(who, |turn| turn.init + turn.rest());
    for (name, run) in [("embedded", embedded), ("on Redis", redis)] {
        report.beside_arithmetic(&format!("node {name}: init, µs"), &run.micros(0, |turn| turn.init), rs256);
        let rest = run.micros(0, |turn| turn.rest());
        report.beside_arithmetic(&format!("node {name}: poll, callback, webhook, poll, µs"), &rest, 2.0 * check);
        report.beside_arithmetic(&format!("node {name}: the whole, µs"), &both(run, 0), rs256 + 2.0 * check);
        let nodes = if run.three.is_some() { "three nodes on Redis" } else { "node embedded" };
        let guest = |part: &dyn Fn(Cost) -> f64| run.guests.iter().map(|steps| part(whole(steps))).collect::<Vec<_>>();
        let spent = guest(&|cost| cost.micros()[0]);
        report.beside_arithmetic(&format!("{nodes}: guest of an event, with webhook, µs"), &spent, rs256 + 2.0 * check);
        if run.three.is_some() {
            report.figure("Redis: guest of an event, with webhook, µs", &guest(&|cost| cost.micros()[1]));
            report.figure("Redis: guest of an event, with webhook, calls", &guest(&Cost::redis_calls));
        }
        report.note(format!("A guest's steps, {nodes}: {}.", steps_of_guest(&run.guests)));
    }
    report.figure("Redis: init, µs", &redis.micros(1, |turn| turn.init));
    report.figure("Redis: poll, callback, webhook, poll, µs", &redis.micros(1, |turn| turn.rest()));
    report.judged("**Redis: the whole, µs**", &both(redis, 1), Target::AtMost(REDIS_MICROS_MAX));
    for (what, kept) in [("that waits", &redis.pending), ("that has ended", &redis.ended)] {
        report.figure(&format!("Redis memory of a transaction {what}, B"), &kept.memory);
        report.figure(&format!("its name, fields and values alone, {what}, B"), &kept.content);
    }
    let ratio = median(&both(redis, 0)) / median(&both(embedded, 0));
    report.judged("**node on Redis ÷ node embedded**", &[ratio], Target::AtMost(NODE_RATIO_MAX));
    report.note(format!(
        "{} verifications a turn with RS256 intents and eight claims, webhooks over plain HTTP, AOF always; as many \
         guests, each with page, start, verify page, intent and callback. Processor time only, without waiting. \
         [costs.json](costs.json) has each step by itself, over three nodes, with a light load, and its bytes on \
         disk and network.",
        scale.paced
    ));
    report
}
