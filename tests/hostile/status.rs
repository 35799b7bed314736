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

use crate::honest::{Honest, assert_growth};

/// Concurrent callbacks, each with its own URL.
const CALLBACKS: usize = 500;
const VISITS: usize = 60;

#[tokio::test]
async fn callbacks_whose_status_hangs_make_nobody_else_wait() {
    let host = StatusHost::start().await;
    host.publish_others(Reply::Never);
    let node = TestNode::start_with(&[("AUTHORITY__STATUS_HOSTS", &host.authority)]).await;
    let honest = Honest::of(&node).await;
    let alone = honest.visit(VISITS).await;
    let (stranger, victim) = (node.backend(2_000).await, node.backend(10).await);
    let issuer = &node.issuer;
    let opened = join_all((0..CALLBACKS).map(|_| stranger.open(&["name"]))).await;
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
        let began = Instant::now();
        for answer in
            join_all(opened.iter().zip(&credentials).map(|(opened, credential)| app.present(opened, credential))).await
        {
            *answers.entry(answer.status).or_default() += 1;
        }
        eprintln!("{CALLBACKS} callbacks whose status hangs: {answers:?} in {:?}", began.elapsed());
        assert_eq!(answers, BTreeMap::from([(503, CALLBACKS)]));
    };
    // Another client's credential is served meanwhile.
    let fetched = async {
        eventually("the first fetch that hangs", TIMEOUT, || async { (host.total_request_count() > 0).then_some(()) })
            .await;
        let mut took = Vec::new();
        for number in 0..5 {
            let id = uuid::Uuid::new_v4().to_string();
            let payload = json!({"iss": ISSUER, "sub": id, "status": "valid", "iat": now(), "exp": now() + 60});
            let answer = issuer.issuer.sign(&json!({"alg": "ES256", "kid": KID}), &payload).unwrap();
            host.publish(&format!("good/{number}"), Reply::Body(answer));
            let mut draft = issuer.valid_draft();
            draft.payload["id"] = id.into();
            draft.payload["status"] = host.url(&format!("good/{number}")).into();
            let opened = victim.open(&["name"]).await;
            let began = Instant::now();
            let answer = app.present(&opened, &issuer.sign(&draft)).await;
            took.push(began.elapsed());
            assert_eq!(answer.status, 200, "{}", answer.text);
        }
        eprintln!("another client's callbacks beside them: {took:?}");
        assert!(took.iter().all(|took| *took < STATUS_FETCH_MAX), "{took:?}");
    };
    tokio::join!(attack, fetched, honest.is_as_well_off_as(&alone, "callbacks whose status hangs"));
    assert_growth(&node, before, 48, "callbacks whose status hangs");
}
