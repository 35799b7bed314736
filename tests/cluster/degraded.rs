//! Redis slow, away, read-only or full: a clear refusal within a bound, no partial effects, and recovery without a
//! restart.

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

const CREDITS: &str = "/api/v1/credits";

/// Time within which a balancer learns of an outage.
const NOTICED: Duration = Duration::from_secs(1);

/// Time limit of every answer, however Redis fails.
const BOUND: Duration = Duration::from_secs(12);

async fn init(backend: &Backend) -> Answer {
    let began = Instant::now();
    let answer = backend.init(&json!({"claims": ["name"], "channel": "qr"})).await;
    assert_within(began.elapsed(), BOUND, "the answer to a request");
    answer
}

/// Checks for the refusal of every request that needs the store.
fn is_refused(answer: &Answer, code: &str) {
    let body = answer.json();
    assert_eq!((answer.status, body["code"].as_str()), (503, Some(code)), "{}", answer.text);
    let retry: u64 = answer.header("retry-after").expect("a Retry-After").parse().expect("seconds");
    assert!((1..=60).contains(&retry), "{retry}");
}

/// Checks that every node is alive and reports that it is not ready.
async fn are_unready(nodes: &Nodes) {
    for node in &nodes.all {
        eventually("the node is not ready", TIMEOUT, || async {
            (node.operator().probe("/readyz").await.status == 503).then_some(())
        })
        .await;
        assert_eq!(node.operator().probe("/livez").await.status, 200);
    }
}

/// Checks that every node reports itself not ready, soon enough for a balancer.
async fn notice(nodes: &Nodes) {
    join_all(nodes.all.iter().map(|node| {
        let operator = node.operator();
        async move {
            let began = Instant::now();
            let is_unready = async || (operator.probe("/readyz").await.status == 503).then_some(());
            eventually("the outage is noticed", TIMEOUT, is_unready).await;
            assert_within(began.elapsed(), NOTICED, "the notice of an outage");
        }
    }))
    .await;
}

/// Waits until every node works again, and checks the ledger against the answers.
async fn recover(nodes: &Nodes, backend: &Backend, opened: u64, in_doubt: u64, credits: u64) {
    for node in &nodes.all {
        eventually("the node is ready", TIMEOUT, || async {
            (node.operator().probe("/readyz").await.status == 200).then_some(())
        })
        .await;
        let answer = init(&backend.through(&node.addresses)).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let balance = nodes.all[0].operator().balance(&backend.client).await;
    let spent = credits - balance;
    let least = opened + nodes.all.len() as u64;
    assert!(
        (least..=least + in_doubt).contains(&spent),
        "{spent} credits for {least} to {} transactions",
        least + in_doubt
    );
}

#[tokio::test]
async fn while_redis_is_away_requests_are_refused_and_afterwards_all_is_well() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(100).await;
    assert_eq!(init(&backend).await.status, 200);
    nodes.redis.kill9();
    notice(&nodes).await;
    let everywhere = nodes.everywhere(&backend);
    let answers = join_all((0..30).map(|number| init(&everywhere[number % 3]))).await;
    answers.iter().for_each(|answer| is_refused(answer, "storage_unavailable"));
    are_unready(&nodes).await;
    nodes.redis.restart();
    recover(&nodes, &backend, 1, 30, 100).await;
}

#[tokio::test]
async fn a_redis_that_stands_still_holds_requests_up_for_a_bounded_time() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(100).await;
    assert_eq!(init(&backend).await.status, 200);
    nodes.redis.pause();
    notice(&nodes).await;
    let everywhere = nodes.everywhere(&backend);
    let answers = join_all((0..30).map(|number| init(&everywhere[number % 3]))).await;
    answers.iter().for_each(|answer| is_refused(answer, "storage_unavailable"));
    are_unready(&nodes).await;
    nodes.redis.resume();
    recover(&nodes, &backend, 1, 30, 100).await;
}

#[tokio::test]
async fn a_redis_without_memory_refuses_writes_and_answers_questions() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(100).await;
    let opened = backend.open(&["name"]).await;
    nodes.redis.answer(&["CONFIG", "SET", "maxmemory", "1mb"]);
    for seen in nodes.everywhere(&backend) {
        is_refused(&init(&seen).await, "storage_full");
        assert_eq!(seen.result(&opened.txn).await.status, 200, "reading needs no memory");
    }
    are_unready(&nodes).await;
    nodes.redis.answer(&["CONFIG", "SET", "maxmemory", "0"]);
    recover(&nodes, &backend, 1, 0, 100).await;
}

#[tokio::test]
async fn a_redis_whose_disk_takes_nothing_refuses_writes_as_full_and_answers_questions() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(100).await;
    let opened = backend.open(&["name"]).await;
    // A snapshot cannot be renamed while a directory has its name.
    let directory = nodes.redis.answer(&["CONFIG", "GET", "dir"]).members()[1].text().expect("a path");
    let taken = Path::new(&directory).join("dump.rdb");
    fs::create_dir(&taken).expect("a directory");
    let snapshot = async |ends: &str| {
        nodes.redis.answer(&["BGSAVE"]);
        let status = || {
            nodes
                .redis
                .info("rdb_bgsave_in_progress")
                .filter(|running| running == "0")
                .and(nodes.redis.info("rdb_last_bgsave_status"))
        };
        eventually("the snapshot ends", TIMEOUT, || async { (status().as_deref() == Some(ends)).then_some(()) }).await;
    };
    nodes.redis.answer(&["CONFIG", "SET", "save", "3600 1000000"]);
    snapshot("err").await;
    for seen in nodes.everywhere(&backend) {
        is_refused(&init(&seen).await, "storage_full");
        assert_eq!(seen.result(&opened.txn).await.status, 200, "reading needs no disk");
    }
    are_unready(&nodes).await;
    fs::remove_dir(&taken).expect("an empty directory");
    snapshot("ok").await;
    recover(&nodes, &backend, 1, 0, 100).await;
}

#[tokio::test]
async fn a_redis_that_became_a_replica_refuses_writes_until_it_is_a_master_again() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(100).await;
    assert_eq!(init(&backend).await.status, 200);
    // With an unreachable master, the server becomes read-only.
    nodes.redis.answer(&["REPLICAOF", "127.0.0.1", "1"]);
    for seen in nodes.everywhere(&backend) {
        is_refused(&init(&seen).await, "storage_unavailable");
    }
    are_unready(&nodes).await;
    nodes.redis.answer(&["REPLICAOF", "NO", "ONE"]);
    recover(&nodes, &backend, 1, 0, 100).await;
}

#[tokio::test]
async fn a_node_that_starts_while_redis_is_away_waits_for_it_when_told_to() {
    let mut nodes = Nodes::with(&[("STORE__REDIS_WAIT_AT_START", "true")]).await;
    let backend = nodes.backend(100).await;
    let opened = backend.open(&["name"]).await;
    nodes.all[2].stop();
    nodes.redis.kill9();
    nodes.all[2].launch().await;
    let third = &nodes.all[2];
    assert_eq!(third.operator().probe("/livez").await.status, 200);
    assert_eq!(third.operator().probe("/readyz").await.status, 503);
    is_refused(&backend.through(&third.addresses).result(&opened.txn).await, "storage_unavailable");
    nodes.redis.restart();
    recover(&nodes, &backend, 1, 0, 100).await;
    assert!(backend.through(&third.addresses).is_pending(&opened.txn).await);
}

#[tokio::test]
async fn a_node_that_starts_on_a_store_that_lost_data_refuses_everything_until_accepted() {
    let mut nodes = Nodes::start().await;
    let backend = nodes.backend(100).await;
    nodes.all.iter_mut().for_each(|node| drop(node.stop()));
    nodes.redis.answer(&["DEL", "{canary}steps"]);
    for node in &mut nodes.all {
        node.launch().await;
    }
    are_unready(&nodes).await;
    is_refused(&init(&backend).await, "storage_unavailable");
    assert!(nodes.all[0].admin(&["accept-loss"]).await.status.success());
    recover(&nodes, &backend, 0, 0, 100).await;
}

#[tokio::test]
async fn a_redis_that_lost_what_was_kept_in_it_denies_nobody_their_key_or_their_transaction() {
    let nodes = Nodes::start().await;
    // For a key that no node has cached, only Redis has the answer.
    let (backend, unseen) = (nodes.backend(100).await, nodes.backend(100).await);
    let opened = backend.open(&["name"]).await;
    nodes.redis.answer(&["FLUSHALL"]);
    // The node that opened the transaction caches the key briefly, and asks Redis for the rest.
    for path in [CREDITS, "/api/v1/credits/statement", EVENTS, "/api/v1/user/webhook"] {
        is_refused(&backend.get(path).await, "storage_unavailable");
    }
    for (node, unseen) in nodes.all.iter().zip(nodes.everywhere(&unseen)).skip(1) {
        is_refused(&init(&unseen).await, "storage_unavailable");
        is_refused(&unseen.result(&opened.txn).await, "storage_unavailable");
        assert_eq!(node.get(&format!("/v/{}", opened.txn)).await.status, 503);
    }
    are_unready(&nodes).await;
    let reason = nodes.all[0].operator().probe("/readyz").await.text;
    assert!(
        reason.contains("the store has lost data since") && reason.contains("sakshi admin accept-loss"),
        "{reason}"
    );
    for unseen in nodes.everywhere(&unseen) {
        is_refused(&init(&unseen).await, "storage_unavailable");
    }
    // A node may have written its heartbeat before it noticed; client data is in partitions.
    assert!(nodes.redis.answer(&["KEYS", "{p*}*:*"]).members().is_empty(), "nothing is written any more");

    let accepted = nodes.all[1].admin(&["accept-loss"]).await;
    assert!(accepted.status.success() && accepted.out.contains("since"), "{accepted:?}");
    for node in &nodes.all {
        eventually("the node is ready", TIMEOUT, || async {
            (node.operator().probe("/readyz").await.status == 200).then_some(())
        })
        .await;
        let status = backend.through(&node.addresses).result(&opened.txn).await.status;
        assert!(
            matches!(status, 401 | 404),
            "the key went with the rest, and a node remembers it for a moment: {status}"
        );
    }
    let entries = nodes.all[0].operator().get("/admin/v1/audit-log").await.ok();
    assert_eq!(entries["entries"][0]["entry"]["operation"], "acceptLoss", "{entries}");
    assert!(nodes.all[2].admin(&["accept-loss"]).await.status.success(), "nothing is missing any more");
}
