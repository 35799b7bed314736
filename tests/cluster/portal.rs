//! Sessions of the portal across nodes: a session works on every node, and ends on every node.

use sakshi_kit::portal::Browser;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use serde_json::json;

use crate::nodes::Nodes;

#[tokio::test]
async fn a_session_opened_at_one_node_is_good_at_all_and_signing_out_at_one_ends_it_at_all() {
    let nodes = Nodes::start().await;
    let backend = nodes.backend(3).await;
    let home = Browser::signed_in(&nodes.all[0], &backend).await;
    let everywhere: Vec<Browser> = nodes.all.iter().map(|node| home.through(&node.addresses)).collect();
    let token = home.csrf_token().await;
    for browser in &everywhere {
        assert_eq!(browser.csrf_token().await, token, "a form of one node is good at another");
    }
    let trial = everywhere[1].trial().await;
    assert_eq!(everywhere[2].get(&trial.path).await.status, 200);
    assert_eq!(nodes.all[0].operator().balance(&backend.client).await, 2);

    let other = Browser::signed_in(&nodes.all[1], &backend).await;
    let out = everywhere[2].send("/portal/sign-out", &[]).await;
    assert_eq!(out.header("location"), Some("/portal/sign-in?out=1"), "{}", out.text);
    for browser in &everywhere {
        assert!(browser.is_redirected_to_sign_in("/portal").await, "although the cookie is sent");
        assert!(browser.is_redirected_to_sign_in(&trial.path).await);
    }
    for node in &nodes.all {
        assert_eq!(other.through(&node.addresses).get("/portal").await.status, 200, "another session goes on");
    }
}

#[tokio::test]
async fn a_key_revoked_at_one_node_ends_its_sessions_at_all() {
    let nodes = Nodes::start().await;
    let (backend, operator) = (nodes.backend(3).await, nodes.all[2].operator());
    let (key_id, key) = operator.issue_key(&backend.client, &json!({})).await;
    let home = Browser::signed_in(&nodes.all[0], &backend.with_credentials(&key, &backend.app)).await;
    let everywhere: Vec<Browser> = nodes.all.iter().map(|node| home.through(&node.addresses)).collect();
    for browser in &everywhere {
        assert_eq!(browser.get("/portal").await.status, 200);
    }
    operator.delete(&format!("/admin/v1/keys/{key_id}")).await.ok();
    for browser in &everywhere {
        eventually("the end of the session", TIMEOUT, || async {
            browser.is_redirected_to_sign_in("/portal").await.then_some(())
        })
        .await;
    }
}
