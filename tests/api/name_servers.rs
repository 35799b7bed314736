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

/// A node whose only name server is the test's own, and a receiver of its webhooks.
struct Fixture {
    name_server: NameServer,
    node: TestNode,
    backend: Backend,
    identity_app: Arc<IdentityApp>,
    receiver: WebhookReceiver,
}

impl Fixture {
    /// Starts with a name server that gives this answer.
    async fn start(answer: DnsAnswer) -> Self {
        let (name_server, mut node) = (NameServer::start(answer), TestNode::unlaunched(&[]));
        node.launch_with_name_server(&name_server).await;
        let (backend, identity_app) = (node.backend_with_credits(20).await, Arc::new(node.identity_app()));
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
        Self { name_server, node, backend, identity_app, receiver }
    }

    /// Completes a transaction with a webhook to this host.
    async fn complete(&self, host: &str) -> Opened {
        let url = format!("http://{host}:{}/hook", self.receiver.address().port());
        let opened = self.backend.open_reported(&["name"], &url).await;
        self.identity_app.approve(&opened, "asha").await;
        opened
    }

    /// Completes two transactions for each host.
    async fn complete_twice(&self, hosts: &[&str]) -> Vec<Opened> {
        let mut transactions = Vec::new();
        for host in hosts.iter().chain(hosts) {
            transactions.push(self.complete(host).await);
        }
        transactions
    }

    /// Returns the delivery of a transaction, perhaps before its attempt.
    async fn delivery(&self, opened: &Opened) -> Value {
        self.node.operator().get(&format!("/admin/v1/transactions/{}/delivery", opened.txn)).await.ok()
    }

    /// Waits until the node asks the name server again.
    async fn wait_for_question(&self) {
        let before = self.name_server.question_count();
        eventually("another question", TIMEOUT, || async {
            (self.name_server.question_count() > before).then_some(())
        })
        .await;
    }

    /// Checks that the webhook of each transaction is delivered exactly once.
    async fn assert_delivered(&self, transactions: &[Opened]) {
        for opened in transactions {
            let attempt = self.node.operator().delivery(&opened.txn).await["attempt"].clone();
            assert_eq!((&attempt["outcome"], &attempt["sent"]), (&json!("delivered"), &json!("yes")), "{attempt}");
            let txn = opened.txn.as_bytes();
            let received = self.receiver.received();
            let count =
                received.iter().filter(|request| request.body.windows(txn.len()).any(|part| part == txn)).count();
            assert_eq!(count, 1, "{}", opened.txn);
        }
    }
}

#[tokio::test]
async fn webhooks_wait_for_failing_name_servers_and_are_sent_once() {
    let fixture = Fixture::start(DnsAnswer::Failure).await;
    let transactions = fixture.complete_twice(&["a.example", "b.example", "c.example"]).await;
    fixture.wait_for_question().await;
    let healthy = fixture.complete("127.0.0.1").await;
    fixture.assert_delivered(&[healthy]).await;
    for opened in &transactions {
        let delivery = fixture.delivery(opened).await;
        assert_eq!((&delivery["claimed_at"], &delivery["attempt"]), (&Value::Null, &Value::Null), "{delivery}");
    }
    fixture.name_server.set_answer(LOOPBACK);
    fixture.assert_delivered(&transactions).await;
}

#[tokio::test]
async fn a_nonexistent_name_fails_a_webhook_for_good() {
    let fixture = Fixture::start(DnsAnswer::NxDomain).await;
    let opened = fixture.complete("a.example").await;
    let attempt = fixture.node.operator().delivery(&opened.txn).await["attempt"].clone();
    assert_eq!((&attempt["outcome"], &attempt["sent"]), (&json!("unresolved"), &json!("no")), "{attempt}");
    fixture.name_server.set_answer(LOOPBACK);
    let next = fixture.complete("a.example").await;
    fixture.assert_delivered(&[next]).await;
    assert_eq!(fixture.receiver.received().len(), 1);
}

#[tokio::test]
async fn webhooks_without_a_dns_answer_in_time_are_unresolved() {
    let (name_server, mut node) =
        (NameServer::start(DnsAnswer::Silence), TestNode::unlaunched(&[("WEBHOOKS__TIMEOUT_MS", "1000")]));
    node.set("WEBHOOKS__CONNECT_TIMEOUT_MS", "1000");
    node.launch_with_name_server(&name_server).await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
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
    let transactions = fixture.complete_twice(&["a.example"]).await;
    fixture.wait_for_question().await;
    let process = fixture.node.take_process();
    process.signal("TERM");
    fixture.node.conclude(&process);
    assert!(fixture.receiver.received().is_empty());
    fixture.name_server.set_answer(LOOPBACK);
    fixture.node.launch_with_name_server(&fixture.name_server).await;
    fixture.assert_delivered(&transactions).await;
}
