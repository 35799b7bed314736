//! The sandbox's own upstreams: a developer drives every flow by a word or by its page, and the report
//! comes through the same door as any connector's.

use reqwest::Method;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::flow::{Begun, Flow};
use sakshi_kit::office::{API_TYPES, STREAMS};
use sakshi_kit::universe::Universe;
use sakshi_kit::waiting::PLENTY;

/// A client of a sandbox node that has registered everything.
struct Visit {
    universe: Universe,
    backend: Backend,
    receiver: WebhookReceiver,
}

impl Visit {
    async fn begin() -> Self {
        let universe = Universe::start().await;
        let backend = universe.backend(0).await;
        let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.expect("a port");
        for api_type in API_TYPES {
            backend.register(api_type, &receiver.url(&format!("/secret-path/{api_type}"))).await;
        }
        let urls = STREAMS.map(|stream| Some(receiver.url(&format!("/secret-path/{stream}"))));
        universe.operator().wealth_urls(&backend.app, urls).await;
        Self { universe, backend, receiver }
    }

    async fn drive(&self, begun: &Begun, outcome: &str) -> Answer {
        let url = self.universe.reach.public(&format!("/sandbox/flows/{}/{}", begun.flow.name(), begun.id));
        Answer::to(self.universe.http.request(Method::POST, url).json(&json!({"outcome": outcome}))).await
    }

    /// The kinds of the reports that an outcome made, each of which must have been taken.
    async fn reported(&self, begun: &Begun, outcome: &str) -> Vec<String> {
        let answer = self.drive(begun, outcome).await.ok();
        let rows = answer["reported"].as_array().expect("reports");
        assert!(rows.iter().all(|row| row["status"] == 200), "{outcome}: {answer}");
        rows.iter().map(|row| row["kind"].as_str().expect("a kind").to_owned()).collect()
    }

    /// The webhooks once there are so many, which must be all.
    async fn webhooks(&self, count: usize) -> Vec<Value> {
        let arrived = self.receiver.wait_for(count, PLENTY).await;
        assert_eq!(arrived.len(), count);
        arrived.iter().map(|one| serde_json::from_slice(&one.body).expect("JSON")).collect()
    }
}

#[tokio::test]
async fn each_word_ends_its_flow_as_it_says() {
    let visit = Visit::begin().await;
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
        let begun = visit.backend.begin(flow).await;
        visit.reported(&begun, outcome).await;
        let body = &visit.webhooks(number).await[number - 1];
        assert_eq!(body.pointer(pointer), Some(&value), "{outcome}: {body}");
        if matches!(flow, Flow::Esign | Flow::DocLocker) {
            assert_eq!(&visit.backend.poll(&begun).await.ok(), body);
        }
    }
    for (flow, outcome) in [(Flow::Esign, "signed-once"), (Flow::EStamp, "pending")] {
        let begun = visit.backend.begin(flow).await;
        visit.reported(&begun, outcome).await;
        assert!(visit.universe.operator().deliveries(&begun.id).await.is_empty(), "{outcome} ends nothing");
    }
    visit.webhooks(9).await;
}

#[tokio::test]
async fn signers_sign_in_their_order() {
    let visit = Visit::begin().await;
    let begun = visit.backend.begin(Flow::Esign).await;
    visit.reported(&begun, "signed-once").await;
    let poll = visit.backend.poll(&begun).await.ok();
    let statuses = |body: &Value| -> Vec<String> {
        let signers = body["signerInfo"].as_array().expect("signers");
        signers.iter().map(|signer| signer["signerStatus"].as_str().expect("a status").to_owned()).collect()
    };
    assert_eq!((&poll["pending"], statuses(&poll["data"])), (&json!(true), vec!["Completed".to_owned(), "Pending".to_owned()]));
    visit.reported(&begun, "signed-once").await;
    let body = &visit.webhooks(1).await[0];
    assert_eq!((&body["documentStatus"], statuses(body)), (&json!("Completed"), vec!["Completed".to_owned(); 2]));
}

#[tokio::test]
async fn the_words_of_wealth_data_send_the_webhooks_of_their_streams() {
    let visit = Visit::begin().await;
    let mut arrived = 0;
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
        let begun = visit.backend.begin(Flow::Wealth).await;
        let kinds = visit.reported(&begun, outcome).await;
        assert_eq!(kinds.last().map(String::as_str), Some(kind), "{outcome}");
        arrived += kinds.len();
        let bodies = visit.webhooks(arrived).await;
        let of_this: Vec<&Value> = bodies[arrived - kinds.len()..].iter().collect();
        assert!(of_this.iter().any(|body| body[member] == value), "{outcome}: {of_this:?}");
        assert!(of_this.iter().all(|body| body["uniqueIdentifier"] == begun.id), "{outcome}");
    }
    let begun = visit.backend.begin(Flow::Wealth).await;
    let kinds = visit.reported(&begun, "all").await;
    for kind in STREAMS {
        assert!(kinds.iter().any(|reported| reported == kind), "all has no {kind}: {kinds:?}");
    }
    visit.webhooks(arrived + kinds.len()).await;
}

#[tokio::test]
async fn unknown_words_and_flows_are_refused_and_report_nothing() {
    let visit = Visit::begin().await;
    let begun = visit.backend.begin(Flow::Esign).await;
    for outcome in ["fetched", "", "COMPLETED", "signed"] {
        assert_eq!(visit.drive(&begun, outcome).await.status, 400, "{outcome}");
    }
    let mut other = begun.clone();
    other.flow = Flow::EStamp;
    assert_eq!(visit.drive(&other, "completed").await.status, 404, "an id of another flow");
    other.flow = Flow::Esign;
    other.id = uuid::Uuid::new_v4().to_string();
    assert_eq!(visit.drive(&other, "completed").await.status, 404);
    assert_eq!(visit.backend.poll(&begun).await.ok()["pending"], true);
    assert!(visit.receiver.received().is_empty());
}

#[tokio::test]
async fn what_a_person_is_given_is_a_page_of_the_node_without_scripts() {
    let visit = Visit::begin().await;
    let (esign, locker) = (visit.backend.begin(Flow::Esign).await, visit.backend.begin(Flow::DocLocker).await);
    let stamp = visit.backend.begin(Flow::EStamp).await;
    let wealth = visit.backend.begin(Flow::Wealth).await;
    let url = |value: &Value| value.as_str().expect("a URL").to_owned();
    let pages = [
        url(&esign.answer["signerInfo"][0]["signingUrl"]),
        url(&esign.answer["signerInfo"][1]["signingUrl"]),
        url(&locker.answer["requestUrl"]),
        visit.universe.reach.public(&format!("/sandbox/estamp/{}", stamp.id)),
        visit.universe.reach.public(&format!("/sandbox/wealth/{}", wealth.id)),
        visit.universe.reach.public("/sandbox/flows"),
    ];
    for page in pages {
        assert!(page.starts_with(&visit.universe.reach.public("/sandbox/")), "{page}");
        let answer = Answer::to(visit.universe.http.get(&page)).await;
        assert_eq!(answer.status, 200, "{page}");
        assert!(answer.header("content-type").is_some_and(|kind| kind.starts_with("text/html")), "{page}");
        assert!(!answer.text.contains("<script"), "{page}");
    }
}
