//! Sessions of the portal across nodes: a session works on every node, and ends on every node.

use sakshi_kit::portal::Browser;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

use crate::nodes::Nodes;

#[tokio::test]
async fn a_session_works_at_every_node_and_signing_out_at_one_ends_it_at_all() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(3).await;
    let home = Browser::signed_in(&nodes.all[0], &backend).await;
    let browsers: Vec<Browser> = nodes.all.iter().map(|node| home.through(&node.addresses)).collect();
    let token = home.csrf_token().await;
    for browser in &browsers {
        assert_eq!(browser.csrf_token().await, token, "every node accepts the forms of the others");
    }
    let trial = browsers[1].trial().await;
    assert_eq!(browsers[2].get(&trial.path).await.status, 200);
    assert_eq!(nodes.all[0].operator().balance(&backend.client).await, 2);

    let other = Browser::signed_in(&nodes.all[1], &backend).await;
    let response = browsers[2].send("/portal/sign-out", &[]).await;
    assert_eq!(response.header("location"), Some("/portal/sign-in?out=1"), "{}", response.text);
    for browser in &browsers {
        assert!(browser.is_redirected_to_sign_in("/portal").await, "although the cookie is sent");
        assert!(browser.is_redirected_to_sign_in(&trial.path).await);
    }
    for node in &nodes.all {
        assert_eq!(other.through(&node.addresses).get("/portal").await.status, 200, "another session continues");
    }
}

#[tokio::test]
async fn a_key_revoked_at_one_node_ends_its_sessions_at_all() {
    let nodes = Nodes::start().await;
    let (backend, operator) = (nodes.backend(3).await, nodes.all[2].operator());
    let (key_id, key) = operator.issue_key(&backend.client, &json!({})).await;
    let home = Browser::signed_in(&nodes.all[0], &backend.with_credentials(&key, &backend.app)).await;
    let browsers: Vec<Browser> = nodes.all.iter().map(|node| home.through(&node.addresses)).collect();
    for browser in &browsers {
        assert_eq!(browser.get("/portal").await.status, 200);
    }
    operator.delete(&format!("/admin/v1/keys/{key_id}")).await.ok();
    for browser in &browsers {
        eventually("the end of the session", TIMEOUT, || async {
            browser.is_redirected_to_sign_in("/portal").await.then_some(())
        })
        .await;
    }
}
