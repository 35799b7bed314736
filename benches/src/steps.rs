//! Whole verifications, step by step, and the cost of each step: for all processes of a node or a peer, and for its
//! Redis.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::ops::{Add, Sub};
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_kit::redis::RedisServer;
use serde_json::{Value, json};

use crate::completion::IdentityApp;
use crate::load::{self, Measured, pause};
use crate::node::Service;
use crate::process::{Server, process_tree, resident, time_of_threads, written};
use crate::report::median;
use crate::scale::Scale;
use crate::webhooks::pace::id_of;
use crate::{Failure, requests, verification};

/// Polls per transaction; one alone would be too small to measure.
const POLLS: usize = 5;
/// Time for work after the last answer: records of webhooks, the store's own work.
const AFTERWARDS: Duration = Duration::from_millis(300);
/// Duration of an event.
const EVENT: Duration = Duration::from_secs(3_600);
/// The steps of a guest.
pub(crate) const GUEST: [&str; 5] = ["event page", "start", "verify page", "intent", "callback with webhook"];
/// User agent of a phone's browser.
const PHONE: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 \
    Mobile Safari/537.36";

/// Cost of one request or step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost(pub(crate) [f64; 9]);

impl Cost {
    /// Processor time of the node and of Redis in microseconds, bytes, and calls of Redis; see `docs/capacity.md`.
    pub(crate) const NAMES: [&str; 9] = [
        "node_us",
        "redis_us",
        "received_bytes",
        "sent_bytes",
        "disk_bytes",
        "log_bytes",
        "redis_in_bytes",
        "redis_out_bytes",
        "redis_calls",
    ];

    /// Returns the processor time of the node and of Redis, in microseconds.
    pub(crate) fn micros(self) -> [f64; 2] {
        [self.0[0], self.0[1]]
    }

    /// Returns the calls of Redis.
    pub(crate) fn redis_calls(self) -> f64 {
        self.0[8]
    }

    fn per(self, count: usize) -> Self {
        Self(self.0.map(|figure| figure / count.max(1) as f64))
    }

    /// Returns the median of each figure.
    pub(crate) fn median(turns: &[Self]) -> Self {
        Self(std::array::from_fn(|which| median(&turns.iter().map(|turn| turn.0[which]).collect::<Vec<_>>())))
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|which| self.0[which] + other.0[which]))
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(std::array::from_fn(|which| self.0[which] - other.0[which]))
    }
}

/// The cost of each step of a verification.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    pub(crate) init: Cost,
    /// Poll of a pending transaction.
    pub(crate) poll: Cost,
    /// Callback with its webhook.
    pub(crate) callback: Cost,
    /// Poll of a completed transaction.
    pub(crate) ended_poll: Cost,
}

impl Steps {
    /// Returns the cost of all steps but the init.
    pub(crate) fn rest(self) -> Cost {
        self.poll + self.callback + self.ended_poll
    }
}

/// One or several nodes (or a peer) with their store, and an identity app.
pub(crate) struct Deployment {
    pub(crate) service: Service,
    /// Further nodes on the same store; requests go to all of them.
    others: Vec<Server>,
    pub(crate) redis: Option<RedisServer>,
    pub(crate) identity_app: IdentityApp,
}

impl Deployment {
    pub(crate) fn new(service: Service, redis: Option<RedisServer>) -> Result<Self, Failure> {
        let identity_app = IdentityApp::new(&service)?;
        Ok(Self { service, others: Vec::new(), redis, identity_app })
    }

    /// Starts three nodes on one Redis with the same public URL, as behind a balancer; nobody connects to it.
    pub(crate) fn three(redis: RedisServer) -> Result<Self, Failure> {
        let settings = [("server.public_base_url", "http://127.0.0.1:9")];
        let service = Service::on_redis_with_settings(&redis.url(), None, &settings)?;
        let others =
            (0..2).map(|_| service.another_with_settings(&redis.url(), None, &settings)).collect::<Result<_, _>>()?;
        Ok(Self { others, ..Self::new(service, Some(redis))? })
    }

    fn servers(&self) -> Vec<&Server> {
        std::iter::once(&self.service.server).chain(&self.others).collect()
    }

    /// Sends each request once.
    fn send(&self, requests: Vec<Vec<u8>>, scale: Scale, keep: bool) -> Result<(Measured, Vec<Vec<u8>>), Failure> {
        load::each_once_over(&self.servers(), Arc::new(requests), scale, keep, scale.pause)
    }

    fn processes(&self) -> Result<Vec<u32>, Failure> {
        Ok(self.servers().into_iter().map(|server| process_tree(server.id())).collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Returns the cost so far.
    fn used(&self) -> Result<Cost, Failure> {
        let mut used = Cost::default();
        for id in self.processes()? {
            used.0[0] += time_of_threads(id)?.as_secs_f64() * 1e6;
            used.0[4] += written(id)? as f64;
        }
        let Some(redis) = &self.redis else { return Ok(used) };
        used.0[1] = verification::processor_time(redis)?.as_secs_f64() * 1e6;
        used.0[4] += written(redis_number(redis, "process_id")? as u32)? as f64;
        // Zero without an append-only file.
        used.0[5] = redis_number(redis, "aof_current_size").unwrap_or_default();
        used.0[6] = redis_number(redis, "total_net_input_bytes")?;
        used.0[7] = redis_number(redis, "total_net_output_bytes")?;
        Ok(used)
    }

    /// Returns the calls of Redis so far, by the nodes' own count. It costs them some processor time.
    fn redis_calls(&self) -> Result<f64, Failure> {
        if self.redis.is_none() {
            return Ok(0.0);
        }
        let of = |text: String| {
            text.lines().filter(|line| line.starts_with("sakshi_redis_calls_total{")).map(last_number).sum::<f64>()
        };
        Ok(self
            .servers()
            .into_iter()
            .map(|server| metrics(server).map(of))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .sum())
    }

    /// Returns the cost of some work divided by `count`, and its result.
    fn cost_of<T>(&self, count: usize, work: impl FnOnce() -> Result<T, Failure>) -> Result<(Cost, T), Failure> {
        let (calls, before) = (self.redis_calls()?, self.used()?);
        let done = work()?;
        pause(AFTERWARDS);
        let mut cost = self.used()? - before;
        cost.0[8] = self.redis_calls()? - calls;
        Ok((cost.per(count), done))
    }

    /// Sends each request `times` times; returns the answers if that is once.
    fn step(&self, requests: &[Vec<u8>], times: usize, scale: Scale) -> Result<(Cost, Vec<Vec<u8>>), Failure> {
        let all: Vec<Vec<u8>> = std::iter::repeat_n(requests, times).flatten().cloned().collect();
        let (mut cost, (measured, answers)) = self.cost_of(all.len(), || self.send(all, scale, times == 1))?;
        [cost.0[2], cost.0[3]] = measured.bytes;
        Ok((cost, answers))
    }

    /// Sends callbacks with a webhook each; waits until all webhooks have arrived.
    fn callbacks(&self, opened: &[Vec<u8>], receiver: &mut Server, scale: Scale) -> Result<Cost, Failure> {
        let callbacks = self.identity_app.answers(opened)?;
        receiver.command(&json!({ "count": { "warm": 0, "measured": callbacks.len() } }))?;
        let (mut cost, measured) = self.cost_of(opened.len(), || {
            let (measured, _) = self.send(callbacks, scale, false)?;
            receiver.read_line()?;
            Ok(measured)
        })?;
        [cost.0[2], cost.0[3]] = measured.bytes;
        Ok(cost)
    }

    /// Sends inits; returns the bodies of their answers.
    pub(crate) fn inits(&self, init: Vec<u8>, scale: Scale) -> Result<(Cost, Vec<Vec<u8>>), Failure> {
        self.step(&vec![init; scale.paced], 1, scale)
    }

    /// Runs whole verifications; returns the ids of their transactions.
    pub(crate) fn verifications(&self, receiver: &mut Server, scale: Scale) -> Result<(Steps, Vec<String>), Failure> {
        let server = &self.service.server;
        let (init, opened) = self.inits(requests::init_with_webhook(server, receiver.text("url")?)?, scale)?;
        let ids = opened.iter().map(|body| id_of(body)).collect::<Result<Vec<_>, Failure>>()?;
        let polls = ids.iter().map(|id| requests::poll(server, id)).collect::<Result<Vec<_>, Failure>>()?;
        let (poll, _) = self.step(&polls, POLLS, scale)?;
        let callback = self.callbacks(&opened, receiver, scale)?;
        let (ended_poll, _) = self.step(&polls, POLLS, scale)?;
        Ok((Steps { init, poll, callback, ended_poll }, ids))
    }

    /// Sends callbacks without a webhook.
    pub(crate) fn callback_alone(&self, scale: Scale) -> Result<Cost, Failure> {
        let (_, opened) = self.inits(requests::init_without_webhook(&self.service.server)?, scale)?;
        Ok(self.step(&self.identity_app.answers(&opened)?, 1, scale)?.0)
    }

    /// Runs guests of an event with their phones; returns the cost of each of [`GUEST`].
    pub(crate) fn guests(&self, receiver: &mut Server, scale: Scale) -> Result<[Cost; 5], Failure> {
        let server = &self.service.server;
        let terms = json!({
            "name": "Fair", "claims": requests::CLAIMS, "max_guests": scale.paced, "webhook_url": receiver.text("url")?,
            "expires_at": (SystemClock.now() + EVENT).to_string(),
        });
        let created: Value =
            serde_json::from_slice(&load::ask(server, &requests::signed(server, "POST", "/events", Some(&terms))?)?)?;
        let path = format!("/e/{}", created["event_id"].as_str().ok_or("no event id")?);
        let page = requests::browser(server, "GET", &path, PHONE, "");
        let (page, _) = self.step(&vec![page; scale.paced], 1, scale)?;
        let start =
            requests::browser(server, "POST", &format!("{path}/start"), PHONE, "Sec-Fetch-Site: same-origin\r\n");
        let (start, redirects) = self.step(&vec![start; scale.paced], 1, scale)?;
        let redirects = redirects.iter().map(|answer| redirect_of(answer)).collect::<Result<Vec<_>, Failure>>()?;
        let shown: Vec<_> =
            redirects.iter().map(|(path, cookie)| requests::browser(server, "GET", path, PHONE, cookie)).collect();
        let (shown, _) = self.step(&shown, 1, scale)?;
        let asked: Vec<_> = redirects.iter().map(|(path, _)| requests::intent_at(server, path)).collect();
        let (asked, intents) = self.step(&asked, 1, scale)?;
        Ok([page, start, shown, asked, self.callbacks(&intents, receiver, scale)?])
    }

    /// Returns the resident bytes of all processes of the server, and of Redis.
    pub(crate) fn resident(&self) -> Result<[u64; 2], Failure> {
        let server = self.processes()?.into_iter().map(resident).sum::<Result<u64, Failure>>()?;
        let redis = self.redis.as_ref().map_or(Ok(0), |redis| resident(redis_number(redis, "process_id")? as u32))?;
        Ok([server, redis])
    }
}

/// Returns the metrics of a node as text; a peer has none.
fn metrics(server: &Server) -> Result<String, Failure> {
    let Ok(address) = server.text("internal") else { return Ok(String::new()) };
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Returns the value of a metric's line.
fn last_number(line: &str) -> f64 {
    line.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Returns a number from Redis' INFO.
pub(crate) fn redis_number(redis: &RedisServer, field: &str) -> Result<f64, Failure> {
    redis.info(field).and_then(|text| text.parse().ok()).ok_or_else(|| format!("Redis' INFO has no {field}").into())
}

/// Returns the path of the verify page and the cookie header from a redirect.
fn redirect_of(answer: &[u8]) -> Result<(String, String), Failure> {
    let text = String::from_utf8_lossy(answer);
    let header = |wanted: &str| {
        let named =
            text.lines().filter_map(|line| line.split_once(": ")).find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.map(|(_, value)| value.trim())
    };
    let location = header("location")
        .and_then(|location| location.find("/v/").map(|at| &location[at..]))
        .ok_or("no verify page")?;
    let cookie = header("set-cookie").and_then(|set| set.split(';').next()).unwrap_or_default();
    Ok((location.to_owned(), format!("Cookie: {cookie}\r\n")))
}
