//! What a completion costs as more nodes share a Redis: every node is told of what it keeps a copy of, and of nothing
//! else. Each node has one worker. A transaction ends on the node that opened it, or on the next one.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sakshi_authority::intent::IntentKey;

use crate::completion::Wallet;
use crate::load::{self, Requests, pause};
use crate::node::Service;
use crate::process::Server;
use crate::recording::redis;
use crate::report::{Report, Target, median};
use crate::scale::Scale;
use crate::verification::processor_time;
use crate::{Failure, requests};
use sakshi_kit::redis::RedisServer;
use sakshi_kit::redis::groups::RedisCluster;

const NODES: [usize; 3] = [1, 8, 32];
/// What they share, with so many nodes: a server, or a cluster.
const MASTERS: [usize; 3] = [1, 3, 6];
const NODES_OF_MASTERS: usize = 8;
/// As [`redis`] has them.
const LINES: &[&str] = &["appendonly yes", "appendfsync everysec", "hash-max-listpack-value 1024"];
/// With all nodes beside one, and elsewhere beside where it was opened.
const MOST: f64 = 1.1;
/// Between two completions, whatever the number of nodes: 1,400 a second in all.
const PAUSE: Duration = Duration::from_micros(714);
/// Nodes do a little without being asked, which is measured for so long and taken off.
const IDLE: Duration = Duration::from_secs(5);

pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let files = tempfile::tempdir()?;
    let key = files.path().join("es256.pem");
    std::fs::write(&key, IntentKey::generate_es256()?.1)?;
    let mut report = Report::new("crowd");
    let mut elsewhere = Vec::new();
    let mut last = f64::NAN;
    for count in NODES {
        let crowd = Crowd::start(count, 1, &key)?;
        let idle = crowd.idle()?;
        let (mut here, mut there) = (Costs::default(), Costs::default());
        for _ in 0..scale.rounds {
            here.add(crowd.turn(0, idle, scale)?);
            there.add(crowd.turn(1, idle, scale)?);
        }
        if count > 1 {
            here.tell(&mut report, &format!("{count} nodes, each ends what it opened"));
        }
        there.tell(&mut report, &format!("{count} nodes{}", if count > 1 { ", another one ends it" } else { "" }));
        report.figure("all of them at rest, ms per s and node", &[idle.iter().sum::<f64>() * 1e3 / count as f64]);
        elsewhere.push(median(&there.both));
        last = median(&there.both) / median(&here.both);
    }
    let mut shared = Vec::new();
    for masters in MASTERS {
        let crowd = Crowd::start(NODES_OF_MASTERS, masters, &key)?;
        let idle = crowd.idle()?;
        let mut costs = Costs::default();
        for _ in 0..scale.rounds {
            costs.add(crowd.turn(1, idle, scale)?);
        }
        costs.tell(&mut report, &format!("{NODES_OF_MASTERS} nodes, {masters} masters"));
        shared.push(median(&costs.both));
    }
    let (one, all) = (elsewhere[0], elsewhere[NODES.len() - 1]);
    let most = NODES[NODES.len() - 1];
    report.judged(&format!("**{most} nodes ÷ 1 node**"), &[all / one], Target::AtMost(MOST));
    report.judged(&format!("**of {most} nodes, another one ÷ the same**"), &[last], Target::AtMost(MOST));
    let ratio = shared[MASTERS.len() - 1] / shared[0];
    report.judged(&format!("**{} masters ÷ 1 master**", MASTERS[MASTERS.len() - 1]), &[ratio], Target::AtMost(MOST));
    report.note(format!(
        "{} callbacks a turn without webhooks, 1,400 a second in all, AOF everysec. Processor time of a completion; what nodes and Redis use at \
         rest is taken off. Where each node ends what it opened nobody else is told of it: what that costs more with many nodes is that of many \
         processes on the cores of one machine, each of which works seldom.",
        scale.paced
    ));
    Ok(report)
}

/// Microseconds of a completion.
#[derive(Default)]
struct Costs {
    both: Vec<f64>,
    redis: Vec<f64>,
}

impl Costs {
    fn add(&mut self, [nodes, redis]: [f64; 2]) {
        self.both.push(nodes + redis);
        self.redis.push(redis);
    }

    fn tell(&self, report: &mut Report, what: &str) {
        report.figure(&format!("CPU of nodes and Redis, {what}, µs"), &self.both);
        report.figure("of it Redis, µs", &self.redis);
    }
}

/// What the nodes share.
enum Shared {
    One(RedisServer),
    Cluster(RedisCluster),
}

impl Shared {
    fn of(masters: usize) -> Self {
        if masters == 1 { Self::One(redis("everysec")) } else { Self::Cluster(RedisCluster::of(masters, 0, LINES)) }
    }

    fn servers(&self) -> &[RedisServer] {
        match self {
            Self::One(server) => std::slice::from_ref(server),
            Self::Cluster(cluster) => cluster.nodes(),
        }
    }

    fn topology(&self) -> &'static str {
        match self {
            Self::One(_) => "standalone",
            Self::Cluster(_) => "cluster",
        }
    }
}

struct Crowd {
    redis: Shared,
    service: Service,
    others: Vec<Server>,
}

impl Crowd {
    fn start(count: usize, masters: usize, key: &Path) -> Result<Self, Failure> {
        let redis = Shared::of(masters);
        // One address for all, as before a balancer; nobody connects to it.
        let (single, topology) = ([("server.workers", "1"), ("server.public_base_url", "http://127.0.0.1:9")], redis.topology());
        let settings = [single.as_slice(), &[("store.redis_topology", topology)]].concat();
        // Any server of a cluster knows the others.
        let url = redis.servers()[0].url();
        let service = Service::on_redis_set(&url, Some(key), &settings)?;
        let others = (1..count).map(|_| service.beside_set(&url, Some(key), &settings)).collect::<Result<_, _>>()?;
        Ok(Self { redis, service, others })
    }

    fn count(&self) -> u32 {
        self.others.len() as u32 + 1
    }

    fn nodes(&self) -> Vec<&Server> {
        std::iter::once(&self.service.server).chain(&self.others).collect()
    }

    /// By the nodes and by Redis.
    fn used(&self) -> Result<[f64; 2], Failure> {
        let nodes = self.nodes().into_iter().map(Server::processor_time).sum::<Result<Duration, Failure>>()?;
        let servers = self.redis.servers().iter().map(processor_time).sum::<Result<Duration, Failure>>()?;
        Ok([nodes, servers].map(|used| used.as_secs_f64()))
    }

    /// Seconds of processor time in a second in which nothing is asked.
    fn idle(&self) -> Result<[f64; 2], Failure> {
        let before = self.used()?;
        pause(IDLE);
        let now = self.used()?;
        Ok([0, 1].map(|who| (now[who] - before[who]) / IDLE.as_secs_f64()))
    }

    /// Processor time of the nodes and of Redis for a completion, in microseconds. Who ends a transaction is so
    /// many nodes behind the one that opened it.
    fn turn(&self, behind: usize, idle: [f64; 2], scale: Scale) -> Result<[f64; 2], Failure> {
        let (nodes, wallet) = (self.nodes(), Wallet::new(&self.service)?);
        let share = Scale { connections: scale.connections.div_ceil(nodes.len()).max(2), ..scale };
        let init = requests::init_without_webhook(&self.service.server)?;
        let open = |node: &&Server| {
            let (_, opened) = load::each_once(node, Arc::new(vec![init.clone(); scale.paced / nodes.len()]), share, true)?;
            wallet.answers(&opened).map(Arc::new)
        };
        let callbacks = nodes.iter().map(open).collect::<Result<Vec<_>, Failure>>()?;
        let before = self.used()?;
        let began = Instant::now();
        std::thread::scope(|scope| {
            let ask = |(opened, callbacks): (usize, Requests)| {
                let node = nodes[(opened + behind) % nodes.len()];
                scope.spawn(move || load::each_once_over(&[node], callbacks, share, false, PAUSE * self.count()))
            };
            let asked: Vec<_> = callbacks.into_iter().enumerate().map(ask).collect();
            asked.into_iter().try_for_each(|asked| asked.join().map_err(|_| "a thread of the load generator panicked")?.map(drop))
        })?;
        let took = began.elapsed().as_secs_f64();
        let now = self.used()?;
        let count = (scale.paced / nodes.len() * nodes.len()) as f64;
        Ok([0, 1].map(|who| (now[who] - before[who] - idle[who] * took) * 1e6 / count))
    }
}
