//! The portal's list of refused requests for developers.

use reqwest::Method;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::INIT;
use sakshi_kit::node::TestNode;
use sakshi_kit::portal::Browser;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

const LIST: &str = "/portal/refusals";

/// Waits until the list contains this request, and returns the page.
async fn wait_for_list_with(browser: &Browser, request_id: &str) -> String {
    eventually("the refusal", TIMEOUT, || async {
        let text = browser.get(LIST).await.text;
        text.contains(request_id).then_some(text)
    })
    .await
}

#[tokio::test]
async fn a_refused_request_is_found_by_its_error_id_without_sent_values() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let browser = Browser::signed_in(&node, &backend).await;
    assert!(browser.get(LIST).await.text.contains("Nothing was refused"));

    let refused = backend.post(INIT, &json!({"claims": ["name", "shoe-size"], "channel": "by-pigeon"})).await;
    assert_eq!(refused.refusal(400), "validation_failed");
    let error_id = refused.json()["errorId"].as_str().unwrap().to_owned();
    let with_own_id =
        backend.request(Method::GET, "/api/v1/nationalid-ovse/result/none").header("X-Request-ID", "looked-up-later");
    Answer::receive(with_own_id).await.refusal(404);

    wait_for_list_with(&browser, "looked-up-later").await;
    let list = wait_for_list_with(&browser, &error_id).await;
    for part in [
        "POST /api/v1/nationalid-ovse/init",
        "validation_failed",
        "<code>claims[1]</code>",
        "<code>channel</code>",
        "result/{txnId}",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    for sent_value in ["shoe-size", "by-pigeon", "result/none"] {
        assert!(!list.contains(sent_value), "{sent_value}");
    }
    let filtered = browser.get(&format!("{LIST}?find={error_id}")).await.text;
    assert!(filtered.contains(&error_id) && !filtered.contains("looked-up-later"));
}

#[tokio::test]
async fn refusals_are_visible_only_to_their_own_app() {
    let node = TestNode::start().await;
    let (backend, other) = (node.backend_with_credits(1).await, node.backend_with_credits(1).await);
    let app = node.operator().create_app(&backend.client).await;
    let second = backend.with_credentials(&backend.key, &app);
    let stranger = backend.with_credentials(&other.key, &backend.app);
    assert_eq!(stranger.post(INIT, &json!({})).await.refusal(401), "unauthorized");
    let refused = second.post(INIT, &json!({})).await.json();
    let own = backend.post(INIT, &json!({})).await.json();
    let id = |refused: &serde_json::Value| refused["errorId"].as_str().unwrap().to_owned();

    wait_for_list_with(&Browser::signed_in(&node, &second).await, &id(&refused)).await;
    let list = wait_for_list_with(&Browser::signed_in(&node, &backend).await, &id(&own)).await;
    assert!(!list.contains(&id(&refused)) && !list.contains("unauthorized"), "{list}");
    assert!(Browser::signed_in(&node, &other).await.get(LIST).await.text.contains("Nothing was refused"));
}
