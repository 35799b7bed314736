//! Webhooks during a failure of the node's name servers.

use std::net::Ipv4Addr;
use std::sync::Arc;

use sakshi_kit::backend::{Backend, Opened};
use sakshi_kit::identity_app::IdentityApp;
use sakshi_kit::name_server::{DnsAnswer, NameServer};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

const LOOPBACK: DnsAnswer = DnsAnswer::Address(Ipv4Addr::LOCALHOST);

struct Fixture {
    names: NameServer,
    node: TestNode,
    backend: Backend,
    identity_app: Arc<IdentityApp>,
    receiver: WebhookReceiver,
}

impl Fixture {
    async fn start(answer: DnsAnswer) -> Self {
        let (names, mut node) = (NameServer::start(answer), TestNode::unlaunched(&[]));
        node.launch_with_name_server(&names).await;
        let (backend, identity_app) = (node.backend(20).await, Arc::new(node.identity_app()));
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
        Self { names, node, backend, identity_app, receiver }
    }

    /// Completes a transaction with a webhook to this host.
    async fn complete(&self, host: &str) -> Opened {
        let url = format!("http://{host}:{}/hook", self.receiver.address().port());
        let opened = self.backend.open_reported(&["name"], &url).await;
        self.identity_app.approve(&opened, "asha").await;
        opened
    }

    async fn complete_twice(&self, hosts: &[&str]) -> Vec<Opened> {
        let mut all = Vec::new();
        for host in hosts.iter().chain(hosts) {
            all.push(self.complete(host).await);
        }
        all
    }

    async fn delivery(&self, opened: &Opened) -> Value {
        self.node.operator().get(&format!("/admin/v1/transactions/{}/delivery", opened.txn)).await.ok()
    }

    async fn wait_for_question(&self) {
        let before = self.names.question_count();
        eventually("another question", TIMEOUT, || async { (self.names.question_count() > before).then_some(()) })
            .await;
    }

    /// Checks that the webhook of each transaction is delivered exactly once.
    async fn assert_delivered(&self, all: &[Opened]) {
        for opened in all {
            let attempt = self.node.operator().delivery(&opened.txn).await["attempt"].clone();
            assert_eq!((&attempt["outcome"], &attempt["sent"]), (&json!("delivered"), &json!("yes")), "{attempt}");
            let mark = opened.txn.as_bytes();
            let received = self.receiver.received();
            let times =
                received.iter().filter(|request| request.body.windows(mark.len()).any(|part| part == mark)).count();
            assert_eq!(times, 1, "{}", opened.txn);
        }
    }
}

#[tokio::test]
async fn webhooks_wait_for_failing_name_servers_and_are_sent_once() {
    let fixture = Fixture::start(DnsAnswer::Failure).await;
    let all = fixture.complete_twice(&["a.example", "b.example", "c.example"]).await;
    fixture.wait_for_question().await;
    let healthy = fixture.complete("127.0.0.1").await;
    fixture.assert_delivered(&[healthy]).await;
    for opened in &all {
        let delivery = fixture.delivery(opened).await;
        assert_eq!((&delivery["claimed_at"], &delivery["attempt"]), (&Value::Null, &Value::Null), "{delivery}");
    }
    fixture.names.set_answer(LOOPBACK);
    fixture.assert_delivered(&all).await;
}

#[tokio::test]
async fn a_nonexistent_name_fails_a_webhook_for_good() {
    let fixture = Fixture::start(DnsAnswer::NxDomain).await;
    let opened = fixture.complete("a.example").await;
    let attempt = fixture.node.operator().delivery(&opened.txn).await["attempt"].clone();
    assert_eq!((&attempt["outcome"], &attempt["sent"]), (&json!("unresolved"), &json!("no")), "{attempt}");
    fixture.names.set_answer(LOOPBACK);
    let next = fixture.complete("a.example").await;
    fixture.assert_delivered(&[next]).await;
    assert_eq!(fixture.receiver.received().len(), 1);
}

#[tokio::test]
async fn webhooks_without_a_dns_answer_in_time_are_unresolved() {
    let (names, mut node) =
        (NameServer::start(DnsAnswer::Silence), TestNode::unlaunched(&[("WEBHOOKS__TIMEOUT_MS", "1000")]));
    node.set("WEBHOOKS__CONNECT_TIMEOUT_MS", "1000");
    node.launch_with_name_server(&names).await;
    let (backend, identity_app) = (node.backend(2).await, node.identity_app());
    for _ in 0..2 {
        let opened = backend.open_reported(&["name"], "http://a.example/hook").await;
        identity_app.approve(&opened, "asha").await;
        let attempt = node.operator().delivery(&opened.txn).await["attempt"].clone();
        assert_eq!((&attempt["outcome"], &attempt["sent"]), (&json!("unresolved"), &json!("no")), "{attempt}");
        assert!(attempt["duration_ms"].as_u64().unwrap() >= 1_000, "{attempt}");
    }
}

#[tokio::test]
async fn webhooks_waiting_for_a_name_are_sent_after_a_restart() {
    let mut fixture = Fixture::start(DnsAnswer::Silence).await;
    let all = fixture.complete_twice(&["a.example"]).await;
    fixture.wait_for_question().await;
    let process = fixture.node.take_process();
    process.signal("TERM");
    fixture.node.conclude(&process);
    assert!(fixture.receiver.received().is_empty());
    fixture.names.set_answer(LOOPBACK);
    fixture.node.launch_with_name_server(&fixture.names).await;
    fixture.assert_delivered(&all).await;
}
