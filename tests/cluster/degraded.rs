//! Redis that is paused, down, read-only or full: nodes refuse requests in bounded time, leave no partial effects, and
//! recover without a restart.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::event::EVENTS;
use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};
use serde_json::json;

use crate::nodes::Nodes;

const CREDITS_PATH: &str = "/api/v1/credits";

/// Credits of each client at the beginning.
const GRANTED: u64 = 100;

/// Requests in a burst, spread over the nodes.
const BURST: usize = 30;

/// Time limit for a node to report an outage to its balancer.
const NOTICE_TIME_MAX: Duration = Duration::from_secs(1);

/// Time limit of every answer, however Redis fails.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(12);

/// Sends an init, which must be answered in time.
async fn init(backend: &Backend) -> Answer {
    let began = Instant::now();
    let answer = backend.init(&json!({"claims": ["name"], "channel": "qr"})).await;
    assert_within(began.elapsed(), ANSWER_TIME_MAX, "the answer to a request");
    answer
}

/// Checks that an answer refuses a request with an error of the store, and says when to retry.
fn assert_refused(answer: &Answer, code: &str) {
    let body = answer.json();
    assert_eq!((answer.status, body["code"].as_str()), (503, Some(code)), "{}", answer.text);
    let retry: u64 = answer.header("retry-after").expect("a Retry-After").parse().expect("seconds");
    assert!((1..=60).contains(&retry), "{retry}");
}

/// Waits until every node reports that it is not ready, and checks that it is alive.
async fn await_unready(nodes: &Nodes) {
    for node in &nodes.all {
        eventually("the node is not ready", TIMEOUT, || async {
            (node.operator().probe("/readyz").await.status == 503).then_some(())
        })
        .await;
        assert_eq!(node.operator().probe("/livez").await.status, 200);
    }
}

/// Checks that every node reports that it is not ready within [`NOTICE_TIME_MAX`].
async fn assert_outage_noticed(nodes: &Nodes) {
    join_all(nodes.all.iter().map(|node| {
        let operator = node.operator();
        async move {
            let began = Instant::now();
            let is_unready = async || (operator.probe("/readyz").await.status == 503).then_some(());
            eventually("the outage is noticed", TIMEOUT, is_unready).await;
            assert_within(began.elapsed(), NOTICE_TIME_MAX, "the report of an outage");
        }
    }))
    .await;
}

/// Transactions that a client has opened so far.
struct OpenedSoFar {
    /// Inits that were answered with success.
    certain: u64,
    /// Further inits that may have succeeded.
    in_doubt: u64,
}

/// Waits until every node works again, and checks that the spent credits match the opened transactions. Opens another
/// transaction at each node.
async fn await_recovery(nodes: &Nodes, backend: &Backend, opened: OpenedSoFar) {
    for node in &nodes.all {
        eventually("the node is ready", TIMEOUT, || async {
            (node.operator().probe("/readyz").await.status == 200).then_some(())
        })
        .await;
        let answer = init(&backend.through(&node.addresses)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let balance = nodes.all[0].operator().balance(&backend.client).await;
    let spent = GRANTED - balance;
    let least = opened.certain + nodes.all.len() as u64;
    let most = least + opened.in_doubt;
    assert!((least..=most).contains(&spent), "{spent} credits for {least} to {most} transactions");
}

#[tokio::test]
async fn requests_are_refused_while_redis_is_down_and_succeed_afterwards() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(GRANTED).await;
    assert_eq!(init(&backend).await.status, 200);
    nodes.redis.kill9();
    assert_outage_noticed(&nodes).await;
    let backends = nodes.at_each_node(&backend);
    let answers = join_all((0..BURST).map(|number| init(&backends[number % backends.len()]))).await;
    answers.iter().for_each(|answer| assert_refused(answer, "storage_unavailable"));
    await_unready(&nodes).await;
    nodes.redis.restart();
    await_recovery(&nodes, &backend, OpenedSoFar { certain: 1, in_doubt: BURST as u64 }).await;
}

#[tokio::test]
async fn a_paused_redis_delays_requests_for_a_bounded_time() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(GRANTED).await;
    assert_eq!(init(&backend).await.status, 200);
    nodes.redis.pause();
    assert_outage_noticed(&nodes).await;
    let backends = nodes.at_each_node(&backend);
    let answers = join_all((0..BURST).map(|number| init(&backends[number % backends.len()]))).await;
    answers.iter().for_each(|answer| assert_refused(answer, "storage_unavailable"));
    await_unready(&nodes).await;
    nodes.redis.resume();
    await_recovery(&nodes, &backend, OpenedSoFar { certain: 1, in_doubt: BURST as u64 }).await;
}

#[tokio::test]
async fn a_redis_without_memory_refuses_writes_and_serves_reads() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(GRANTED).await;
    let opened = backend.open(&["name"]).await;
    nodes.redis.answer(&["CONFIG", "SET", "maxmemory", "1mb"]);
    for at_node in nodes.at_each_node(&backend) {
        assert_refused(&init(&at_node).await, "storage_full");
        assert_eq!(at_node.result(&opened.txn).await.status, 200, "reads need no memory");
    }
    await_unready(&nodes).await;
    nodes.redis.answer(&["CONFIG", "SET", "maxmemory", "0"]);
    await_recovery(&nodes, &backend, OpenedSoFar { certain: 1, in_doubt: 0 }).await;
}

#[tokio::test]
async fn a_redis_that_cannot_write_to_disk_refuses_writes_and_serves_reads() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(GRANTED).await;
    let opened = backend.open(&["name"]).await;
    // A snapshot cannot be renamed while a directory has its name.
    let directory = nodes.redis.answer(&["CONFIG", "GET", "dir"]).members()[1].text().expect("a path");
    let obstacle = Path::new(&directory).join("dump.rdb");
    fs::create_dir(&obstacle).expect("a directory");
    let expect_snapshot = async |expected: &str| {
        nodes.redis.answer(&["BGSAVE"]);
        let status = || {
            nodes
                .redis
                .info("rdb_bgsave_in_progress")
                .filter(|running| running == "0")
                .and(nodes.redis.info("rdb_last_bgsave_status"))
        };
        eventually("the snapshot ends", TIMEOUT, || async { (status().as_deref() == Some(expected)).then_some(()) })
            .await;
    };
    nodes.redis.answer(&["CONFIG", "SET", "save", "3600 1000000"]);
    expect_snapshot("err").await;
    for at_node in nodes.at_each_node(&backend) {
        assert_refused(&init(&at_node).await, "storage_full");
        assert_eq!(at_node.result(&opened.txn).await.status, 200, "reads need no disk");
    }
    await_unready(&nodes).await;
    fs::remove_dir(&obstacle).expect("an empty directory");
    expect_snapshot("ok").await;
    await_recovery(&nodes, &backend, OpenedSoFar { certain: 1, in_doubt: 0 }).await;
}

#[tokio::test]
async fn a_redis_that_became_a_replica_refuses_writes_until_it_is_a_master_again() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(GRANTED).await;
    assert_eq!(init(&backend).await.status, 200);
    // With an unreachable master, the server becomes read-only.
    nodes.redis.answer(&["REPLICAOF", "127.0.0.1", "1"]);
    for at_node in nodes.at_each_node(&backend) {
        assert_refused(&init(&at_node).await, "storage_unavailable");
    }
    await_unready(&nodes).await;
    nodes.redis.answer(&["REPLICAOF", "NO", "ONE"]);
    await_recovery(&nodes, &backend, OpenedSoFar { certain: 1, in_doubt: 0 }).await;
}

#[tokio::test]
async fn a_node_that_starts_without_redis_waits_for_it_if_configured() {
    let mut nodes = Nodes::start_with(&[("STORE__REDIS_WAIT_AT_START", "true")]).await;
    let backend = nodes.backend(GRANTED).await;
    let opened = backend.open(&["name"]).await;
    nodes.all[2].stop();
    nodes.redis.kill9();
    nodes.all[2].launch().await;
    let third = &nodes.all[2];
    assert_eq!(third.operator().probe("/livez").await.status, 200);
    assert_eq!(third.operator().probe("/readyz").await.status, 503);
    assert_refused(&backend.through(&third.addresses).result(&opened.txn).await, "storage_unavailable");
    nodes.redis.restart();
    await_recovery(&nodes, &backend, OpenedSoFar { certain: 1, in_doubt: 0 }).await;
    assert!(backend.through(&third.addresses).is_pending(&opened.txn).await);
}

#[tokio::test]
async fn a_node_that_starts_after_a_data_loss_refuses_requests_until_it_is_accepted() {
    let mut nodes = Nodes::start().await;
    let backend = nodes.backend(GRANTED).await;
    nodes.all.iter_mut().for_each(|node| drop(node.stop()));
    nodes.redis.answer(&["DEL", "{canary}steps"]);
    for node in &mut nodes.all {
        node.launch().await;
    }
    await_unready(&nodes).await;
    assert_refused(&init(&backend).await, "storage_unavailable");
    assert!(nodes.all[0].admin(&["accept-loss"]).await.status.success());
    await_recovery(&nodes, &backend, OpenedSoFar { certain: 0, in_doubt: 0 }).await;
}

#[tokio::test]
async fn after_a_data_loss_no_client_is_told_that_its_key_or_transaction_is_unknown() {
    let nodes = Nodes::start().await;
    // For a key that no node has cached, only Redis has the answer.
    let (backend, uncached) = (nodes.backend(GRANTED).await, nodes.backend(GRANTED).await);
    let opened = backend.open(&["name"]).await;
    nodes.redis.answer(&["FLUSHALL"]);
    // The node that opened the transaction caches the key briefly, and asks Redis for everything else.
    for path in [CREDITS_PATH, "/api/v1/credits/statement", EVENTS, "/api/v1/user/webhook"] {
        assert_refused(&backend.get(path).await, "storage_unavailable");
    }
    for (node, uncached) in nodes.all.iter().zip(nodes.at_each_node(&uncached)).skip(1) {
        assert_refused(&init(&uncached).await, "storage_unavailable");
        assert_refused(&uncached.result(&opened.txn).await, "storage_unavailable");
        assert_eq!(node.get(&format!("/v/{}", opened.txn)).await.status, 503);
    }
    await_unready(&nodes).await;
    let reason = nodes.all[0].operator().probe("/readyz").await.text;
    assert!(
        reason.contains("the store has lost data since") && reason.contains("sakshi admin accept-loss"),
        "{reason}"
    );
    for uncached in nodes.at_each_node(&uncached) {
        assert_refused(&init(&uncached).await, "storage_unavailable");
    }
    // A node may have written its heartbeat before it noticed; client data is in partitions.
    assert!(nodes.redis.answer(&["KEYS", "{p*}*:*"]).members().is_empty(), "no client data is written after the loss");

    let accepted = nodes.all[1].admin(&["accept-loss"]).await;
    assert!(accepted.status.success() && accepted.out.contains("since"), "{accepted:?}");
    for node in &nodes.all {
        eventually("the node is ready", TIMEOUT, || async {
            (node.operator().probe("/readyz").await.status == 200).then_some(())
        })
        .await;
        let status = backend.through(&node.addresses).result(&opened.txn).await.status;
        assert!(matches!(status, 401 | 404), "the key is lost too, although a node may still cache it: {status}");
    }
    let entries = nodes.all[0].operator().get("/admin/v1/audit-log").await.ok();
    assert_eq!(entries["entries"][0]["entry"]["operation"], "acceptLoss", "{entries}");
    assert!(nodes.all[2].admin(&["accept-loss"]).await.status.success(), "accepting the loss again succeeds");
}
