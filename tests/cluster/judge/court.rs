//! The machines of a trial: haproxy, three nodes with their own routes and clocks, Redis with a replica and three
//! sentinels; and their faults.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use sakshi_domain::clock::{Clock as _, SystemClock};
use sakshi_kit::balancer::{Balancer, fix_ports};
use sakshi_kit::node::{TestNode, on_redis};
use sakshi_kit::process::BINARY;
use sakshi_kit::random::Random;
use sakshi_kit::redis::groups::Sentinels;
use sakshi_kit::redis::{DURABLE, RedisServer};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use tokio::task::block_in_place;

use super::scene::Scene;
use super::ways::{Passage, Ways};
use crate::nodes::prepared;

/// Fewest answers during a fault; doubled fewer than [`DOUBLINGS`] times.
const WHILE_BROKEN: usize = 20;
const DOUBLINGS: u64 = 5;
/// Answers between two restarts, or after a second master has come back.
const BETWEEN: usize = 10;
/// Seconds by which a clock is set.
const JUMPS: [i32; 4] = [-75, -20, 20, 240];

/// A fault, until it is repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A node is killed.
    Kill,
    /// A node is paused.
    Pause,
    /// A node is cut off from Redis.
    Cut,
    /// Replies of Redis do not reach a node.
    Mute,
    /// The clock of a node jumps.
    Clock,
    /// Every node is restarted in turn, with the binary of the next release if there is one.
    Roll,
    /// The master is killed, and a replica takes over.
    Failover,
    /// The master is paused until a replica has taken over, and resumes as a second master.
    SecondMaster,
    /// The master is killed and restarts at once.
    Redis,
    /// The replica is paused, so no write is confirmed.
    Replica,
    /// The replica is paused, and then the master is killed: all unconfirmed writes are lost.
    Loss,
}

impl Fault {
    pub(crate) const ALL: [Self; 11] = [
        Self::Kill,
        Self::Pause,
        Self::Cut,
        Self::Mute,
        Self::Clock,
        Self::Roll,
        Self::Failover,
        Self::SecondMaster,
        Self::Redis,
        Self::Replica,
        Self::Loss,
    ];
}

/// The machines.
pub(crate) struct Court {
    pub(crate) nodes: Vec<TestNode>,
    pub(crate) balancer: Balancer,
    ways: Vec<Ways>,
    // Stopped after the nodes, which are dropped first.
    redis: Sentinels,
}

/// Returns the library that gives a process its own clock.
fn fake_clock() -> PathBuf {
    let machine = std::env::consts::ARCH;
    Path::new("/usr/lib").join(format!("{machine}-linux-gnu/faketime/libfaketime.so.1"))
}

/// Returns the file with the error of a node's clock.
fn clock_file(node: &TestNode, number: usize) -> PathBuf {
    node.directory.path().join(format!("clock-{number}"))
}

fn set_clock(node: &TestNode, number: usize, seconds: i32) {
    // The library may read the file at any moment.
    let (file, next) = (clock_file(node, number), clock_file(node, number).with_extension("next"));
    std::fs::write(&next, format!("{seconds:+}\n")).expect("a file");
    std::fs::rename(next, file).expect("a file");
}

/// Waits until the dates in a node's responses are right.
async fn tells_the_time(node: &TestNode) {
    eventually("a right clock", TIMEOUT, || async {
        let response = node.http.get(node.addresses.internal("/livez")).send().await.ok()?;
        let date = response.headers().get(reqwest::header::DATE)?.to_str().ok()?.to_owned();
        let now = chrono::DateTime::parse_from_rfc2822(&date).ok()?.timestamp();
        (SystemClock.now().seconds().abs_diff(now) <= 2).then_some(())
    })
    .await;
}

impl Court {
    /// Starts everything with the strongest promises: every write is on the disks of two servers before its answer.
    pub(crate) async fn start() -> Self {
        let redis = block_in_place(|| Sentinels::start(1, DURABLE));
        let mut nodes = prepared(
            "",
            &[
                ("STORE__REDIS_TOPOLOGY", "sentinel"),
                ("STORE__REDIS_SENTINEL_SERVICE", Sentinels::SERVICE),
                ("STORE__REDIS_WAIT_REPLICAS", "1"),
                ("STORE__REDIS_WAIT_AT_START", "true"),
                ("SERVER__DRAIN_NOTICE_S", "1"),
            ],
        );
        let mut ways = Vec::new();
        for (number, node) in nodes.iter_mut().enumerate() {
            let own = Ways::to(&redis).await;
            for (key, value) in on_redis(&own.urls.join(",")) {
                node.set(key, &value);
            }
            ways.push(own);
            fix_ports(node);
            set_clock(node, number, 0);
            let file = clock_file(node, number).display().to_string();
            for (name, value) in [
                ("SAKSHI_LOG", "warn"),
                ("LD_PRELOAD", &*fake_clock().display().to_string()),
                ("FAKETIME_TIMESTAMP_FILE", &file),
                ("FAKETIME_CACHE_DURATION", "1"),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ] {
                node.set_variable(name, value);
            }
            node.launch().await;
        }
        let balancer = Balancer::start(&nodes).await;
        Self { nodes, balancer, ways, redis }
    }

    /// Injects a fault under the load of a scene, and repairs it.
    pub(crate) async fn suffer(&mut self, fault: Fault, scene: &Scene, random: &mut Random) {
        let number = random.below(self.nodes.len() as u64) as usize;
        let while_broken = WHILE_BROKEN << random.below(DOUBLINGS);
        if matches!(fault, Fault::Failover | Fault::SecondMaster | Fault::Redis | Fault::Loss) {
            scene.may_fail_over.store(true, Ordering::SeqCst);
        }
        match fault {
            Fault::Kill => {
                self.nodes[number].kill().await;
                scene.grown(while_broken).await;
                self.nodes[number].launch().await;
            }
            Fault::Pause => {
                self.nodes[number].process().signal("STOP");
                scene.grown(while_broken).await;
                self.nodes[number].process().signal("CONT");
            }
            Fault::Cut | Fault::Mute => {
                self.ways[number].set(if fault == Fault::Cut { Passage::Cut } else { Passage::Mute });
                scene.grown(while_broken).await;
                self.ways[number].set(Passage::Open);
            }
            Fault::Clock => {
                scene.is_clock_wrong.store(true, Ordering::SeqCst);
                set_clock(&self.nodes[number], number, JUMPS[random.below(JUMPS.len() as u64) as usize]);
                scene.grown(while_broken).await;
                set_clock(&self.nodes[number], number, 0);
                tells_the_time(&self.nodes[number]).await;
            }
            Fault::Roll => self.roll(scene).await,
            Fault::Failover => {
                let master = block_in_place(|| self.redis.master());
                master.kill9();
                self.replaced(master).await;
                block_in_place(|| master.restart());
            }
            Fault::SecondMaster => {
                let master = block_in_place(|| self.redis.master());
                master.pause();
                self.replaced(master).await;
                master.resume();
                scene.grown(BETWEEN).await;
            }
            Fault::Redis => block_in_place(|| self.redis.master().restart()),
            Fault::Replica => {
                self.without_replica(scene).await;
                self.replica().resume();
            }
            Fault::Loss => {
                let (master, replica) = block_in_place(|| (self.redis.master(), self.replica()));
                self.without_replica(scene).await;
                master.kill9();
                replica.resume();
                self.replaced(master).await;
                block_in_place(|| master.restart());
            }
        }
        self.settle().await;
        scene.may_fail_over.store(false, Ordering::SeqCst);
    }

    /// Waits until another server is master. Sentinels promote no replica that was away too long; then the old one
    /// returns.
    async fn replaced(&self, old: &RedisServer) {
        let begun = Instant::now();
        eventually("a failover, or none", 2 * TIMEOUT, || async {
            let master = block_in_place(|| self.redis.master());
            let is_replaced = master.port() != old.port() && master.info("role").is_some_and(|role| role == "master");
            (is_replaced || begun.elapsed() > TIMEOUT / 2).then_some(())
        })
        .await;
    }

    async fn roll(&mut self, scene: &Scene) {
        let next = std::env::var("SAKSHI_NEXT").ok().filter(|path| !path.is_empty());
        for number in 0..self.nodes.len() {
            if let Some(next) = &next {
                let is_next = self.nodes[number].environment().get(BINARY) == Some(next);
                let binary = if is_next { env!("CARGO_BIN_EXE_sakshi") } else { next };
                self.nodes[number].set_variable(BINARY, binary);
            }
            self.nodes[number].restart().await;
            self.balancer.wait_for_nodes(3).await;
            scene.grown(BETWEEN).await;
        }
    }

    /// Pauses the replica until requests go unanswered.
    async fn without_replica(&self, scene: &Scene) {
        let before = scene.unanswered();
        let master = block_in_place(|| self.redis.master());
        self.replica().pause();
        // Earlier writes wait in the replica's socket; nothing is sent from now on.
        master.answer(&["CLIENT", "KILL", "TYPE", "replica"]);
        eventually("writes are not confirmed", 2 * TIMEOUT, || async {
            (scene.unanswered() > before + 5).then_some(())
        })
        .await;
    }

    fn replica(&self) -> &RedisServer {
        block_in_place(|| self.redis.replicas().next().expect("a replica"))
    }

    /// Waits until one master has its replica and all nodes are in service. A former master follows the new one.
    async fn settle(&self) {
        eventually("one master with its replica", 2 * TIMEOUT, || async {
            block_in_place(|| {
                let master = self.redis.master();
                let role = |server: &RedisServer| server.info("role");
                (role(master)? == "master").then_some(())?;
                for server in self.redis.servers().iter().filter(|server| server.port() != master.port()) {
                    if role(server)? == "master" {
                        server.ask(&["REPLICAOF", "127.0.0.1", &master.port().to_string()]).ok()?;
                    }
                    (server.info("master_link_status")? == "up").then_some(())?;
                }
                Some(())
            })
        })
        .await;
        self.balancer.wait_for_nodes(3).await;
    }
}
