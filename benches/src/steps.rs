//! Whole verifications, step by step, and the cost of each step, for all processes of a node or a peer and for its
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
use crate::load::{self, BodyMode, Measurement, pause};
use crate::node::Service;
use crate::process::{Server, process_tree, resident_bytes, threads_time, written_bytes};
use crate::report::median;
use crate::scale::Scale;
use crate::webhooks::pace::opened_txn_id;
use crate::{Failure, requests, verification};

/// Polls of each transaction in a step; a single poll would be too short to measure.
const POLLS: usize = 5;
/// Time after the last answer for the rest of the work: records of webhooks, and the store's own work.
const REMAINING_WORK_TIME: Duration = Duration::from_millis(300);
const EVENT_DURATION: Duration = Duration::from_secs(3_600);
/// Names of a guest's steps.
pub(crate) const GUEST_STEPS: [&str; 5] = ["event page", "start", "verify page", "intent", "callback with webhook"];
const PHONE_USER_AGENT: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/126.0.0.0 Mobile Safari/537.36";

/// Index of the node in pairs of figures of node and Redis.
pub(crate) const NODE_INDEX: usize = 0;
/// Index of Redis in such pairs.
pub(crate) const REDIS_INDEX: usize = 1;

/// Cost of one request or step: the figures of [`Cost::NAMES`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost(pub(crate) [f64; 9]);

impl Cost {
    /// Names of the figures: microseconds of the node and of Redis, bytes, and calls of Redis (`docs/capacity.md`).
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

    // Indices of the figures.
    const NODE_US: usize = 0;
    const REDIS_US: usize = 1;
    const RECEIVED_BYTES: usize = 2;
    const SENT_BYTES: usize = 3;
    const DISK_BYTES: usize = 4;
    const LOG_BYTES: usize = 5;
    const REDIS_IN_BYTES: usize = 6;
    const REDIS_OUT_BYTES: usize = 7;
    const REDIS_CALLS: usize = 8;

    /// Returns the microseconds of the node and of Redis.
    pub(crate) fn micros(self) -> [f64; 2] {
        [self.0[Self::NODE_US], self.0[Self::REDIS_US]]
    }

    /// Returns the number of calls of Redis.
    pub(crate) fn redis_calls(self) -> f64 {
        self.0[Self::REDIS_CALLS]
    }

    fn divided_by(self, count: usize) -> Self {
        Self(self.0.map(|figure| figure / count.max(1) as f64))
    }

    /// Returns the median of each figure.
    pub(crate) fn median(turns: &[Self]) -> Self {
        Self(std::array::from_fn(|index| median(&turns.iter().map(|turn| turn.0[index]).collect::<Vec<_>>())))
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| self.0[index] + other.0[index]))
    }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(std::array::from_fn(|index| self.0[index] - other.0[index]))
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
    pub(crate) fn all_but_init(self) -> Cost {
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
    pub(crate) fn with_three_nodes(redis: RedisServer) -> Result<Self, Failure> {
        let settings = [("server.public_base_url", "http://127.0.0.1:9")];
        let service = Service::on_redis_with_settings(&redis.url(), None, &settings)?;
        let others = (0..2)
            .map(|_| service.start_another_with_settings(&redis.url(), None, &settings))
            .collect::<Result<_, _>>()?;
        Ok(Self { others, ..Self::new(service, Some(redis))? })
    }

    /// Returns all nodes.
    fn servers(&self) -> Vec<&Server> {
        std::iter::once(&self.service.server).chain(&self.others).collect()
    }

    /// Sends each request once to the nodes. Returns the bodies of the answers if they are kept.
    fn send(
        &self,
        requests: Vec<Vec<u8>>,
        scale: Scale,
        body_mode: BodyMode,
    ) -> Result<(Measurement, Vec<Vec<u8>>), Failure> {
        load::each_once_over(&self.servers(), Arc::new(requests), scale, body_mode, scale.pause)
    }

    /// Returns the ids of all processes of the nodes.
    fn processes(&self) -> Result<Vec<u32>, Failure> {
        Ok(self.servers().into_iter().map(|server| process_tree(server.id())).collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Returns the cost so far; bytes of requests and answers and calls of Redis are not counted.
    fn cost_so_far(&self) -> Result<Cost, Failure> {
        let mut cost = Cost::default();
        for id in self.processes()? {
            cost.0[Cost::NODE_US] += threads_time(id)?.as_secs_f64() * 1e6;
            cost.0[Cost::DISK_BYTES] += written_bytes(id)? as f64;
        }
        let Some(redis) = &self.redis else { return Ok(cost) };
        cost.0[Cost::REDIS_US] = verification::processor_time(redis)?.as_secs_f64() * 1e6;
        cost.0[Cost::DISK_BYTES] += written_bytes(redis_number(redis, "process_id")? as u32)? as f64;
        // Zero without an append-only file.
        cost.0[Cost::LOG_BYTES] = redis_number(redis, "aof_current_size").unwrap_or_default();
        cost.0[Cost::REDIS_IN_BYTES] = redis_number(redis, "total_net_input_bytes")?;
        cost.0[Cost::REDIS_OUT_BYTES] = redis_number(redis, "total_net_output_bytes")?;
        Ok(cost)
    }

    /// Returns the number of calls of Redis so far, as the nodes count them. Reading it costs them some processor time.
    fn redis_calls(&self) -> Result<f64, Failure> {
        if self.redis.is_none() {
            return Ok(0.0);
        }
        let sum_of_calls = |text: String| {
            text.lines().filter(|line| line.starts_with("sakshi_redis_calls_total{")).map(last_number).sum::<f64>()
        };
        Ok(self
            .servers()
            .into_iter()
            .map(|server| metrics(server).map(sum_of_calls))
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .sum())
    }

    /// Does some work; returns its cost divided by `count`, and its result.
    fn measure<T>(&self, count: usize, work: impl FnOnce() -> Result<T, Failure>) -> Result<(Cost, T), Failure> {
        let (calls, before) = (self.redis_calls()?, self.cost_so_far()?);
        let result = work()?;
        pause(REMAINING_WORK_TIME);
        let mut cost = self.cost_so_far()? - before;
        cost.0[Cost::REDIS_CALLS] = self.redis_calls()? - calls;
        Ok((cost.divided_by(count), result))
    }

    /// Sends each request `times` times; returns the bodies of the answers if `times` is 1.
    fn step(&self, requests: &[Vec<u8>], times: usize, scale: Scale) -> Result<(Cost, Vec<Vec<u8>>), Failure> {
        let repeated: Vec<Vec<u8>> = std::iter::repeat_n(requests, times).flatten().cloned().collect();
        let body_mode = if times == 1 { BodyMode::Keep } else { BodyMode::Discard };
        let (mut cost, (measurement, bodies)) =
            self.measure(repeated.len(), || self.send(repeated, scale, body_mode))?;
        [cost.0[Cost::RECEIVED_BYTES], cost.0[Cost::SENT_BYTES]] = measurement.bytes;
        Ok((cost, bodies))
    }

    /// Sends callbacks with a webhook each, and waits until all webhooks have arrived.
    fn callbacks(&self, opened: &[Vec<u8>], receiver: &mut Server, scale: Scale) -> Result<Cost, Failure> {
        let callbacks = self.identity_app.callbacks_for(opened)?;
        receiver.command(&json!({ "count": { "warm": 0, "measured": callbacks.len() } }))?;
        let (mut cost, measurement) = self.measure(opened.len(), || {
            let (measurement, _) = self.send(callbacks, scale, BodyMode::Discard)?;
            receiver.read_line()?;
            Ok(measurement)
        })?;
        [cost.0[Cost::RECEIVED_BYTES], cost.0[Cost::SENT_BYTES]] = measurement.bytes;
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
        let ids = opened.iter().map(|body| opened_txn_id(body)).collect::<Result<Vec<_>, Failure>>()?;
        let polls = ids.iter().map(|id| requests::poll(server, id)).collect::<Result<Vec<_>, Failure>>()?;
        let (poll, _) = self.step(&polls, POLLS, scale)?;
        let callback = self.callbacks(&opened, receiver, scale)?;
        let (ended_poll, _) = self.step(&polls, POLLS, scale)?;
        Ok((Steps { init, poll, callback, ended_poll }, ids))
    }

    /// Sends callbacks without a webhook.
    pub(crate) fn callback_alone(&self, scale: Scale) -> Result<Cost, Failure> {
        let (_, opened) = self.inits(requests::init_without_webhook(&self.service.server)?, scale)?;
        Ok(self.step(&self.identity_app.callbacks_for(&opened)?, 1, scale)?.0)
    }

    /// Plays guests of an event with their phones; returns the cost of each of [`GUEST_STEPS`].
    pub(crate) fn guests(&self, receiver: &mut Server, scale: Scale) -> Result<[Cost; 5], Failure> {
        let server = &self.service.server;
        let terms = json!({
            "name": "Fair", "claims": requests::CLAIMS, "max_guests": scale.paced, "webhook_url": receiver.text("url")?,
            "expires_at": (SystemClock.now() + EVENT_DURATION).to_string(),
        });
        let created: Value = serde_json::from_slice(&load::send_one(
            server,
            &requests::client_request(server, "POST", "/events", Some(&terms))?,
        )?)?;
        let path = format!("/e/{}", created["event_id"].as_str().ok_or("no event id")?);
        let page = requests::browser_request(server, "GET", &path, PHONE_USER_AGENT, "");
        let (page, _) = self.step(&vec![page; scale.paced], 1, scale)?;
        let start = requests::browser_request(
            server,
            "POST",
            &format!("{path}/start"),
            PHONE_USER_AGENT,
            "Sec-Fetch-Site: same-origin\r\n",
        );
        let (start, redirects) = self.step(&vec![start; scale.paced], 1, scale)?;
        let redirects = redirects.iter().map(|answer| parse_redirect(answer)).collect::<Result<Vec<_>, Failure>>()?;
        let verify_pages: Vec<_> = redirects
            .iter()
            .map(|(path, cookie)| requests::browser_request(server, "GET", path, PHONE_USER_AGENT, cookie))
            .collect();
        let (verify_page, _) = self.step(&verify_pages, 1, scale)?;
        let intent_requests: Vec<_> = redirects.iter().map(|(path, _)| requests::intent_at(server, path)).collect();
        let (intent, intents) = self.step(&intent_requests, 1, scale)?;
        Ok([page, start, verify_page, intent, self.callbacks(&intents, receiver, scale)?])
    }

    /// Returns the resident bytes of all processes of the server, and of Redis.
    pub(crate) fn resident_bytes(&self) -> Result<[u64; 2], Failure> {
        let server = self.processes()?.into_iter().map(resident_bytes).sum::<Result<u64, Failure>>()?;
        let redis =
            self.redis.as_ref().map_or(Ok(0), |redis| resident_bytes(redis_number(redis, "process_id")? as u32))?;
        Ok([server, redis])
    }
}

/// Returns the metrics of a node as text; a peer has no metrics.
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

/// Returns the path of the verify page and the cookie header line from a redirect.
fn parse_redirect(answer: &[u8]) -> Result<(String, String), Failure> {
    let text = String::from_utf8_lossy(answer);
    let header = |header_name: &str| {
        let header = text
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(name, _)| name.eq_ignore_ascii_case(header_name));
        header.map(|(_, value)| value.trim())
    };
    let location = header("location")
        .and_then(|location| location.find("/v/").map(|start| &location[start..]))
        .ok_or("no verify page")?;
    let cookie = header("set-cookie").and_then(|set| set.split(';').next()).unwrap_or_default();
    Ok((location.to_owned(), format!("Cookie: {cookie}\r\n")))
}
