//! Whole verifications, one step after another, and what each step costs: of a node or a peer's server with all its
//! processes, and of its Redis.

use std::ops::{Add, Sub};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::{Clock as _, SystemClock};
use serde_json::{Value, json};

use crate::completion::Wallet;
use crate::load::{self, Measured, pause};
use crate::node::Service;
use crate::process::{Server, family, resident, time_of_threads, written};
use crate::report::median;
use crate::scale::Scale;
use crate::webhooks::pace::id_of;
use crate::{Failure, requests, verification};
use sakshi_kit::redis::RedisServer;

/// A poll costs so little that it is repeated to be seen.
const POLLS: usize = 5;
/// For what is still done when the last answer has come: records of webhooks, the store's own work.
const AFTERWARDS: Duration = Duration::from_millis(300);
/// How long an event lasts.
const EVENT: Duration = Duration::from_secs(3_600);
/// What a phone's browser calls itself.
const PHONE: &str = "Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile Safari/537.36";

/// What one of something costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Cost(pub(crate) [f64; 8]);

impl Cost {
    /// Processor time of the node and of Redis in microseconds; then bytes: that clients send and are sent, written to a
    /// disk in blocks, appended to Redis' file, and that Redis is sent and sends.
    pub(crate) const NAMES: [&str; 8] =
        ["node_us", "redis_us", "received_bytes", "sent_bytes", "disk_bytes", "log_bytes", "redis_in_bytes", "redis_out_bytes"];

    /// Of the node and of Redis, in microseconds.
    pub(crate) fn micros(self) -> [f64; 2] {
        [self.0[0], self.0[1]]
    }

    fn per(self, count: usize) -> Self {
        Self(self.0.map(|figure| figure / count.max(1) as f64))
    }

    /// The middle of each figure.
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

/// The steps of a verification, each for itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Steps {
    pub(crate) init: Cost,
    /// Of a transaction that waits.
    pub(crate) poll: Cost,
    /// With its webhook.
    pub(crate) callback: Cost,
    /// Of a transaction that has ended.
    pub(crate) ended_poll: Cost,
}

impl Steps {
    /// All but the init.
    pub(crate) fn rest(self) -> Cost {
        self.poll + self.callback + self.ended_poll
    }
}

/// A server with its store, or several, and who answers its intents.
pub(crate) struct Place {
    pub(crate) service: Service,
    /// Further nodes on the same store; requests go to all in turn.
    others: Vec<Server>,
    pub(crate) redis: Option<RedisServer>,
    pub(crate) wallet: Wallet,
}

impl Place {
    pub(crate) fn new(service: Service, redis: Option<RedisServer>) -> Result<Self, Failure> {
        let wallet = Wallet::new(&service)?;
        Ok(Self { service, others: Vec::new(), redis, wallet })
    }

    /// Three nodes on one Redis, which have one address as before a balancer; nobody connects to it.
    pub(crate) fn three(redis: RedisServer, key: Option<&Path>) -> Result<Self, Failure> {
        let settings = [("server.public_base_url", "http://127.0.0.1:9")];
        let service = Service::on_redis_set(&redis.url(), key, &settings)?;
        let others = (0..2).map(|_| service.beside_set(&redis.url(), key, &settings)).collect::<Result<_, _>>()?;
        Ok(Self { others, ..Self::new(service, Some(redis))? })
    }

    fn servers(&self) -> Vec<&Server> {
        std::iter::once(&self.service.server).chain(&self.others).collect()
    }

    /// Sends each request once and measures until all is done.
    fn send(&self, requests: Vec<Vec<u8>>, scale: Scale, keep: bool) -> Result<(Measured, Vec<Vec<u8>>), Failure> {
        load::each_once_over(&self.servers(), Arc::new(requests), scale, keep, scale.pause)
    }

    fn processes(&self) -> Result<Vec<u32>, Failure> {
        Ok(self.servers().into_iter().map(|server| family(server.id())).collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// So far.
    fn used(&self) -> Result<Cost, Failure> {
        let mut used = Cost::default();
        for id in self.processes()? {
            used.0[0] += time_of_threads(id)?.as_secs_f64() * 1e6;
            used.0[4] += written(id)? as f64;
        }
        let Some(redis) = &self.redis else { return Ok(used) };
        used.0[1] = verification::processor_time(redis)?.as_secs_f64() * 1e6;
        used.0[4] += written(number(redis, "process_id")? as u32)? as f64;
        // Only a Redis that keeps such a file has its size.
        used.0[5] = number(redis, "aof_current_size").unwrap_or_default();
        used.0[6] = number(redis, "total_net_input_bytes")?;
        used.0[7] = number(redis, "total_net_output_bytes")?;
        Ok(used)
    }

    /// Sends each request so often, and keeps the answers of those that are sent once.
    fn step(&self, requests: &[Vec<u8>], times: usize, scale: Scale) -> Result<(Cost, Vec<Vec<u8>>), Failure> {
        let all: Vec<Vec<u8>> = std::iter::repeat_n(requests, times).flatten().cloned().collect();
        let (count, before) = (all.len(), self.used()?);
        let (measured, answers) = self.send(all, scale, times == 1)?;
        pause(AFTERWARDS);
        let mut cost = (self.used()? - before).per(count);
        [cost.0[2], cost.0[3]] = measured.bytes;
        Ok((cost, answers))
    }

    /// Callbacks, each with a webhook that has arrived at the end.
    fn callbacks(&self, opened: &[Vec<u8>], receiver: &mut Server, scale: Scale) -> Result<Cost, Failure> {
        let callbacks = self.wallet.answers(opened)?;
        receiver.tell(&json!({ "count": { "warm": 0, "measured": callbacks.len() } }))?;
        let before = self.used()?;
        let (measured, _) = self.send(callbacks, scale, false)?;
        receiver.listen()?;
        pause(AFTERWARDS);
        let mut cost = (self.used()? - before).per(opened.len());
        [cost.0[2], cost.0[3]] = measured.bytes;
        Ok(cost)
    }

    /// Inits alone, and the bodies of their answers.
    pub(crate) fn inits(&self, init: Vec<u8>, scale: Scale) -> Result<(Cost, Vec<Vec<u8>>), Failure> {
        self.step(&vec![init; scale.paced], 1, scale)
    }

    /// Whole verifications; the ids of their transactions as well.
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

    /// The callback of a verification that has no webhook.
    pub(crate) fn callback_alone(&self, scale: Scale) -> Result<Cost, Failure> {
        let (_, opened) = self.inits(requests::init_without_webhook(&self.service.server)?, scale)?;
        Ok(self.step(&self.wallet.answers(&opened)?, 1, scale)?.0)
    }

    /// Guests of an event with their phones: page, start, verify page, intent, callback, webhook.
    pub(crate) fn guests(&self, receiver: &mut Server, scale: Scale) -> Result<Cost, Failure> {
        let server = &self.service.server;
        let terms = json!({
            "name": "Fair", "claims": requests::CLAIMS, "max_guests": scale.paced, "webhook_url": receiver.text("url")?,
            "expires_at": (SystemClock.now() + EVENT).to_string(),
        });
        let created: Value = serde_json::from_slice(&load::ask(server, &requests::signed(server, "POST", "/events", Some(&terms))?)?)?;
        let path = format!("/e/{}", created["event_id"].as_str().ok_or("no event id")?);
        let page = requests::browser(server, "GET", &path, PHONE, "");
        let (page, _) = self.step(&vec![page; scale.paced], 1, scale)?;
        let start = requests::browser(server, "POST", &format!("{path}/start"), PHONE, "Sec-Fetch-Site: same-origin\r\n");
        let (start, led) = self.step(&vec![start; scale.paced], 1, scale)?;
        let led = led.iter().map(|answer| led_to(answer)).collect::<Result<Vec<_>, Failure>>()?;
        let shown: Vec<_> = led.iter().map(|(path, cookie)| requests::browser(server, "GET", path, PHONE, cookie)).collect();
        let (shown, _) = self.step(&shown, 1, scale)?;
        let asked: Vec<_> = led.iter().map(|(path, _)| requests::intent_at(server, path)).collect();
        let (asked, intents) = self.step(&asked, 1, scale)?;
        Ok(page + start + shown + asked + self.callbacks(&intents, receiver, scale)?)
    }

    /// Resident bytes of all processes of the server, and of Redis.
    pub(crate) fn resident(&self) -> Result<[u64; 2], Failure> {
        let server = self.processes()?.into_iter().map(resident).sum::<Result<u64, Failure>>()?;
        let redis = self.redis.as_ref().map_or(Ok(0), |redis| resident(number(redis, "process_id")? as u32))?;
        Ok([server, redis])
    }
}

/// A number that Redis tells of itself.
pub(crate) fn number(redis: &RedisServer, field: &str) -> Result<f64, Failure> {
    redis.info(field).and_then(|text| text.parse().ok()).ok_or_else(|| format!("Redis does not tell its {field}").into())
}

/// Where an answer leads, and the cookie that it gives along.
fn led_to(answer: &[u8]) -> Result<(String, String), Failure> {
    let text = String::from_utf8_lossy(answer);
    let header = |wanted: &str| {
        let named = text.lines().filter_map(|line| line.split_once(": ")).find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        named.map(|(_, value)| value.trim())
    };
    let location = header("location").and_then(|location| location.find("/v/").map(|at| &location[at..])).ok_or("no verify page")?;
    let cookie = header("set-cookie").and_then(|set| set.split(';').next()).unwrap_or_default();
    Ok((location.to_owned(), format!("Cookie: {cookie}\r\n")))
}
