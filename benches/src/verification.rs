//! What one whole verification costs, on either store: its init, and then a poll, the callback with its
//! verification, the webhook and another poll. Processor time of the node and of Redis, each alone.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use crate::completion::Wallet;
use crate::load::{self, Requests};
use crate::node::Service;
use crate::process::Server;
use crate::recording::redis;
use crate::redis_server::RedisServer;
use crate::redis_server::resp::Reply;
use crate::report::{Report, Target, median};
use crate::scale::Scale;
use crate::webhooks::pace::id_of;
use crate::{Failure, requests};

/// Redis, for a whole verification, in microseconds.
const REDIS_MOST: f64 = 250.0;
/// A node on Redis beside an embedded one.
const NODE_MOST: f64 = 1.1;

/// What a transaction takes in Redis: of memory, and of bytes in its name, its fields and their values alone.
#[derive(Default)]
struct Kept {
    memory: Vec<f64>,
    content: Vec<f64>,
}

impl Kept {
    fn look(&mut self, redis: &RedisServer, id: &str) -> Result<(), Failure> {
        let key = redis.answer(&["KEYS", &format!("*t:{id}")]).members().first().and_then(Reply::text).ok_or("it is not in Redis")?;
        let memory = redis.answer(&["MEMORY", "USAGE", &key, "SAMPLES", "0"]).integer().ok_or("Redis does not say what it takes")?;
        let bytes = |reply: &Reply| if let Reply::Bulk(Some(bytes)) = reply { bytes.len() } else { 0 };
        let content: usize = redis.answer(&["HGETALL", &key]).members().iter().map(bytes).sum();
        self.memory.push(memory as f64);
        self.content.push((key.len() + content) as f64);
        Ok(())
    }
}

/// Processor time for one verification, in microseconds.
#[derive(Default)]
struct Costs {
    init: Vec<f64>,
    rest: Vec<f64>,
}

struct Place {
    service: Service,
    redis: Option<RedisServer>,
    node: Costs,
    store: Costs,
    pending: Kept,
    ended: Kept,
}

impl Place {
    fn on(redis: Option<RedisServer>) -> Result<Self, Failure> {
        let service = match &redis {
            Some(redis) => Service::on_redis(&redis.url(), None)?,
            None => Service::start(None)?,
        };
        Ok(Self { service, redis, node: Costs::default(), store: Costs::default(), pending: Kept::default(), ended: Kept::default() })
    }

    /// Of the node and of Redis, so far.
    fn used(&self) -> Result<[Duration; 2], Failure> {
        let store = self.redis.as_ref().map_or(Ok(Duration::ZERO), processor_time)?;
        Ok([self.service.server.processor_time()?, store])
    }

    fn since(&self, before: [Duration; 2], count: usize) -> Result<[f64; 2], Failure> {
        let now = self.used()?;
        Ok([0, 1].map(|who| now[who].saturating_sub(before[who]).as_secs_f64() * 1e6 / count as f64))
    }

    fn turn(&mut self, receiver: &Server, scale: Scale) -> Result<(), Failure> {
        let inits = vec![requests::init_with_webhook(&self.service.server, receiver.text("url")?)?; scale.paced];
        let before = self.used()?;
        let (_, opened) = load::each_once(&self.service.server, Arc::new(inits), scale, true)?;
        let [node, store] = self.since(before, scale.paced)?;
        self.node.init.push(node);
        self.store.init.push(store);
        let ids = opened.iter().map(|body| id_of(body)).collect::<Result<Vec<_>, Failure>>()?;
        let last = ids.last().ok_or("nothing was opened")?;
        if let Some(redis) = &self.redis {
            self.pending.look(redis, last)?;
        }
        let polls = ids.iter().map(|id| requests::poll(&self.service.server, id)).collect::<Result<Vec<_>, Failure>>()?;
        let polls: Requests = Arc::new(polls);
        let callbacks = Arc::new(Wallet::new(&self.service)?.answers(&opened)?);
        let before = self.used()?;
        load::each_once(&self.service.server, Arc::clone(&polls), scale, false)?;
        load::each_once(&self.service.server, callbacks, scale, false)?;
        load::each_once(&self.service.server, polls, scale, false)?;
        let [node, store] = self.since(before, scale.paced)?;
        self.node.rest.push(node);
        self.store.rest.push(store);
        // The webhooks have ended by then: they keep pace, and the polls came behind them.
        let settled = self.service.server.tell(&json!({ "completed": ids }))?;
        if settled["delivered"] != json!(ids.len()) {
            return Err("a webhook was not delivered".into());
        }
        self.redis.as_ref().map_or(Ok(()), |redis| self.ended.look(redis, last))
    }
}

/// Of a server and all that it has forked.
pub(crate) fn processor_time(redis: &RedisServer) -> Result<Duration, Failure> {
    let parts = ["used_cpu_user", "used_cpu_sys", "used_cpu_user_children", "used_cpu_sys_children"];
    let seconds = |part: &str| redis.info(part).and_then(|text| text.parse::<f64>().ok()).ok_or("Redis does not say what it used");
    Ok(Duration::from_secs_f64(parts.iter().map(|part| seconds(part)).sum::<Result<f64, _>>()?))
}

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let receiver = Server::start(&["receive"])?;
    let mut places = [Place::on(None)?, Place::on(Some(redis("always")))?];
    for _ in 0..scale.rounds {
        for place in &mut places {
            place.turn(&receiver, scale)?;
        }
    }
    let [embedded, redis] = &places;
    let mut report = Report::new("verification");
    for (name, place) in [("embedded", embedded), ("on Redis", redis)] {
        report.figure(&format!("node {name}: init, µs"), &place.node.init);
        report.figure(&format!("node {name}: poll, callback, webhook, poll, µs"), &place.node.rest);
    }
    report.figure("Redis: init, µs", &redis.store.init);
    report.figure("Redis: poll, callback, webhook, poll, µs", &redis.store.rest);
    let whole = |costs: &Costs| costs.init.iter().zip(&costs.rest).map(|(init, rest)| init + rest).collect::<Vec<_>>();
    report.judged("**Redis: the whole, µs**", &whole(&redis.store), Target::AtMost(REDIS_MOST));
    for (what, kept) in [("that waits", &redis.pending), ("that has ended", &redis.ended)] {
        report.figure(&format!("Redis memory of a transaction {what}, B"), &kept.memory);
        report.figure(&format!("its name, fields and values alone, {what}, B"), &kept.content);
    }
    let ratio = median(&whole(&redis.node)) / median(&whole(&embedded.node));
    report.judged("**node on Redis ÷ node embedded**", &[ratio], Target::AtMost(NODE_MOST));
    report.note(format!(
        "{} verifications a turn with RS256 intents and eight claims, webhooks over plain HTTP, AOF always. Processor time alone: what waits costs nothing.",
        scale.paced
    ));
    Ok(report)
}
