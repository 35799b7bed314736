//! Limits set by the operator: excess requests are refused at once, with `Retry-After`, and cost nothing.

use serde_json::json;

use sakshi_kit::answer::Answer;
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};

fn assert_has_retry_after(answer: &Answer) {
    let seconds = answer.header("retry-after").expect("Retry-After").parse::<u32>().expect("whole seconds");
    assert!((1..=60).contains(&seconds), "{seconds}");
}

#[tokio::test]
async fn init_over_the_limit_of_live_transactions_gets_503_and_costs_nothing() {
    let node = TestNode::start_with(&[("LIMITS__MAX_LIVE_TRANSACTIONS", "2"), ("SERVER__WORKERS", "1")]).await;
    let (backend, identity_app) = (node.backend_with_credits(5).await, node.identity_app());
    let first = backend.open(&["name"]).await;
    backend.open(&["name"]).await;
    let body = json!({"claims": ["name"], "channel": "qr"});
    let refused = backend.init(&body).await;
    assert_eq!(refused.refusal(503), "overloaded");
    assert_has_retry_after(&refused);
    assert_eq!(node.operator().balance(&backend.client).await, 3);
    let metrics = node.operator().probe("/metrics").await.text;
    assert!(metrics.contains("sakshi_intents_total{made=\"signed\"} 2\n"), "a refused init signs no intent: {metrics}");
    identity_app.approve(&first, "asha").await;
    eventually("an accepted init", TIMEOUT, || async { (backend.init(&body).await.status == 200).then_some(()) }).await;
    assert_eq!(backend.result(&first.txn).await.ok()["success"], true);
}

#[tokio::test]
async fn each_app_has_its_own_rate_limit_for_inits_and_polls() {
    let settings = [("LIMITS__INIT_PER_SECOND_PER_APP", "2"), ("LIMITS__POLLS_PER_SECOND_PER_APP", "2")];
    let node = TestNode::start_with(&settings).await;
    let (backend, other) = (node.backend_with_credits(200).await, node.backend_with_credits(2).await);
    let body = json!({"claims": ["name"], "channel": "qr"});
    let (mut opened_count, mut limited) = (0, None);
    for _ in 0..100 {
        let answer = backend.init(&body).await;
        if answer.status == 429 {
            limited = Some(answer);
            break;
        }
        answer.ok();
        opened_count += 1;
    }
    let limited = limited.expect("a 429");
    assert_eq!(limited.refusal(429), "rate_limited");
    assert_has_retry_after(&limited);
    assert_eq!(node.operator().balance(&backend.client).await, 200 - opened_count);

    let others_txn = other.open(&["name"]).await;
    let mut statuses = Vec::new();
    for _ in 0..100 {
        statuses.push(other.result(&others_txn.txn).await.status);
    }
    assert!(statuses.contains(&429) && statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
}
