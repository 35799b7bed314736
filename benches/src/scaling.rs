//! Cost of a completion as more nodes share a Redis. Each node has one worker. A transaction is completed on the node
//! that opened it or on the next one.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sakshi_authority::intent::IntentKey;
use sakshi_kit::redis::RedisServer;
use sakshi_kit::redis::groups::RedisCluster;

use crate::bare_redis::start_redis;
use crate::completion::IdentityApp;
use crate::load::{self, BodyMode, Requests, pause};
use crate::node::Service;
use crate::process::Server;
use crate::report::{Report, Target, median};
use crate::scale::Scale;
use crate::verification::processor_time;
use crate::{Failure, requests};

/// Numbers of nodes that share one Redis.
const NODES: [usize; 3] = [1, 8, 32];
/// Masters of the Redis that [`NODES_OF_MASTERS`] nodes share.
const MASTERS: [usize; 3] = [1, 3, 6];
const NODES_OF_MASTERS: usize = 8;
const ONE_MASTER: usize = 1;
const REPLICAS_PER_MASTER: usize = 0;
/// Offset of [`Nodes::turn`]: each node completes the transactions that it opened.
const SAME_NODE: usize = 0;
/// Offset of [`Nodes::turn`]: each node completes the transactions that the one before it opened.
const NEXT_NODE: usize = 1;
/// Lines of the configuration of each master, the same as in [`start_redis`].
const REDIS_CONF: &[&str] = &["appendonly yes", "appendfsync everysec", "hash-max-listpack-value 1024"];
/// The largest cost with many nodes or masters, and on another node, as a ratio to that with one or on the same node.
const RATIO_MAX: f64 = 1.1;
/// Pause between two completions over all nodes, for 1,400 a second.
const PAUSE: Duration = Duration::from_micros(714);
/// Length of the measurement of the idle nodes, whose processor time is subtracted.
const IDLE: Duration = Duration::from_secs(5);

/// Measures completions as more nodes, and more masters, share a Redis.
pub(crate) fn run(scale: Scale) -> Result<Report, Failure> {
    let files = tempfile::tempdir()?;
    let key = files.path().join("es256.pem");
    std::fs::write(&key, IntentKey::generate_es256()?.1)?;
    let mut report = Report::new("scaling");
    let mut by_count = Vec::new();
    let mut next_ratio = f64::NAN;
    for count in NODES {
        let group = Nodes::start(count, ONE_MASTER, &key)?;
        let idle = group.idle()?;
        let (mut on_same, mut on_next) = (Costs::default(), Costs::default());
        for _ in 0..scale.rounds {
            on_same.add(group.turn(SAME_NODE, idle, scale)?);
            on_next.add(group.turn(NEXT_NODE, idle, scale)?);
        }
        if count > 1 {
            on_same.add_to(&mut report, &format!("{count} nodes, each ends what it opened"));
        }
        on_next.add_to(&mut report, &format!("{count} nodes{}", if count > 1 { ", another one ends it" } else { "" }));
        report.figure("all of them at rest, ms per s and node", &[idle.iter().sum::<f64>() * 1e3 / count as f64]);
        by_count.push(median(&on_next.both));
        next_ratio = median(&on_next.both) / median(&on_same.both);
    }
    let mut by_masters = Vec::new();
    for masters in MASTERS {
        let group = Nodes::start(NODES_OF_MASTERS, masters, &key)?;
        let idle = group.idle()?;
        let mut costs = Costs::default();
        for _ in 0..scale.rounds {
            costs.add(group.turn(NEXT_NODE, idle, scale)?);
        }
        costs.add_to(&mut report, &format!("{NODES_OF_MASTERS} nodes, {masters} masters"));
        by_masters.push(median(&costs.both));
    }
    let (with_one, with_most) = (by_count[0], by_count[NODES.len() - 1]);
    let most = NODES[NODES.len() - 1];
    report.figure_with_target(
        &format!("**{most} nodes ÷ 1 node**"),
        &[with_most / with_one],
        Target::AtMost(RATIO_MAX),
    );
    report.figure_with_target(
        &format!("**of {most} nodes, another one ÷ the same**"),
        &[next_ratio],
        Target::AtMost(RATIO_MAX),
    );
    let ratio = by_masters[MASTERS.len() - 1] / by_masters[0];
    report.figure_with_target(
        &format!("**{} masters ÷ 1 master**", MASTERS[MASTERS.len() - 1]),
        &[ratio],
        Target::AtMost(RATIO_MAX),
    );
    report.note(format!(
        "{} callbacks a turn without webhooks, 1,400 a second in total, AOF everysec. Processor time of a completion, \
         without the idle use of nodes and Redis. If a node completes what it opened, no other node is notified: the \
         higher cost with many nodes is that of many mostly idle processes on one machine.",
        scale.paced
    ));
    Ok(report)
}

/// Microseconds of processor time per completion, in each turn.
#[derive(Default)]
struct Costs {
    /// Of the nodes and of Redis together.
    both: Vec<f64>,
    redis: Vec<f64>,
}

impl Costs {
    fn add(&mut self, [nodes, redis]: [f64; 2]) {
        self.both.push(nodes + redis);
        self.redis.push(redis);
    }

    fn add_to(&self, report: &mut Report, label: &str) {
        report.figure(&format!("CPU of nodes and Redis, {label}, µs"), &self.both);
        report.figure("of it Redis, µs", &self.redis);
    }
}

/// The Redis that the nodes share.
enum Shared {
    One(RedisServer),
    Cluster(RedisCluster),
}

impl Shared {
    fn start(masters: usize) -> Self {
        if masters == ONE_MASTER {
            Self::One(start_redis("everysec"))
        } else {
            Self::Cluster(RedisCluster::with_masters(masters, REPLICAS_PER_MASTER, REDIS_CONF))
        }
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

/// Nodes in processes of their own, and the Redis that they share.
struct Nodes {
    redis: Shared,
    /// The first node, with the credentials of its client.
    service: Service,
    others: Vec<Server>,
}

impl Nodes {
    fn start(count: usize, masters: usize, key: &Path) -> Result<Self, Failure> {
        let redis = Shared::start(masters);
        // The same public URL for all nodes, as behind a balancer; nobody connects to it.
        let (common, topology) =
            ([("server.workers", "1"), ("server.public_base_url", "http://127.0.0.1:9")], redis.topology());
        let settings = [common.as_slice(), &[("store.redis_topology", topology)]].concat();
        // Any server of a cluster is enough.
        let url = redis.servers()[0].url();
        let service = Service::on_redis_with_settings(&url, Some(key), &settings)?;
        let others = (1..count)
            .map(|_| service.start_another_with_settings(&url, Some(key), &settings))
            .collect::<Result<_, _>>()?;
        Ok(Self { redis, service, others })
    }

    fn count(&self) -> u32 {
        self.others.len() as u32 + 1
    }

    fn nodes(&self) -> Vec<&Server> {
        std::iter::once(&self.service.server).chain(&self.others).collect()
    }

    /// Returns the processor time of the nodes and of Redis so far, in seconds.
    fn processor_seconds(&self) -> Result<[f64; 2], Failure> {
        let nodes = self.nodes().into_iter().map(Server::processor_time).sum::<Result<Duration, Failure>>()?;
        let servers = self.redis.servers().iter().map(processor_time).sum::<Result<Duration, Failure>>()?;
        Ok([nodes, servers].map(|time| time.as_secs_f64()))
    }

    /// Returns the seconds of processor time per second of the nodes and of Redis without requests.
    fn idle(&self) -> Result<[f64; 2], Failure> {
        let before = self.processor_seconds()?;
        pause(IDLE);
        let now = self.processor_seconds()?;
        Ok([0, 1].map(|index| (now[index] - before[index]) / IDLE.as_secs_f64()))
    }

    /// Returns the microseconds of processor time per completion of the nodes and of Redis. A transaction is completed
    /// on the node `offset` places after the one that opened it.
    fn turn(&self, offset: usize, idle: [f64; 2], scale: Scale) -> Result<[f64; 2], Failure> {
        let (nodes, identity_app) = (self.nodes(), IdentityApp::new(&self.service)?);
        let node_scale = Scale { connections: scale.connections.div_ceil(nodes.len()).max(2), ..scale };
        let init = requests::init_without_webhook(&self.service.server)?;
        let open = |node: &&Server| {
            let (_, opened) = load::each_once(
                node,
                Arc::new(vec![init.clone(); scale.paced / nodes.len()]),
                node_scale,
                BodyMode::Keep,
            )?;
            identity_app.callbacks_for(&opened).map(Arc::new)
        };
        let callbacks = nodes.iter().map(open).collect::<Result<Vec<_>, Failure>>()?;
        let before = self.processor_seconds()?;
        let started = Instant::now();
        std::thread::scope(|scope| {
            let send = |(index, callbacks): (usize, Requests)| {
                let node = nodes[(index + offset) % nodes.len()];
                scope.spawn(move || {
                    load::each_once_over(&[node], callbacks, node_scale, BodyMode::Discard, PAUSE * self.count())
                })
            };
            let threads: Vec<_> = callbacks.into_iter().enumerate().map(send).collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| "a thread of the load generator panicked")?.map(drop))
        })?;
        let seconds = started.elapsed().as_secs_f64();
        let now = self.processor_seconds()?;
        let count = (scale.paced / nodes.len() * nodes.len()) as f64;
        Ok([0, 1].map(|index| (now[index] - before[index] - idle[index] * seconds) * 1e6 / count))
    }
}
