//! Additions of the sandbox to the API that help clients to test.

use reqwest::Method;
use sakshi::sandbox::first_client;
use sakshi::settings::{Sources, load};
use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::ClientId;
use sakshi_domain::tenancy::Client;
use serde_json::{Value, json};

use crate::in_process::InProcessNode;
use crate::store_fixture::StoreFixture;

const INIT: &str = "/api/v1/nationalid-ovse/init";

async fn wait_for_outcome(node: &InProcessNode, opened: &Value) -> Value {
    node.get(&format!("/api/v1/nationalid-ovse/result/{}?wait=20", opened["txnId"].as_str().unwrap())).await.1
}

#[actix_rt::test]
async fn the_next_start_completes_a_first_client_without_a_key() {
    let fixture = StoreFixture::new();
    let (store, now) = (fixture.shared_store(), fixture.clock.now());
    let client = Client::new(ClientId::generate(), "Sandbox client".to_owned(), now);
    store.create_client(client.clone()).await.unwrap();
    let first = first_client::ensure(&store, now).await.unwrap().expect("a key");
    assert_eq!(first.client, client.client_id);
    assert!(first_client::ensure(&store, now).await.unwrap().is_none(), "it is shown once");
    let id = client.client_id;
    let (keys, apps) = (store.list_keys(id.clone()).await.unwrap(), store.list_apps(id.clone()).await.unwrap());
    assert_eq!((keys.len(), apps.len(), store.balance(id).await.unwrap()), (1, 1, Some(1_000)));
    let other = StoreFixture::new();
    other.create_client().await;
    assert!(first_client::ensure(&other.shared_store(), now).await.unwrap().is_none(), "not the sandbox's client");
}

#[actix_rt::test]
async fn a_name_hint_makes_the_sandbox_person_answer() {
    let node = InProcessNode::start().await;
    let open = async |hint: &str| {
        node.post(INIT, &json!({ "claims": ["name", "age_above_18"], "channel": "qr", "name_hint": hint })).await.1
    };
    let passed = wait_for_outcome(&node, &open("sandbox:approve:kabir").await).await;
    assert_eq!(
        passed["data"]["verified_claims"],
        json!({ "ageAbove18": false, "residentName": "Kabir Udaharan" }),
        "{passed}"
    );
    let declined = wait_for_outcome(&node, &open("sandbox:service_down").await).await;
    assert_eq!(declined["data"]["error_code"], "306", "{declined}");
    let refused = open("sandbox:dance").await;
    assert!(refused["errors"][0]["message"].as_str().unwrap().contains("approve, decline"), "{refused}");
    let named = open("Asha Rao").await;
    let waiting = node.get(&format!("/api/v1/nationalid-ovse/result/{}", named["txnId"].as_str().unwrap())).await.1;
    assert_eq!(waiting["data"]["pending"], true, "an ordinary name triggers no answer: {waiting}");
    node.stop().await;
}

#[actix_rt::test]
async fn a_client_can_test_partial_birthdays_and_unreadable_claims() {
    let node = InProcessNode::start().await;
    for (resident, action, member, expected) in [
        ("gopal", "approve", "/data/verified_claims/dob", json!("1961")),
        ("asha", "malformed_claims", "/data/error_code", json!("claims_malformed")),
        ("asha", "retry_later", "/data/pending", json!(true)),
    ] {
        let (_, opened) = node.post(INIT, &json!({ "claims": ["name", "dob", "gender"], "channel": "qr" })).await;
        let answer = json!({ "intent": opened["intentJwt"], "resident": resident, "action": action });
        assert_eq!(node.post("/sandbox/app/answer", &answer).await.0, 200, "{action}");
        let path = format!("/api/v1/nationalid-ovse/result/{}", opened["txnId"].as_str().unwrap());
        let result = node.get(&path).await.1;
        assert_eq!(result.pointer(member), Some(&expected), "{action}: {result}");
    }
    node.stop().await;
}

#[actix_rt::test]
async fn a_client_can_resend_a_webhook_with_the_same_body() {
    let node = InProcessNode::start().await;
    let (_, inbox) = node.post("/sandbox/inboxes", &Value::Null).await;
    let init =
        json!({ "claims": ["name"], "channel": "qr", "webhook_url": inbox["url"], "name_hint": "sandbox:approve" });
    let (_, opened) = node.post(INIT, &init).await;
    let next = async |after: u64| {
        let id = inbox["id"].as_str().unwrap();
        node.get(&format!("/sandbox/inboxes/{id}?after={after}&wait=20")).await.1["webhook"].clone()
    };
    let first = next(0).await;
    let resend = format!("/sandbox/transactions/{}/webhook", opened["txnId"].as_str().unwrap());
    let (status, body) = node.send(Method::POST, &resend, node.first.app.as_str(), &Value::Null).await;
    assert_eq!((status, body), (200, json!({ "repeated": true, "outcome": "delivered", "status": 200 })));
    let second = next(1).await;
    assert!(first["body"].is_string() && first["body"] == second["body"], "{first} {second}");

    let (_, waiting) =
        node.post(INIT, &json!({ "claims": ["name"], "channel": "qr", "webhook_url": inbox["url"] })).await;
    let pending = format!("/sandbox/transactions/{}/webhook", waiting["txnId"].as_str().unwrap());
    assert_eq!(node.send(Method::POST, &pending, node.first.app.as_str(), &Value::Null).await.0, 409);
    assert_eq!(
        node.http.post(node.url(&resend)).send().await.unwrap().status().as_u16(),
        401,
        "a request without credentials"
    );
    node.stop().await;
}

#[actix_rt::test]
async fn every_documented_sandbox_route_exists() {
    let node = InProcessNode::start().await;
    let (status, document) = node.get_unsigned("/sandbox/openapi.json").await;
    assert_eq!(status, 200);
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let example_path = path
                .split('/')
                .map(|part| if part.starts_with('{') { "x" } else { part })
                .collect::<Vec<_>>()
                .join("/");
            let method: Method = method.to_uppercase().parse().unwrap();
            let (status, body) = node.send(method.clone(), &example_path, node.first.app.as_str(), &Value::Null).await;
            assert!(status != 405 && body["message"] != "There is no such path.", "{method} {path}: {status} {body}");
        }
    }
    node.stop().await;
}

#[test]
fn the_strict_sandbox_has_the_rules_of_production() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/strict.toml");
    let strict = load(&Sources { file: Some(file.into()), ..Sources::default() }).unwrap().settings;
    assert!(!strict.webhooks.allow_private_targets);
    assert_eq!(strict.ovse.sandbox_person.as_secs(), 5);
    assert_eq!(strict.limits.orders_per_second_per_client, 50);
}
