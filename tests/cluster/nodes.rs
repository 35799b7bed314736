//! Three nodes on one Redis, with the same keys and settings.

use std::sync::Arc;

use futures_util::future::join_all;

use sakshi_kit::backend::Backend;
use sakshi_kit::balancer::{Balancer, fix_ports};
use sakshi_kit::node::{TestNode, on_redis};
use sakshi_kit::process::BINARY;
use sakshi_kit::redis::{DURABLE, RedisServer};

/// The nodes of one test. Its operator and backends use the first.
pub(crate) struct Nodes {
    pub(crate) all: Vec<TestNode>,
    // Stopped after the nodes, which are dropped first.
    pub(crate) redis: Arc<RedisServer>,
}

/// The public address of the nodes.
const BASE: &str = "https://verify.example";

/// Prepares three nodes on one store without starting them.
pub(crate) fn prepared(url: &str, settings: &[(&str, &str)]) -> Vec<TestNode> {
    let mut first = TestNode::unlaunched(settings);
    for (key, value) in on_redis(url) {
        first.set(key, &value);
    }
    first.set("SERVER__PUBLIC_BASE_URL", BASE);
    let (second, third) = (first.prepare_peer(), first.prepare_peer());
    vec![first, second, third]
}

/// Starts three nodes.
pub(crate) async fn launched(url: &str, settings: &[(&str, &str)]) -> Vec<TestNode> {
    let mut nodes = prepared(url, settings);
    for node in &mut nodes {
        node.launch().await;
    }
    nodes
}

impl Nodes {
    /// Starts three nodes on a Redis of their own that writes every change to its disk.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts with further settings.
    pub(crate) async fn with(settings: &[(&str, &str)]) -> Self {
        let redis = Arc::new(RedisServer::start(DURABLE));
        let all = launched(&redis.url(), settings).await;
        Self { all, redis }
    }

    /// Starts three nodes with fixed ports, and a balancer in front of them.
    pub(crate) async fn balanced(settings: &[(&str, &str)]) -> (Self, Balancer) {
        Self::balanced_on(env!("CARGO_BIN_EXE_sakshi"), settings).await
    }

    /// As [`Nodes::balanced`], with nodes of this binary.
    pub(crate) async fn balanced_on(binary: &str, settings: &[(&str, &str)]) -> (Self, Balancer) {
        let redis = Arc::new(RedisServer::start(DURABLE));
        let mut all = prepared(&redis.url(), settings);
        for node in &mut all {
            fix_ports(node);
            node.set_variable(BINARY, binary);
            node.launch().await;
        }
        let balancer = Balancer::start(&all).await;
        (Self { all, redis }, balancer)
    }

    /// Returns a client's backend that calls the first node.
    pub(crate) async fn backend(&self, credits: u64) -> Backend {
        self.all[0].backend(credits).await
    }

    /// Returns the same backend at each node.
    pub(crate) fn everywhere(&self, backend: &Backend) -> Vec<Backend> {
        self.all.iter().map(|node| backend.through(&node.addresses)).collect()
    }

    /// Calls `ask` concurrently with each number below `count` and the next node in turn.
    pub(crate) async fn in_turn<'a, T, Asked: Future<Output = T>>(
        &'a self,
        count: usize,
        ask: impl Fn(usize, &'a TestNode) -> Asked,
    ) -> Vec<T> {
        join_all((0..count).map(|number| ask(number, &self.all[number % self.all.len()]))).await
    }
}
