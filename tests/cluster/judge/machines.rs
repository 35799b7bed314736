//! The machines of a run and their faults: haproxy, three nodes with their own routes and clocks, and Redis with a
//! replica and three sentinels.

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

use super::round::Round;
use super::routes::{Passage, Routes};
use crate::nodes::prepare_nodes;

/// Least number of answers during a fault. It is doubled a random number of times, fewer than [`DOUBLINGS_END`].
const ANSWERS_DURING_FAULT: usize = 20;
const DOUBLINGS_END: u64 = 5;
/// Answers between two restarts, and after a second master has returned.
const ANSWERS_BETWEEN_STEPS: usize = 10;
/// Errors of a clock, in seconds.
const CLOCK_ERRORS_S: [i32; 4] = [-75, -20, 20, 240];

/// A fault that is injected and then repaired.
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
    RollingRestart,
    /// The master is killed, and a replica takes over.
    Failover,
    /// The master is paused until a replica has taken over, and resumes as a second master.
    SecondMaster,
    /// The master is killed and restarts at once.
    RestartMaster,
    /// The replica is paused, so no write is confirmed.
    PauseReplica,
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
        Self::RollingRestart,
        Self::Failover,
        Self::SecondMaster,
        Self::RestartMaster,
        Self::PauseReplica,
        Self::Loss,
    ];
}

/// The nodes, the balancer, Redis, and the routes between nodes and Redis.
pub(crate) struct Machines {
    pub(crate) nodes: Vec<TestNode>,
    pub(crate) balancer: Balancer,
    routes: Vec<Routes>,
    // Stopped after the nodes, which are dropped first.
    redis: Sentinels,
}

/// Returns the library that gives a process its own clock.
fn fake_clock_library() -> PathBuf {
    let architecture = std::env::consts::ARCH;
    Path::new("/usr/lib").join(format!("{architecture}-linux-gnu/faketime/libfaketime.so.1"))
}

/// Returns the file that sets the error of a node's clock.
fn clock_file(node: &TestNode, number: usize) -> PathBuf {
    node.directory.path().join(format!("clock-{number}"))
}

/// Sets the error of a node's clock.
fn set_clock_error(node: &TestNode, number: usize, seconds: i32) {
    // Renamed into place, because the library may read the file at any moment.
    let (file, next) = (clock_file(node, number), clock_file(node, number).with_extension("next"));
    std::fs::write(&next, format!("{seconds:+}\n")).expect("a file");
    std::fs::rename(next, file).expect("a file");
}

/// Waits until the dates in a node's responses are right.
async fn await_correct_clock(node: &TestNode) {
    eventually("a right clock", TIMEOUT, || async {
        let response = node.http.get(node.addresses.internal("/livez")).send().await.ok()?;
        let date = response.headers().get(reqwest::header::DATE)?.to_str().ok()?.to_owned();
        let now = chrono::DateTime::parse_from_rfc2822(&date).ok()?.timestamp();
        (SystemClock.now().seconds().abs_diff(now) <= 2).then_some(())
    })
    .await;
}

impl Machines {
    /// Starts all machines with the strongest promise: every write is on the disks of two servers before its answer.
    pub(crate) async fn start() -> Self {
        let redis = block_in_place(|| Sentinels::start(1, DURABLE));
        let mut nodes = prepare_nodes(
            "",
            &[
                ("STORE__REDIS_TOPOLOGY", "sentinel"),
                ("STORE__REDIS_SENTINEL_SERVICE", Sentinels::SERVICE),
                ("STORE__REDIS_WAIT_REPLICAS", "1"),
                ("STORE__REDIS_WAIT_AT_START", "true"),
                ("SERVER__DRAIN_NOTICE_S", "1"),
            ],
        );
        let mut routes = Vec::new();
        for (number, node) in nodes.iter_mut().enumerate() {
            let node_routes = Routes::start(&redis).await;
            for (key, value) in on_redis(&node_routes.urls.join(",")) {
                node.set(key, &value);
            }
            routes.push(node_routes);
            fix_ports(node);
            set_clock_error(node, number, 0);
            let file = clock_file(node, number).display().to_string();
            for (name, value) in [
                ("SAKSHI_LOG", "warn"),
                ("LD_PRELOAD", &*fake_clock_library().display().to_string()),
                ("FAKETIME_TIMESTAMP_FILE", &file),
                ("FAKETIME_CACHE_DURATION", "1"),
                ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
            ] {
                node.set_variable(name, value);
            }
            node.launch().await;
        }
        let balancer = Balancer::start(&nodes).await;
        Self { nodes, balancer, routes, redis }
    }

    /// Injects a fault under the load of a round, and repairs it.
    pub(crate) async fn inject(&mut self, fault: Fault, round: &Round, random: &mut Random) {
        let number = random.below(self.nodes.len() as u64) as usize;
        let answers = ANSWERS_DURING_FAULT << random.below(DOUBLINGS_END);
        if matches!(fault, Fault::Failover | Fault::SecondMaster | Fault::RestartMaster | Fault::Loss) {
            round.may_fail_over.store(true, Ordering::SeqCst);
        }
        match fault {
            Fault::Kill => {
                self.nodes[number].kill().await;
                round.await_answers(answers).await;
                self.nodes[number].launch().await;
            }
            Fault::Pause => {
                self.nodes[number].process().pause().await;
                round.await_answers(answers).await;
                self.nodes[number].process().signal("CONT");
            }
            Fault::Cut | Fault::Mute => {
                self.routes[number].set_passage(if fault == Fault::Cut { Passage::Cut } else { Passage::Mute });
                round.await_answers(answers).await;
                self.routes[number].set_passage(Passage::Open);
            }
            Fault::Clock => {
                round.is_clock_wrong.store(true, Ordering::SeqCst);
                set_clock_error(
                    &self.nodes[number],
                    number,
                    CLOCK_ERRORS_S[random.below(CLOCK_ERRORS_S.len() as u64) as usize],
                );
                round.await_answers(answers).await;
                set_clock_error(&self.nodes[number], number, 0);
                await_correct_clock(&self.nodes[number]).await;
            }
            Fault::RollingRestart => self.restart_in_turn(round).await,
            Fault::Failover => {
                let master = block_in_place(|| self.redis.master());
                master.kill9();
                self.await_new_master(master).await;
                block_in_place(|| master.restart());
            }
            Fault::SecondMaster => {
                let master = block_in_place(|| self.redis.master());
                master.pause();
                self.await_new_master(master).await;
                master.resume();
                round.await_answers(ANSWERS_BETWEEN_STEPS).await;
            }
            Fault::RestartMaster => block_in_place(|| self.redis.master().restart()),
            Fault::PauseReplica => {
                self.pause_replica(round).await;
                self.replica().resume();
            }
            Fault::Loss => {
                let (master, replica) = block_in_place(|| (self.redis.master(), self.replica()));
                self.pause_replica(round).await;
                master.kill9();
                replica.resume();
                self.await_new_master(master).await;
                block_in_place(|| master.restart());
            }
        }
        self.await_recovery().await;
        round.may_fail_over.store(false, Ordering::SeqCst);
    }

    /// Waits until another server is master, or gives up: sentinels promote no replica that was disconnected too long.
    async fn await_new_master(&self, old: &RedisServer) {
        let started_at = Instant::now();
        eventually("a failover, or the end of the wait", 2 * TIMEOUT, || async {
            let master = block_in_place(|| self.redis.master());
            let is_replaced = master.port() != old.port() && master.info("role").is_some_and(|role| role == "master");
            (is_replaced || started_at.elapsed() > TIMEOUT / 2).then_some(())
        })
        .await;
    }

    /// Restarts every node, one after another; with `SAKSHI_NEXT`, changes each to the other release.
    async fn restart_in_turn(&mut self, round: &Round) {
        let next_release = std::env::var("SAKSHI_NEXT").ok().filter(|path| !path.is_empty());
        for number in 0..self.nodes.len() {
            if let Some(next) = &next_release {
                let is_next = self.nodes[number].environment().get(BINARY) == Some(next);
                let binary = if is_next { env!("CARGO_BIN_EXE_sakshi") } else { next };
                self.nodes[number].set_variable(BINARY, binary);
            }
            self.nodes[number].restart().await;
            self.balancer.wait_for_nodes(3).await;
            round.await_answers(ANSWERS_BETWEEN_STEPS).await;
        }
    }

    /// Pauses the replica, and waits until requests go unanswered.
    async fn pause_replica(&self, round: &Round) {
        let unanswered_before = round.unanswered();
        let master = block_in_place(|| self.redis.master());
        self.replica().pause();
        // Earlier writes wait in the replica's socket; nothing is sent from now on.
        master.answer(&["CLIENT", "KILL", "TYPE", "replica"]);
        eventually("writes are not confirmed", 2 * TIMEOUT, || async {
            (round.unanswered() > unanswered_before + 5).then_some(())
        })
        .await;
    }

    fn replica(&self) -> &RedisServer {
        block_in_place(|| self.redis.replicas().next().expect("a replica"))
    }

    /// Waits until one master has its replica and all nodes are in service. A former master follows the new one.
    async fn await_recovery(&self) {
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
