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
use crate::rolling::{run_worker, wait_for_more};

const WORKERS: usize = 8;
/// Webhooks that arrive between two steps.
const WEBHOOKS_BETWEEN: usize = 50;

/// Returns the path of a binary in an environment variable; `None` if the variable is unset.
fn binary_from(variable: &str) -> Option<String> {
    let path = std::env::var(variable).ok().filter(|path| !path.is_empty());
    if path.is_none() {
        eprintln!("{variable} names no binary: not tested");
    }
    path
}

fn this_binary() -> String {
    env!("CARGO_BIN_EXE_sakshi").to_owned()
}

/// Returns the number of a binary's schema.
fn schema_number(node: &TestNode, binary: &str) -> u32 {
    let mut environment = node.environment().clone();
    environment.insert(BINARY.to_owned(), binary.to_owned());
    let version = Process::run(&["--version"], &environment, node.directory.path()).out;
    let number = version.trim().rsplit_once("schema ").and_then(|(_, rest)| rest.trim_end_matches(')').parse().ok());
    number.unwrap_or_else(|| panic!("no schema in {version}"))
}

/// Restarts every node with `binary`, one after another, with some requests between.
async fn restart_all_with(nodes: &mut Nodes, balancer: &Balancer, receiver: &WebhookReceiver, binary: &str) {
    for number in 0..nodes.all.len() {
        wait_for_more(receiver, WEBHOOKS_BETWEEN).await;
        nodes.all[number].set_variable(BINARY, binary);
        nodes.all[number].restart().await;
        balancer.wait_for_nodes(3).await;
    }
}

/// Changes the nodes from one release to the next, back, and up again, and finishes the upgrade, all under load.
async fn rehearse_upgrade(before: &str, after: &str) {
    let started_at = Instant::now();
    let (mut nodes, balancer) =
        Nodes::start_balanced_with(before, &[("SERVER__DRAIN_NOTICE_S", "2"), ("SERVER__DRAIN_TIMEOUT_S", "10")]).await;
    let schemas = [before, after].map(|binary| schema_number(&nodes.all[0], binary));
    let backend = nodes.backend(1_000_000).await.through(&balancer.addresses);
    let identity_app = nodes.all[0].identity_app().through(&balancer.addresses);
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
    let over = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            tokio::spawn(run_worker(backend.clone(), identity_app.clone(), receiver.url("/hook"), Arc::clone(&over)))
        })
        .collect();

    restart_all_with(&mut nodes, &balancer, &receiver, after).await;
    nodes.all[0].set_variable(BINARY, before);
    nodes.all[0].restart().await;
    balancer.wait_for_nodes(3).await;
    let early_finish = nodes.all[1].admin(&["finish-upgrade"]).await;
    let is_new_schema = schemas[0] < schemas[1];
    assert_eq!(
        early_finish.status.code(),
        Some(i32::from(is_new_schema)),
        "a node of the previous release still runs: {} {}",
        early_finish.out,
        early_finish.err
    );
    restart_all_with(&mut nodes, &balancer, &receiver, before).await;
    restart_all_with(&mut nodes, &balancer, &receiver, after).await;
    let finished = nodes.all[2].admin(&["finish-upgrade"]).await;
    assert_eq!(finished.status.code(), Some(0), "{} {}", finished.out, finished.err);
    wait_for_more(&receiver, 2 * WEBHOOKS_BETWEEN).await;

    over.store(true, Ordering::Relaxed);
    let mut completed = 0;
    for verifications in join_all(workers).await {
        let verifications = verifications.expect("a worker ends");
        assert!(verifications.failures.is_empty(), "{:#?}", verifications.failures);
        completed += verifications.completed.len();
    }
    assert_eq!(receiver.wait_for(completed, TIMEOUT).await.len(), completed, "one webhook for each");
    if is_new_schema {
        assert_store_refused(&nodes, before).await;
    }
    eprintln!(
        "{completed} verifications from schema {} to {}, {:.0} s: {}",
        schemas[0],
        schemas[1],
        started_at.elapsed().as_secs_f64(),
        finished.out
    );
}

/// Checks that `serve` and `check-config` of the previous release exit with code 1 and an explanation.
async fn assert_store_refused(nodes: &Nodes, before: &str) {
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
    assert_eq!(nodes.redis.answer(&["ZCARD", "{nodes}beats"]).text(), beats, "the refused node sends no heartbeat");
}

#[tokio::test]
async fn changing_to_the_next_release_and_back_fails_no_request() {
    if let Some(next) = binary_from("SAKSHI_NEXT") {
        rehearse_upgrade(&this_binary(), &next).await;
    }
}

#[tokio::test]
async fn changing_from_the_last_release_to_this_one_fails_no_request() {
    if let Some(last) = binary_from("SAKSHI_LAST_RELEASE") {
        rehearse_upgrade(&last, &this_binary()).await;
    }
}
