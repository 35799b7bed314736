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
const PUBLIC_BASE_URL: &str = "https://verify.example";

/// Prepares three nodes on the Redis at this URL, without starting them.
pub(crate) fn prepare_nodes(url: &str, settings: &[(&str, &str)]) -> Vec<TestNode> {
    let mut first = TestNode::unlaunched(settings);
    for (key, value) in on_redis(url) {
        first.set(key, &value);
    }
    first.set("SERVER__PUBLIC_BASE_URL", PUBLIC_BASE_URL);
    let (second, third) = (first.prepare_peer(), first.prepare_peer());
    vec![first, second, third]
}

/// Starts three nodes on the Redis at this URL.
pub(crate) async fn launch_nodes(url: &str, settings: &[(&str, &str)]) -> Vec<TestNode> {
    let mut nodes = prepare_nodes(url, settings);
    for node in &mut nodes {
        node.launch().await;
    }
    nodes
}

impl Nodes {
    /// Starts three nodes on a Redis of their own that writes every change to its disk.
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts three nodes with additional settings.
    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> Self {
        let redis = Arc::new(RedisServer::start(DURABLE));
        let all = launch_nodes(&redis.url(), settings).await;
        Self { all, redis }
    }

    /// Starts three nodes with fixed ports, and a balancer in front of them.
    pub(crate) async fn start_balanced(settings: &[(&str, &str)]) -> (Self, Balancer) {
        Self::start_balanced_with(env!("CARGO_BIN_EXE_sakshi"), settings).await
    }

    /// Starts three nodes of `binary` with fixed ports, and a balancer in front of them.
    pub(crate) async fn start_balanced_with(binary: &str, settings: &[(&str, &str)]) -> (Self, Balancer) {
        let redis = Arc::new(RedisServer::start(DURABLE));
        let mut all = prepare_nodes(&redis.url(), settings);
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
        self.all[0].backend_with_credits(credits).await
    }

    /// Returns one backend per node, with the credentials of `backend`.
    pub(crate) fn at_each_node(&self, backend: &Backend) -> Vec<Backend> {
        self.all.iter().map(|node| backend.through(&node.addresses)).collect()
    }

    /// Runs `count` concurrent calls, numbered from 0, at the nodes in turn. Returns their results in order.
    pub(crate) async fn call_in_turn<'a, T, Call: Future<Output = T>>(
        &'a self,
        count: usize,
        call: impl Fn(usize, &'a TestNode) -> Call,
    ) -> Vec<T> {
        join_all((0..count).map(|number| call(number, &self.all[number % self.all.len()]))).await
    }
}
