//! The sandbox's own upstreams: a developer chooses the outcome of a flow by a request or on its page. The report takes
//! the same route as any connector's.

use reqwest::Method;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::flow::{Flow, OpenedFlow};
use sakshi_kit::flow_fixture::{API_TYPES, STREAMS};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::TIMEOUT;

/// A client of a sandbox node that has registered all its URLs.
struct Sandbox {
    node: TestNode,
    backend: Backend,
    receiver: WebhookReceiver,
}

impl Sandbox {
    async fn start() -> Self {
        let node = TestNode::start().await;
        let backend = node.backend_with_credits(0).await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
        for api_type in API_TYPES {
            backend.register(api_type, &receiver.url(&format!("/secret-path/{api_type}"))).await;
        }
        let urls = STREAMS.map(|stream| Some(receiver.url(&format!("/secret-path/{stream}"))));
        node.operator().wealth_urls(&backend.app, urls).await;
        Self { node, backend, receiver }
    }

    /// Chooses the outcome of a flow, as a developer does, and returns the answer.
    async fn choose_outcome(&self, opened: &OpenedFlow, outcome: &str) -> Answer {
        let url = self.node.addresses.public(&format!("/sandbox/flows/{}/{}", opened.flow.name(), opened.id));
        Answer::receive(self.node.http.request(Method::POST, url).json(&json!({"outcome": outcome}))).await
    }

    /// Chooses an outcome, and returns the kinds of the reports that the sandbox made. All must be accepted.
    async fn report_outcome(&self, opened: &OpenedFlow, outcome: &str) -> Vec<String> {
        let answer = self.choose_outcome(opened, outcome).await.ok();
        let rows = answer["reported"].as_array().expect("reports");
        assert!(rows.iter().all(|row| row["status"] == 200), "{outcome}: {answer}");
        rows.iter().map(|row| row["kind"].as_str().expect("a kind").to_owned()).collect()
    }

    /// Returns the webhooks, which must be exactly `count`.
    async fn webhooks(&self, count: usize) -> Vec<Value> {
        let requests = self.receiver.wait_for(count, TIMEOUT).await;
        assert_eq!(requests.len(), count);
        requests.iter().map(|request| serde_json::from_slice(&request.body).expect("JSON")).collect()
    }
}

#[tokio::test]
async fn each_sandbox_outcome_ends_its_flow_accordingly() {
    let sandbox = Sandbox::start().await;
    // Flow, chosen outcome, and a member of the webhook with its value.
    let cases = [
        (Flow::Esign, "completed", "/documentStatus", json!("Completed")),
        (Flow::Esign, "rejected", "/documentStatus", json!("Rejected")),
        (Flow::Esign, "expired", "/documentStatus", json!("Expired")),
        (Flow::DocLocker, "fetched", "/data/docs/0/status", json!("Fetched")),
        (Flow::DocLocker, "partly", "/success", json!(true)),
        (Flow::DocLocker, "failed", "/success", json!(false)),
        (Flow::EStamp, "completed", "/data/workflowStatus", json!("Completed")),
        (Flow::EStamp, "rejected", "/data/workflowStatus", json!("Rejected")),
        (Flow::EStamp, "expired", "/data/workflowStatus", json!("Expired")),
    ];
    for (number, (flow, outcome, pointer, value)) in (1..).zip(cases) {
        let opened = sandbox.backend.open_flow(flow).await;
        sandbox.report_outcome(&opened, outcome).await;
        let body = &sandbox.webhooks(number).await[number - 1];
        assert_eq!(body.pointer(pointer), Some(&value), "{outcome}: {body}");
        if matches!(flow, Flow::Esign | Flow::DocLocker) {
            assert_eq!(&sandbox.backend.poll(&opened).await.ok(), body);
        }
    }
    for (flow, outcome) in [(Flow::Esign, "signed-once"), (Flow::EStamp, "pending")] {
        let opened = sandbox.backend.open_flow(flow).await;
        sandbox.report_outcome(&opened, outcome).await;
        assert!(sandbox.node.operator().deliveries(&opened.id).await.is_empty(), "{outcome} ends no flow");
    }
    sandbox.webhooks(9).await;
}

#[tokio::test]
async fn signers_sign_in_order() {
    let sandbox = Sandbox::start().await;
    let opened = sandbox.backend.open_flow(Flow::Esign).await;
    sandbox.report_outcome(&opened, "signed-once").await;
    let poll = sandbox.backend.poll(&opened).await.ok();
    let statuses = |body: &Value| -> Vec<String> {
        let signers = body["signerInfo"].as_array().expect("signers");
        signers.iter().map(|signer| signer["signerStatus"].as_str().expect("a status").to_owned()).collect()
    };
    assert_eq!(
        (&poll["pending"], statuses(&poll["data"])),
        (&json!(true), vec!["Completed".to_owned(), "Pending".to_owned()])
    );
    sandbox.report_outcome(&opened, "signed-once").await;
    let body = &sandbox.webhooks(1).await[0];
    assert_eq!((&body["documentStatus"], statuses(body)), (&json!("Completed"), vec!["Completed".to_owned(); 2]));
}

#[tokio::test]
async fn wealth_outcomes_send_the_webhooks_of_their_streams() {
    let sandbox = Sandbox::start().await;
    let mut webhook_count = 0;
    for (outcome, kind, member, value) in [
        ("accepted", "wealth-consent", "status", "Accepted"),
        ("rejected", "wealth-consent", "status", "Rejected"),
        ("revoked", "wealth-consent", "status", "Revoked"),
        ("expiring-soon", "wealth-consent", "status", "Expiring Soon"),
        ("expired", "wealth-consent", "status", "Expired"),
        ("raw", "wealth-data", "dataType", "RAW"),
        ("analysed", "wealth-data", "dataType", "ANALYSED"),
        ("data-failed", "wealth-data", "fiDataStatus", "FAILED"),
        ("historical", "wealth-historical", "status", "HISTORICAL_DATA_FETCH_SUCCESS"),
        ("historical-partial", "wealth-historical", "status", "HISTORICAL_DATA_FETCH_PARTIAL_SUCCESS"),
        ("historical-failed", "wealth-historical", "status", "HISTORICAL_DATA_FETCH_FAILED"),
    ] {
        let opened = sandbox.backend.open_flow(Flow::Wealth).await;
        let kinds = sandbox.report_outcome(&opened, outcome).await;
        assert_eq!(kinds.last().map(String::as_str), Some(kind), "{outcome}");
        webhook_count += kinds.len();
        let bodies = sandbox.webhooks(webhook_count).await;
        let new_bodies: Vec<&Value> = bodies[webhook_count - kinds.len()..].iter().collect();
        assert!(new_bodies.iter().any(|body| body[member] == value), "{outcome}: {new_bodies:?}");
        assert!(new_bodies.iter().all(|body| body["uniqueIdentifier"] == opened.id), "{outcome}");
    }
    let opened = sandbox.backend.open_flow(Flow::Wealth).await;
    let kinds = sandbox.report_outcome(&opened, "all").await;
    for kind in STREAMS {
        assert!(kinds.iter().any(|reported| reported == kind), "all has no {kind}: {kinds:?}");
    }
    sandbox.webhooks(webhook_count + kinds.len()).await;
}

#[tokio::test]
async fn unknown_outcomes_and_flows_are_refused_and_report_nothing() {
    let sandbox = Sandbox::start().await;
    let opened = sandbox.backend.open_flow(Flow::Esign).await;
    for outcome in ["fetched", "", "COMPLETED", "signed"] {
        assert_eq!(sandbox.choose_outcome(&opened, outcome).await.status, 400, "{outcome}");
    }
    let mut other = opened.clone();
    other.flow = Flow::EStamp;
    assert_eq!(sandbox.choose_outcome(&other, "completed").await.status, 404, "the id belongs to another kind of flow");
    other.flow = Flow::Esign;
    other.id = uuid::Uuid::new_v4().to_string();
    assert_eq!(sandbox.choose_outcome(&other, "completed").await.status, 404);
    assert_eq!(sandbox.backend.poll(&opened).await.ok()["pending"], true);
    assert!(sandbox.receiver.received().is_empty());
}

#[tokio::test]
async fn a_persons_url_leads_to_a_page_of_the_node_without_scripts() {
    let sandbox = Sandbox::start().await;
    let (esign, locker) =
        (sandbox.backend.open_flow(Flow::Esign).await, sandbox.backend.open_flow(Flow::DocLocker).await);
    let stamp = sandbox.backend.open_flow(Flow::EStamp).await;
    let wealth = sandbox.backend.open_flow(Flow::Wealth).await;
    let url = |value: &Value| value.as_str().expect("a URL").to_owned();
    let pages = [
        url(&esign.answer["signerInfo"][0]["signingUrl"]),
        url(&esign.answer["signerInfo"][1]["signingUrl"]),
        url(&locker.answer["requestUrl"]),
        sandbox.node.addresses.public(&format!("/sandbox/estamp/{}", stamp.id)),
        sandbox.node.addresses.public(&format!("/sandbox/wealth/{}", wealth.id)),
        sandbox.node.addresses.public("/sandbox/flows"),
    ];
    for page in pages {
        assert!(page.starts_with(&sandbox.node.addresses.public("/sandbox/")), "{page}");
        let answer = Answer::receive(sandbox.node.http.get(&page)).await;
        assert_eq!(answer.status, 200, "{page}");
        assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")), "{page}");
        assert!(!answer.text.contains("<script"), "{page}");
    }
}
