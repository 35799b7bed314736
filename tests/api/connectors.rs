//! Connectors with their own listener and tokens.

use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::connector::CONNECTOR_TOKEN;
use sakshi_kit::flow::Flow;
use sakshi_kit::node::{Addresses, TestNode};
use sakshi_kit::operator::ADMIN_TOKEN;

/// The token of the connector of document lockers.
const LOCKER_TOKEN: &str = "a-token-of-doclocker-of-more-than-32-characters";

#[tokio::test]
async fn connectors_report_to_their_own_listener_with_the_token_of_the_flow() {
    let node = TestNode::start_with(&[
        ("SERVER__CONNECTOR_ADDR", "127.0.0.1:0"),
        ("ADMIN__CONNECTOR_TOKEN_DOCLOCKER", LOCKER_TOKEN),
    ])
    .await;
    node.secrets.watch_for(LOCKER_TOKEN);
    let startup_line = node.process().startup_line();
    let address = startup_line["connectors"].as_str().expect("the address of the listener");
    assert_ne!(Some(address), startup_line["internal"].as_str());
    let connector_addresses = Addresses::fixed(address, address);

    // The sandbox's own upstreams report to this listener too.
    let backend = node.backend_with_credits(0).await;
    for (flow, outcome) in [(Flow::DocLocker, "fetched"), (Flow::Esign, "completed")] {
        let opened = backend.open_flow(flow).await;
        let url = node.addresses.public(&format!("/sandbox/flows/{}/{}", opened.flow.name(), opened.id));
        let answer = Answer::receive(node.http.post(url).json(&json!({ "outcome": outcome }))).await.ok();
        assert!(answer["reported"].as_array().unwrap().iter().all(|row| row["status"] == 200), "{answer}");
    }

    let connector = node.connector();
    let report_status = |addresses: Addresses, kind: &'static str, token: &'static str| {
        let connector = connector.through(&addresses).with_token(token);
        async move { connector.report(kind, &json!({ "app_id": "none" })).await.status }
    };
    assert_eq!(report_status(connector_addresses.clone(), "doclocker", LOCKER_TOKEN).await, 400, "the report is read");
    assert_eq!(report_status(connector_addresses.clone(), "doclocker", CONNECTOR_TOKEN).await, 401);
    assert_eq!(report_status(connector_addresses.clone(), "esign", LOCKER_TOKEN).await, 401);
    assert_eq!(report_status(connector_addresses.clone(), "esign", CONNECTOR_TOKEN).await, 400);
    assert_eq!(
        report_status(node.addresses.clone(), "doclocker", LOCKER_TOKEN).await,
        404,
        "the internal listener takes no reports"
    );
    let get = |path: &str| Answer::receive(node.http.get(connector_addresses.internal(path)).bearer_auth(ADMIN_TOKEN));
    for path in ["/admin/v1/clients", "/metrics", "/readyz"] {
        assert_eq!(get(path).await.status, 404, "{path}");
    }
    let document: Value = get("/openapi.json").await.ok();
    assert!(document["paths"].as_object().unwrap().contains_key("/internal/v1/flows/{kind}"));
}
