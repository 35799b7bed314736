//! Limits on requests that cost no credit.

use std::time::Instant;

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;

use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Backend;
use sakshi_kit::event::{EVENTS, IDENTITY_APP, TestEvent, terms};
use sakshi_kit::node::TestNode;

/// Sends `count` requests, one after another, and returns their statuses.
async fn send_for_statuses(count: usize, mut send: impl AsyncFnMut() -> Answer) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(send().await.status);
    }
    statuses
}

/// Sends sixty requests at once and checks that they have one limit: two per second, with a burst of two. Returns the
/// responses in the order of the requests.
pub(crate) async fn assert_share_limit_of_two_per_second<Sent>(send: impl Fn(usize) -> Sent) -> Vec<Answer>
where
    Sent: Future<Output = Answer>,
{
    let started = Instant::now();
    let answers = join_all((0..60).map(send)).await;
    let allowed = answers.iter().filter(|answer| answer.status != 429).count();
    // Two limits would allow twice as many.
    let most = 2 + usize::try_from(started.elapsed().as_millis() / 500).unwrap();
    assert!((1..=most).contains(&allowed), "{allowed} of 60 in {:?}", started.elapsed());
    for refused in answers.iter().filter(|answer| answer.status == 429) {
        assert_eq!(refused.refusal(429), "rate_limited");
        assert!(refused.header("retry-after").is_some());
    }
    answers
}

async fn create_event(organiser: &Backend) -> Answer {
    organiser.post(EVENTS, &terms(5)).await
}

#[tokio::test]
async fn each_client_has_its_own_rate_limit_for_new_events() {
    let node = TestNode::start_with(&[("LIMITS__ORDERS_PER_SECOND_PER_CLIENT", "2")]).await;
    let (organiser, other) = (node.backend_with_credits(1).await, node.backend_with_credits(1).await);
    let created = send_for_statuses(40, async || create_event(&organiser).await).await;
    assert!(created.starts_with(&[200, 200]) && created.contains(&429), "{created:?}");
    assert_eq!(create_event(&other).await.status, 200);
    assert_eq!(
        organiser.init(&json!({"claims": ["name"], "channel": "qr"})).await.status,
        200,
        "paid requests have another limit"
    );
}

#[tokio::test]
async fn an_app_has_at_most_the_events_of_the_settings_or_its_clients_limit() {
    let node = TestNode::start_with(&[("LIMITS__EVENTS_PER_APP", "2")]).await;
    let (organiser, other) = (node.backend_with_credits(1).await, node.backend_with_credits(1).await);
    let change = json!({"events_per_app": 3});
    node.operator().patch(&format!("/admin/v1/clients/{}", other.client), &change).await.ok();
    assert_eq!(send_for_statuses(4, async || create_event(&organiser).await).await, [200, 200, 409, 409]);
    assert_eq!(send_for_statuses(4, async || create_event(&other).await).await, [200, 200, 200, 409]);
    assert_eq!(create_event(&organiser).await.refusal(409), "limit_reached");
}

#[tokio::test]
async fn invalid_keys_are_limited_by_address_and_a_valid_key_still_works() {
    let node = TestNode::start_with(&[("LIMITS__PAGES_PER_SECOND_PER_ADDRESS", "3")]).await;
    let backend = node.backend_with_credits(1).await;
    let invalid = backend.with_credentials("sk_none", &backend.app);
    let refused = send_for_statuses(40, async || invalid.get("/api/v1/credits").await).await;
    assert!(refused.starts_with(&[401, 401, 401]) && refused.contains(&429), "{refused:?}");
    backend.get("/api/v1/credits").await.ok();
}

#[tokio::test]
async fn a_browser_without_fetch_metadata_gets_a_button_and_spends_nothing() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(5).await;
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    let old_browser = || {
        event
            .visit(Method::GET, IDENTITY_APP)
            .header("user-agent", "Mozilla/5.0 (iPhone; CPU iPhone OS 15_0 like Mac OS X)")
    };
    let page = Answer::receive(old_browser()).await;
    assert!(page.status == 200 && page.text.contains("<form method=\"post\""), "{}", page.text);
    assert_eq!(node.operator().balance(&organiser.client).await, 5);
    let intent = Answer::receive(old_browser().header("sec-fetch-site", "none")).await;
    assert!(intent.status == 200 && intent.text.split('.').count() == 3, "{}", intent.text);
    assert_eq!(node.operator().balance(&organiser.client).await, 4);
}
