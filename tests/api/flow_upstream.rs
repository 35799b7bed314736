//! Upstreams that are down, slow, or break the contract: the client gets an error, and no flow is opened.

use sakshi_kit::waiting::{TIMEOUT, assert_within, eventually};
use std::time::{Duration, Instant};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::connector::Connector;
use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::goldens::{CONSENT_REJECTED, DOCLOCKER_FAILED, ESIGN_COMPLETED, ESTAMP_REJECTED};
use sakshi_kit::node::{TestNode, write_intent_key};
use sakshi_kit::upstream::{CAPABILITY, Upstream, UpstreamBehaviour};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use crate::profiles::production_settings;

/// Returns the flow that the last order would have opened, had the upstream accepted it.
fn flow_of_last_order(upstream: &Upstream, flow: Flow, backend: &Backend) -> OpenedFlow {
    let order = upstream.last_order().body;
    OpenedFlow::read(flow, &backend.app, &order, &order)
}

/// Checks that a flow is unknown everywhere.
async fn assert_not_opened(opened: &OpenedFlow, backend: &Backend, connector: &Connector) {
    let golden = match opened.flow {
        Flow::Esign => ESIGN_COMPLETED,
        Flow::DocLocker => DOCLOCKER_FAILED,
        Flow::EStamp => ESTAMP_REJECTED,
        Flow::Wealth => CONSENT_REJECTED,
    };
    assert_eq!(connector.report(opened.flow.kind(), &opened.report(golden)).await.refusal(404), "not_found");
    if matches!(opened.flow, Flow::Esign | Flow::DocLocker) {
        assert_eq!(backend.poll(opened).await.refusal(404), "not_found");
    }
}

/// Checks that an error contains nothing of the upstream's response.
fn assert_discloses_nothing(answer: &Answer) {
    let text = answer.text.replace(answer.json()["docUrl"].as_str().unwrap_or_default(), "");
    assert!(!text.contains(CAPABILITY) && !text.contains("127.0.0.1"), "{}", answer.text);
}

#[tokio::test]
async fn a_failed_upstream_gives_502_and_leaves_the_idempotency_key_unused() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let (backend, connector) = (node.backend_with_credits(0).await, node.connector());
    let behaviours = [
        UpstreamBehaviour::Status(500),
        UpstreamBehaviour::Status(201),
        UpstreamBehaviour::Status(404),
        UpstreamBehaviour::Body(String::new()),
        UpstreamBehaviour::Body("null".to_owned()),
        UpstreamBehaviour::Body("[]".to_owned()),
        UpstreamBehaviour::Body("<html>".to_owned()),
        UpstreamBehaviour::Body("{".to_owned()),
        UpstreamBehaviour::Drop,
    ];
    for flow in Flow::ALL {
        let body = flow.body();
        for behaviour in &behaviours {
            upstream.set_behaviour(behaviour.clone());
            let answer = backend.open_flow_once(flow.name(), flow, &body).await;
            assert_eq!(answer.status, 502, "{flow:?} {behaviour:?}: {}", answer.text);
            assert_eq!(answer.refusal(502), "upstream_failed");
            assert_discloses_nothing(&answer);
            assert_not_opened(&flow_of_last_order(&upstream, flow, &backend), &backend, &connector).await;
        }
        upstream.set_behaviour(UpstreamBehaviour::Accept);
        let first = backend.open_flow_once(flow.name(), flow, &body).await;
        first.ok();
        upstream.set_behaviour(UpstreamBehaviour::Status(500));
        assert_eq!(
            backend.open_flow_once(flow.name(), flow, &body).await.text,
            first.text,
            "a used key orders nothing"
        );
    }
    assert_eq!(upstream.orders().len(), Flow::ALL.len() * (behaviours.len() + 1), "no order is retried");
}

#[tokio::test]
async fn an_upstream_response_against_the_contract_gives_502() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let (backend, connector) = (node.backend_with_credits(0).await, node.connector());
    let url = format!("https://upstream.example/{CAPABILITY}");
    // Flow, and a response of its upstream.
    let cases = [
        (Flow::Esign, json!({})),
        (Flow::Esign, json!({"signerInfo": []})),
        (
            Flow::Esign,
            json!({"signerInfo": [{"signerId": "nobody", "signingUrl": url}, {"signerId": "nobody-else",
                "signingUrl": url}]}),
        ),
        (Flow::DocLocker, json!({})),
        (Flow::DocLocker, json!({"requestUrl": null})),
        (Flow::DocLocker, json!({"requestUrl": 7})),
        (Flow::DocLocker, json!({"requestUrl": "javascript:alert(1)"})),
        (Flow::DocLocker, json!({"requestUrl": "no address"})),
        (Flow::Wealth, json!({})),
        (Flow::Wealth, json!({"consentHandle": ""})),
        (Flow::Wealth, json!({"consentHandle": "two words"})),
        (Flow::Wealth, json!({"consentHandle": "handle-1", "requestUrl": "javascript:alert(1)"})),
    ];
    for (flow, response) in cases {
        upstream.set_behaviour(UpstreamBehaviour::Body(response.to_string()));
        let answer = backend.try_open_flow(flow, &flow.body()).await;
        assert_eq!(answer.refusal(502), "upstream_failed", "{response}");
        assert_discloses_nothing(&answer);
        assert_not_opened(&flow_of_last_order(&upstream, flow, &backend), &backend, &connector).await;
    }
}

#[tokio::test]
async fn a_slow_upstream_gives_504_and_opens_no_flow() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[("UPSTREAMS__TIMEOUT_MS", "400")]).await;
    let (backend, connector) = (node.backend_with_credits(0).await, node.connector());
    for flow in Flow::ALL {
        upstream.set_behaviour(UpstreamBehaviour::Hang);
        // A pause of the machine may outlast the limit before the order arrives.
        let elapsed = eventually("an order without an answer", TIMEOUT, || async {
            let (earlier_orders, started) = (upstream.orders().len(), Instant::now());
            let answer = backend.try_open_flow(flow, &flow.body()).await;
            let elapsed = started.elapsed();
            assert_eq!(answer.refusal(504), "upstream_timed_out", "{flow:?}");
            (upstream.orders().len() > earlier_orders).then_some(elapsed)
        })
        .await;
        assert!(elapsed >= Duration::from_millis(350), "{elapsed:?}");
        assert_within(elapsed, Duration::from_secs(5), "the timeout of an upstream");
        assert_not_opened(&flow_of_last_order(&upstream, flow, &backend), &backend, &connector).await;
        upstream.set_behaviour(UpstreamBehaviour::SlowAnswer(Duration::from_millis(50)));
        let opened = eventually("an answer in time", TIMEOUT, || async {
            let answer = backend.try_open_flow(flow, &flow.body()).await;
            (answer.status != 504).then_some(answer)
        });
        opened.await.ok();
    }
}

#[tokio::test]
async fn an_unreachable_upstream_gives_502() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    drop(upstream);
    for flow in Flow::ALL {
        assert_eq!(backend.try_open_flow(flow, &flow.body()).await.refusal(502), "upstream_failed");
    }
}

#[tokio::test]
async fn an_order_does_not_follow_a_redirect() {
    let upstream = Upstream::start().await;
    let node = TestNode::ordering_from(&upstream, &[]).await;
    let backend = node.backend_with_credits(0).await;
    let elsewhere = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
    upstream.set_behaviour(UpstreamBehaviour::Redirect(elsewhere.url("/orders")));
    for flow in Flow::ALL {
        assert_eq!(backend.try_open_flow(flow, &flow.body()).await.refusal(502), "upstream_failed");
    }
    assert!(elsewhere.received().is_empty(), "the token and the person's data stay with the upstream");
}

#[tokio::test]
async fn a_slow_upstream_does_not_delay_other_flows() {
    let (slow, healthy) = (Upstream::start().await, Upstream::start().await);
    let mut node = TestNode::unlaunched(&[("SERVER__WORKERS", "1"), ("SERVER__DRAIN_TIMEOUT_S", "1")]);
    for (key, value) in healthy.settings() {
        node.set(&key, &value);
    }
    node.set("UPSTREAMS__WEALTH_URL", &slow.url("wealth"));
    node.launch().await;
    let backend = node.backend_with_credits(1).await;
    slow.set_behaviour(UpstreamBehaviour::Hang);
    let hanging: Vec<_> = (0..64)
        .map(|_| {
            let backend = backend.clone();
            tokio::spawn(async move {
                Answer::attempt(backend.flow_request(Flow::Wealth, &Flow::Wealth.body())).await.is_ok()
            })
        })
        .collect();
    // One client can use half of the slots.
    slow.wait_for_orders(32).await;
    let started = Instant::now();
    backend.open_flow(Flow::DocLocker).await;
    backend.open(&["name"]).await;
    assert_within(started.elapsed(), Duration::from_secs(2), "other flows beside a slow upstream");
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_flow_without_an_upstream_gets_501_outside_the_sandbox() {
    let keys = tempfile::tempdir().expect("a directory");
    let mut settings = production_settings(&write_intent_key(keys.path()));
    // The last value of a setting counts.
    settings.push(("PROFILE", "stage".to_owned()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(key, value)| (*key, value.as_str())).collect();
    let node = TestNode::start_with(&settings).await;
    let backend = node.backend_with_credits(1).await;
    for flow in Flow::ALL {
        assert_eq!(backend.try_open_flow(flow, &flow.body()).await.refusal(501), "not_offered", "{flow:?}");
    }
    for (kind, body) in [
        ("pan", json!({"pan": "ABCPE1234F"})),
        ("gst", json!({"gstin": "27AAPFU0939F1ZV"})),
        ("bank-account", json!({"account_number": "123456789012", "ifsc": "EXMP0001234"})),
        ("ifsc", json!({"ifsc": "EXMP0001234"})),
        ("voter-id", json!({"epic_number": "ABC1234567"})),
    ] {
        assert_eq!(backend.post(&format!("/api/v1/{kind}/verify"), &body).await.refusal(501), "not_offered", "{kind}");
    }
    assert_eq!(backend.get("/api/v1/credits").await.ok()["balance"], Value::from(1));
}
