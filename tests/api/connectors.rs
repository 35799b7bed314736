//! Connectors with a listener and tokens of their own.

use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::connector::CONNECTOR_TOKEN;
use sakshi_kit::flow::Flow;
use sakshi_kit::node::{Addresses, TestNode};
use sakshi_kit::operator::ADMIN_TOKEN;

const LOCKER: &str = "a-token-of-doclocker-of-more-than-32-characters";

#[tokio::test]
async fn reports_go_to_the_listener_of_connectors_with_the_token_of_their_flow() {
    let node =
        TestNode::with(&[("SERVER__CONNECTOR_ADDR", "127.0.0.1:0"), ("ADMIN__CONNECTOR_TOKEN_DOCLOCKER", LOCKER)])
            .await;
    node.secrets.watch_for(LOCKER);
    let announced = node.process().startup_line();
    let at = announced["connectors"].as_str().expect("the line says where");
    assert_ne!(Some(at), announced["internal"].as_str());
    let apart = Addresses::fixed(at, at);

    // The sandbox's own upstreams report there too.
    let backend = node.backend(0).await;
    for (flow, outcome) in [(Flow::DocLocker, "fetched"), (Flow::Esign, "completed")] {
        let opened = backend.open_flow(flow).await;
        let url = node.addresses.public(&format!("/sandbox/flows/{}/{}", opened.flow.name(), opened.id));
        let driven = Answer::to(node.http.post(url).json(&json!({ "outcome": outcome }))).await.ok();
        assert!(driven["reported"].as_array().unwrap().iter().all(|row| row["status"] == 200), "{driven}");
    }

    let connector = node.connector();
    let status = |addresses: Addresses, kind: &'static str, token: &'static str| {
        let connector = connector.through(&addresses).with_token(token);
        async move { connector.report(kind, &json!({ "app_id": "none" })).await.status }
    };
    assert_eq!(status(apart.clone(), "doclocker", LOCKER).await, 400, "it is read");
    assert_eq!(status(apart.clone(), "doclocker", CONNECTOR_TOKEN).await, 401);
    assert_eq!(status(apart.clone(), "esign", LOCKER).await, 401);
    assert_eq!(status(apart.clone(), "esign", CONNECTOR_TOKEN).await, 400);
    assert_eq!(status(node.addresses.clone(), "doclocker", LOCKER).await, 404, "the internal listener takes none");
    let get = |path: &str| Answer::to(node.http.get(apart.internal(path)).bearer_auth(ADMIN_TOKEN));
    for path in ["/admin/v1/clients", "/metrics", "/readyz"] {
        assert_eq!(get(path).await.status, 404, "{path}");
    }
    let document: Value = get("/openapi.json").await.ok();
    assert!(document["paths"].as_object().unwrap().contains_key("/internal/v1/flows/{kind}"));
}
