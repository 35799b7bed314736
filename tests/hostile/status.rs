//! Credentials whose status URLs hang: their sender delays nobody else.

use std::collections::BTreeMap;
use std::time::Instant;

use futures_util::future::join_all;
use sakshi_domain::limits::STATUS_FETCH_MAX;
use sakshi_kit::issuer::{ISSUER, KID, now};
use sakshi_kit::node::TestNode;
use sakshi_kit::status_host::{Reply, StatusHost};
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

use crate::honest::{HonestClient, assert_memory_growth};

/// Concurrent callbacks, each with its own URL.
const CALLBACKS: usize = 500;
const VERIFICATIONS: usize = 60;
/// Memory that the callbacks may take, in mebibytes.
const MEMORY_MIB_MAX: u64 = 48;

#[tokio::test]
async fn callbacks_whose_status_check_hangs_delay_no_other_client() {
    let host = StatusHost::start().await;
    // No status request is answered, unless its path is published below.
    host.publish_others(Reply::Never);
    let node = TestNode::start_with(&[("AUTHORITY__STATUS_HOSTS", &host.authority)]).await;
    let honest = HonestClient::create(&node).await;
    let baseline = honest.measure(VERIFICATIONS).await;
    let (attacker, victim) = (node.backend_with_credits(2_000).await, node.backend_with_credits(10).await);
    let issuer = &node.issuer;
    let opened = join_all((0..CALLBACKS).map(|_| attacker.open(&["name"]))).await;
    let credentials: Vec<String> = (0..CALLBACKS)
        .map(|number| {
            let mut draft = issuer.valid_draft();
            draft.payload["status"] = host.url(&format!("hangs/{number}")).into();
            issuer.sign(&draft)
        })
        .collect();
    let before = node.process().resident_bytes();
    let app = node.identity_app();
    let attack = async {
        let mut answers: BTreeMap<u16, usize> = BTreeMap::new();
        let started = Instant::now();
        for answer in
            join_all(opened.iter().zip(&credentials).map(|(opened, credential)| app.present(opened, credential))).await
        {
            *answers.entry(answer.status).or_default() += 1;
        }
        eprintln!("{CALLBACKS} callbacks whose status hangs: {answers:?} in {:?}", started.elapsed());
        assert_eq!(answers, BTreeMap::from([(503, CALLBACKS)]));
    };
    // Another client's credential is served meanwhile.
    let victim_callbacks = async {
        eventually("the first hanging fetch", TIMEOUT, || async { (host.total_request_count() > 0).then_some(()) })
            .await;
        let mut latencies = Vec::new();
        for number in 0..5 {
            let id = uuid::Uuid::new_v4().to_string();
            let payload = json!({"iss": ISSUER, "sub": id, "status": "valid", "iat": now(), "exp": now() + 60});
            let answer = issuer.issuer.sign(&json!({"alg": "ES256", "kid": KID}), &payload).unwrap();
            host.publish(&format!("good/{number}"), Reply::Body(answer));
            let mut draft = issuer.valid_draft();
            draft.payload["id"] = id.into();
            draft.payload["status"] = host.url(&format!("good/{number}")).into();
            let opened = victim.open(&["name"]).await;
            let started = Instant::now();
            let answer = app.present(&opened, &issuer.sign(&draft)).await;
            latencies.push(started.elapsed());
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        eprintln!("another client's callbacks beside them: {latencies:?}");
        assert!(latencies.iter().all(|latency| *latency < STATUS_FETCH_MAX), "{latencies:?}");
    };
    tokio::join!(attack, victim_callbacks, honest.assert_unharmed(&baseline, "callbacks whose status hangs"));
    assert_memory_growth(&node, before, MEMORY_MIB_MAX, "callbacks whose status hangs");
}
