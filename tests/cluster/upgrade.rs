//! Two releases on one Redis, behind the balancer and under load. The nodes change to the next release one by one,
//! back, and up again; then the upgrade is finished. No client request fails, and the previous release then refuses the
//! store.
//!
//! `SAKSHI_NEXT` is the binary of a simulated next release (`make rehearsal`), and `SAKSHI_LAST_RELEASE` that of the
//! last one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::future::join_all;
use sakshi_kit::balancer::Balancer;
use sakshi_kit::node::TestNode;
use sakshi_kit::process::{BINARY, Process};
use sakshi_kit::waiting::TIMEOUT;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};

use crate::nodes::Nodes;
use crate::rolling::work;

const WORKERS: usize = 8;
/// Webhooks between two steps.
const BETWEEN: usize = 50;

/// Returns the binary named by a variable; `None` if unset.
fn named(variable: &str) -> Option<String> {
    let path = std::env::var(variable).ok().filter(|path| !path.is_empty());
    if path.is_none() {
        eprintln!("{variable} names no binary: not tested");
    }
    path
}

fn this() -> String {
    env!("CARGO_BIN_EXE_sakshi").to_owned()
}

/// Returns the number of a binary's schema.
fn schema_of(node: &TestNode, binary: &str) -> u32 {
    let mut environment = node.environment().clone();
    environment.insert(BINARY.to_owned(), binary.to_owned());
    let version = Process::run(&["--version"], &environment, node.directory.path()).out;
    let number = version.trim().rsplit_once("schema ").and_then(|(_, rest)| rest.trim_end_matches(')').parse().ok());
    number.unwrap_or_else(|| panic!("no schema in {version}"))
}

/// Restarts every node with this binary, one after another, with some requests between.
async fn change(nodes: &mut Nodes, balancer: &Balancer, receiver: &WebhookReceiver, binary: &str) {
    for number in 0..nodes.all.len() {
        let seen = receiver.received().len();
        receiver.wait_for(seen + BETWEEN, TIMEOUT).await;
        nodes.all[number].set_variable(BINARY, binary);
        nodes.all[number].restart().await;
        balancer.wait_for_nodes(3).await;
    }
}

/// Changes from one release to the next, back, and up again, and finishes the upgrade.
async fn upgraded(before: &str, after: &str) {
    let begun = Instant::now();
    let (mut nodes, balancer) =
        Nodes::balanced_on(before, &[("SERVER__DRAIN_NOTICE_S", "2"), ("SERVER__DRAIN_TIMEOUT_S", "10")]).await;
    let numbers = [before, after].map(|binary| schema_of(&nodes.all[0], binary));
    let backend = nodes.backend(1_000_000).await.through(&balancer.addresses);
    let identity_app = nodes.all[0].identity_app().through(&balancer.addresses);
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
    let over = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| tokio::spawn(work(backend.clone(), identity_app.clone(), receiver.url("/hook"), Arc::clone(&over))))
        .collect();

    change(&mut nodes, &balancer, &receiver, after).await;
    nodes.all[0].set_variable(BINARY, before);
    nodes.all[0].restart().await;
    balancer.wait_for_nodes(3).await;
    let early = nodes.all[1].admin(&["finish-upgrade"]).await;
    let is_new = numbers[0] < numbers[1];
    assert_eq!(
        early.status.code(),
        Some(i32::from(is_new)),
        "a node of the release before runs: {} {}",
        early.out,
        early.err
    );
    change(&mut nodes, &balancer, &receiver, before).await;
    change(&mut nodes, &balancer, &receiver, after).await;
    let finished = nodes.all[2].admin(&["finish-upgrade"]).await;
    assert_eq!(finished.status.code(), Some(0), "{} {}", finished.out, finished.err);
    let seen = receiver.received().len();
    receiver.wait_for(seen + 2 * BETWEEN, TIMEOUT).await;

    over.store(true, Ordering::Relaxed);
    let mut completed = 0;
    for visits in join_all(workers).await {
        let visits = visits.expect("a worker ends");
        assert!(visits.refused.is_empty(), "{:#?}", visits.refused);
        completed += visits.completed.len();
    }
    assert_eq!(receiver.wait_for(completed, TIMEOUT).await.len(), completed, "one webhook for each");
    if is_new {
        refuses(&nodes, before).await;
    }
    eprintln!(
        "{completed} verifications from schema {} to {}, {:.0} s: {}",
        numbers[0],
        numbers[1],
        begun.elapsed().as_secs_f64(),
        finished.out
    );
}

/// Checks that the previous release refuses the store in a sentence, with exit code 1, and so does its `check-config`.
async fn refuses(nodes: &Nodes, before: &str) {
    let mut node = nodes.all[0].prepare_peer();
    for (key, value) in [("SERVER__PUBLIC_ADDR", "127.0.0.1:0"), ("SERVER__INTERNAL_ADDR", "127.0.0.1:0")] {
        node.set(key, value);
    }
    node.set_variable(BINARY, before);
    let beats = nodes.redis.answer(&["ZCARD", "{nodes}beats"]).text();
    for command in ["serve", "check-config"] {
        let ended = Process::start(&[command], node.environment(), node.directory.path()).wait_for_exit(TIMEOUT).await;
        assert_eq!(ended.status.code(), Some(1), "{command}: {}", ended.err);
        assert!(
            format!("{}{}", ended.out, ended.err).contains("of a newer release"),
            "{command}: {}{}",
            ended.out,
            ended.err
        );
    }
    assert_eq!(nodes.redis.answer(&["ZCARD", "{nodes}beats"]).text(), beats, "it has sent no heartbeat");
}

#[tokio::test]
async fn nodes_change_to_the_next_release_and_back_and_no_request_fails() {
    if let Some(next) = named("SAKSHI_NEXT") {
        upgraded(&this(), &next).await;
    }
}

#[tokio::test]
async fn nodes_change_from_the_last_release_to_this_one_and_no_request_fails() {
    if let Some(last) = named("SAKSHI_LAST_RELEASE") {
        upgraded(&last, &this()).await;
    }
}
