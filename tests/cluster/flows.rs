//! Flows across nodes: every node accepts reports and answers polls, and each webhook is sent once.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use sakshi_kit::backend::Backend;
use sakshi_kit::connector::{Connector, result_of};
use sakshi_kit::event::timestamp_in;
use sakshi_kit::flow::Flow;
use sakshi_kit::flow_fixture::body_of;
use sakshi_kit::goldens::*;
use sakshi_kit::upstream::Upstream;
use sakshi_kit::waiting::TIMEOUT;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::json;

use crate::nodes::Nodes;

/// Number of documents that expire at one moment.
const DOCUMENTS: u32 = 24;

/// Three nodes, one upstream for all, and a receiver of one app's webhooks.
struct Site {
    nodes: Nodes,
    backend: Backend,
    receiver: WebhookReceiver,
    upstream: Upstream,
}

impl Site {
    /// Starts the servers, and registers a webhook URL for each API, at another node each.
    async fn start(settings: &[(&str, &str)]) -> Self {
        let upstream = Upstream::start().await;
        let upstream_settings = upstream.settings();
        let upstream_settings = upstream_settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let nodes = Nodes::start_with(&upstream_settings.chain(settings.iter().copied()).collect::<Vec<_>>()).await;
        let backend = nodes.backend(0).await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
        for (number, api_type) in ["ESign", "DocLocker", "RegistryEStamp"].into_iter().enumerate() {
            backend.through(&nodes.all[number].addresses).register(api_type, &receiver.url("/secret-path")).await;
        }
        Self { nodes, backend, receiver, upstream }
    }

    /// Returns the backend with the addresses of a node.
    fn backend_at(&self, node: usize) -> Backend {
        self.backend.through(&self.nodes.all[node % 3].addresses)
    }

    /// Returns a connector that calls a node.
    fn connector_at(&self, node: usize) -> Connector {
        self.nodes.all[node % 3].connector()
    }

    /// Returns the outcomes of the webhooks of a flow, as a node shows them.
    async fn outcomes(&self, node: usize, flow: &str) -> Vec<String> {
        self.nodes.all[node % 3].operator().outcomes(flow).await
    }
}

#[tokio::test]
async fn a_report_to_one_node_is_visible_on_every_node_immediately() {
    let site = Site::start(&[]).await;
    for round in 0..12 {
        let opened = site.backend_at(round).open_flow(Flow::Esign).await;
        for node in 0..3 {
            assert_eq!(
                site.backend_at(node).poll(&opened).await.ok()["pending"],
                true,
                "every node now has a live copy"
            );
        }
        site.connector_at(round + 1).report_new("esign", &half_signed(&opened)).await;
        for node in 0..3 {
            assert_eq!(
                site.backend_at(node).poll(&opened).await.text,
                opened.expected_body(ESIGN_PENDING),
                "round {round}, node {node}"
            );
        }
        site.connector_at(round + 2).report_new("esign", &opened.report(ESIGN_COMPLETED)).await;
        for node in 0..3 {
            assert_eq!(
                site.backend_at(node).poll(&opened).await.text,
                opened.expected_body(ESIGN_COMPLETED),
                "round {round}, node {node}"
            );
            site.connector_at(node).report_again("esign", &opened.report(ESIGN_COMPLETED)).await;
        }
        assert_eq!(site.outcomes(round, &opened.id).await, ["delivered"]);
    }
    assert_eq!(site.receiver.wait_for(12, TIMEOUT).await.len(), 12);
    assert_eq!(site.upstream.orders().len(), 12);
}

#[tokio::test]
async fn an_idempotent_answer_is_replayed_despite_the_lease_of_a_killed_node() {
    // As long as a real one: the first node may still be giving back its own lease.
    const HOLDER: &str = "a node that died";
    let site = Site::start(&[]).await;
    let body = Flow::Wealth.body();
    let first = site.backend_at(0).open_flow_once("order-1", Flow::Wealth, &body).await;
    first.ok();
    let redis = &site.nodes.redis;
    // Ids within names are bytes, as the script expects.
    let eval_on_lease = |command: &str| {
        let find_lease = "local answers = redis.call('KEYS', '*}idempotency:*') \
             local lease = string.gsub(answers[1], '}idempotency:', '}order_lease:')";
        redis.answer(&["EVAL", &format!("{find_lease} {command}"), "0"])
    };
    let stored = eval_on_lease(&format!(
        "redis.call('HSET', lease, 'version', '1', 'holder', '{HOLDER}') return tostring(#answers)"
    ));
    assert_eq!(stored.text().as_deref(), Some("1"), "one answer is stored");
    let again = site.backend_at(1).open_flow_once("order-1", Flow::Wealth, &body).await;
    assert_eq!((again.status, &again.text), (200, &first.text));
    assert_eq!(site.upstream.orders().len(), 1);
    let holder = eval_on_lease("return redis.call('HGET', lease, 'holder')");
    assert_eq!(holder.text().as_deref(), Some(HOLDER), "the lease still exists");
}

#[tokio::test]
async fn a_report_raced_on_three_nodes_is_accepted_once_and_sends_one_webhook() {
    let site = Site::start(&[]).await;
    for round in 0..20 {
        let (flow, golden) = [(Flow::DocLocker, DOCLOCKER_FETCHED), (Flow::EStamp, ESTAMP_COMPLETED)][round % 2];
        let opened = site.backend_at(round).open_flow(flow).await;
        let report = opened.report(golden);
        let answers = join_all((0..6).map(|node| {
            let (connector, report) = (site.connector_at(node), &report);
            async move { result_of(&connector.report(flow.kind(), report).await) }
        }))
        .await;
        assert_eq!(answers.iter().filter(|answer| *answer == "accepted").count(), 1, "{answers:?}");
        for node in 0..3 {
            assert_eq!(site.outcomes(node, &opened.id).await, ["delivered"]);
        }
        assert_eq!(site.receiver.wait_for(round + 1, TIMEOUT).await.len(), round + 1);
    }
}

#[tokio::test]
async fn one_of_two_contradicting_reports_stands_on_every_node() {
    let site = Site::start(&[]).await;
    for round in 0..20 {
        let opened = site.backend_at(round).open_flow(Flow::Esign).await;
        let ([first, second], [signed, refused]) = (
            [1, 2].map(|node| site.connector_at(round + node)),
            [ESIGN_COMPLETED, ESIGN_REJECTED].map(|golden| opened.report(golden)),
        );
        let (signed, refused) = tokio::join!(first.report("esign", &signed), second.report("esign", &refused));
        let mut statuses = [signed.status, refused.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{} {}", signed.text, refused.text);
        let expected = opened.expected_body(if signed.status == 200 { ESIGN_COMPLETED } else { ESIGN_REJECTED });
        for node in 0..3 {
            assert_eq!(site.backend_at(node).poll(&opened).await.text, expected);
        }
        assert_eq!(body_of(&site.receiver.wait_for(round + 1, TIMEOUT).await[round]), expected);
        assert_eq!(site.outcomes(round, &opened.id).await, ["delivered"]);
    }
    assert_eq!(site.receiver.received().len(), 20);
}

#[tokio::test]
async fn a_document_expires_once_although_three_nodes_look_for_it() {
    let site = Site::start(&[]).await;
    let mut flows = Vec::new();
    // All documents expire at one moment, after the last one is opened on a machine as busy as this one.
    let began = Instant::now();
    let opened = site.backend_at(0).open_flow(Flow::Esign).await;
    site.connector_at(1).report_new("esign", &half_signed(&opened)).await;
    let until_expiry = Duration::from_secs(5) + began.elapsed() * DOCUMENTS * 4;
    let expires_at = json!(timestamp_in(until_expiry));
    for number in 0..DOCUMENTS as usize {
        let body = Flow::Esign.body_with(&[("/signerInfo/1/invitationExpireTimeStamp", Some(expires_at.clone()))]);
        let opened = site.backend_at(number).open_flow_with(Flow::Esign, &body).await;
        site.connector_at(number + 1).report_new("esign", &half_signed(&opened)).await;
        flows.push(opened);
    }
    let arrived = site.receiver.wait_for(flows.len(), until_expiry + TIMEOUT).await;
    assert_eq!(arrived.len(), flows.len());
    for (number, opened) in flows.iter().enumerate() {
        let expected = opened.expected_body(ESIGN_EXPIRED);
        assert_eq!(arrived.iter().filter(|webhook| body_of(webhook) == expected).count(), 1);
        for node in 0..3 {
            assert_eq!(site.backend_at(node).poll(opened).await.text, expected);
        }
        site.connector_at(number).report_again("esign", &opened.report(ESIGN_EXPIRED)).await;
        assert_eq!(site.outcomes(number, &opened.id).await, ["delivered"]);
    }
    assert_eq!(site.receiver.received().len(), flows.len());
}

#[tokio::test]
async fn one_idempotency_key_at_three_nodes_orders_and_opens_one_flow() {
    let site = Site::start(&[]).await;
    for (round, flow) in Flow::ALL.into_iter().enumerate() {
        let (key, body) = (format!("key-{}", flow.name()), flow.body());
        let answers = join_all((0..18).map(|node| {
            let (backend, key, body) = (site.backend_at(node), &key, &body);
            async move { backend.open_flow_once(key, flow, body).await }
        }))
        .await;
        assert!(
            answers.iter().all(|answer| answer.status == 200 && answer.text == answers[0].text),
            "every answer is the same"
        );
        assert_eq!(site.upstream.orders().len(), round + 1, "{}: one order in all", flow.name());
        assert_eq!(site.backend_at(1).open_flow_once(&key, flow, &body).await.text, answers[0].text);
        assert_eq!(site.upstream.orders().len(), round + 1, "a replay orders nothing");
    }
}

#[tokio::test]
async fn a_url_registered_on_one_node_is_used_for_a_report_on_another() {
    let site = Site::start(&[]).await;
    for round in 0..9 {
        let opened = site.backend_at(round).open_flow(Flow::EStamp).await;
        let path = format!("/secret-path/{round}");
        site.backend_at(round + 1).register("RegistryEStamp", &site.receiver.url(&path)).await;
        site.connector_at(round + 2).report_new("estamp", &opened.report(ESTAMP_REJECTED)).await;
        assert_eq!(site.receiver.wait_for(round + 1, TIMEOUT).await[round].path, path);
    }
}

#[tokio::test]
async fn another_node_sends_the_flow_webhooks_that_a_dead_node_had_queued() {
    let mut site = Site::start(&[("WEBHOOKS__MAX_IN_FLIGHT_PER_HOST", "1")]).await;
    site.receiver.set_behaviour(Behaviour::Hang);
    let mut flows = Vec::new();
    for _ in 0..6 {
        let opened = site.backend.open_flow(Flow::DocLocker).await;
        site.connector_at(2).report_new("doclocker", &opened.report(DOCLOCKER_FAILED)).await;
        flows.push(opened);
    }
    assert_eq!(
        site.receiver.wait_for(1, TIMEOUT).await.len(),
        1,
        "one is in flight, five are queued, all at the third node"
    );
    site.nodes.all[2].kill().await;
    site.receiver.set_behaviour(Behaviour::Answer(200));
    let arrived = site.receiver.wait_for(6, TIMEOUT).await;
    assert_eq!(arrived.len(), 6, "another node sends the five queued webhooks");
    let mut outcomes = Vec::new();
    for opened in &flows {
        assert_eq!(
            arrived.iter().filter(|webhook| body_of(webhook) == opened.expected_body(DOCLOCKER_FAILED)).count(),
            1,
            "each arrives once"
        );
        outcomes.extend(site.outcomes(0, &opened.id).await);
    }
    outcomes.sort_unstable();
    assert_eq!(outcomes, [vec!["delivered"; 5], vec!["unknown"]].concat());
    site.nodes.all[2].launch().await;
}
