//! What a completion costs as more nodes share a Redis: every node is told of what it keeps a copy of, and of nothing
//! else. Each node has one worker, and requests go to all of them in turn, so that a transaction mostly ends on another
//! node than the one that opened it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sakshi_authority::intent::IntentKey;

use crate::completion::Wallet;
use crate::load::{self, pause};
use crate::node::Service;
use crate::process::Server;
use crate::recording::redis;
use crate::redis_server::RedisServer;
use crate::report::{Report, Target, median};
use crate::scale::Scale;
use crate::verification::processor_time;
use crate::{Failure, requests};

const NODES: [usize; 3] = [1, 8, 32];
/// With all nodes beside one.
const MOST: f64 = 1.1;
/// 400 completions a second in all, whatever the number of nodes.
const PAUSE: Duration = Duration::from_micros(2_500);
/// Nodes do a little without being asked, which is measured for so long and taken off.
const IDLE: Duration = Duration::from_secs(5);

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let files = tempfile::tempdir()?;
    let key = files.path().join("es256.pem");
    std::fs::write(&key, IntentKey::generate_es256()?.1)?;
    let mut report = Report::new("crowd");
    let mut medians = Vec::new();
    for count in NODES {
        let crowd = Crowd::start(count, &key)?;
        let idle = crowd.idle()?;
        let turns = (0..scale.rounds).map(|_| crowd.turn(idle, scale)).collect::<Result<Vec<_>, Failure>>()?;
        let both: Vec<f64> = turns.iter().map(|[nodes, redis]| nodes + redis).collect();
        let redis: Vec<f64> = turns.iter().map(|[_, redis]| *redis).collect();
        report.figure(&format!("CPU of a completion, {count} nodes and Redis, µs"), &both);
        report.figure("of it Redis, µs", &redis);
        report.figure("all of them at rest, ms per s and node", &[idle.iter().sum::<f64>() * 1e3 / count as f64]);
        medians.push(median(&both));
    }
    let last = medians.last().copied().unwrap_or(f64::NAN);
    report.judged(&format!("**{} nodes ÷ 1 node**", NODES[NODES.len() - 1]), &[last / medians[0]], Target::AtMost(MOST));
    report.note(format!(
        "{} callbacks a turn without webhooks, 400 a second over {} connections, AOF everysec. What nodes and Redis use at rest is taken off.",
        scale.paced, scale.connections
    ));
    Ok(report)
}

struct Crowd {
    redis: RedisServer,
    service: Service,
    others: Vec<Server>,
}

impl Crowd {
    fn start(count: usize, key: &Path) -> Result<Self, Failure> {
        let redis = redis("everysec");
        // One address for all, as before a balancer; nobody connects to it.
        let single = [("server.workers", "1"), ("server.public_base_url", "http://127.0.0.1:9")];
        let service = Service::on_redis_set(&redis.url(), Some(key), &single)?;
        let others = (1..count).map(|_| service.beside_set(&redis.url(), Some(key), &single)).collect::<Result<_, _>>()?;
        Ok(Self { redis, service, others })
    }

    fn nodes(&self) -> Vec<&Server> {
        std::iter::once(&self.service.server).chain(&self.others).collect()
    }

    /// By the nodes and by Redis.
    fn used(&self) -> Result<[f64; 2], Failure> {
        let nodes = self.nodes().into_iter().map(Server::processor_time).sum::<Result<Duration, Failure>>()?;
        Ok([nodes, processor_time(&self.redis)?].map(|used| used.as_secs_f64()))
    }

    /// Seconds of processor time in a second in which nothing is asked.
    fn idle(&self) -> Result<[f64; 2], Failure> {
        let before = self.used()?;
        pause(IDLE);
        let now = self.used()?;
        Ok([0, 1].map(|who| (now[who] - before[who]) / IDLE.as_secs_f64()))
    }

    /// Microseconds of a completion.
    fn turn(&self, idle: [f64; 2], scale: Scale) -> Result<[f64; 2], Failure> {
        let (nodes, wallet) = (self.nodes(), Wallet::new(&self.service)?);
        let inits = vec![requests::init_without_webhook(&self.service.server)?; scale.paced];
        let (_, opened) = load::each_once_over(&nodes, Arc::new(inits), scale, true, Duration::ZERO)?;
        let callbacks = Arc::new(wallet.answers(&opened)?);
        let before = self.used()?;
        let (measured, _) = load::each_once_over(&nodes, callbacks, scale, false, PAUSE)?;
        let took = scale.paced as f64 / measured.rate;
        let now = self.used()?;
        Ok([0, 1].map(|who| (now[who] - before[who] - idle[who] * took) * 1e6 / scale.paced as f64))
    }
}
