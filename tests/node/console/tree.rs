//! The page of the nodes: failures are marked with their place and request, and a stream updates it.

use std::sync::Arc;

use actix_web::body::MessageBody as _;
use actix_web::dev::Service as _;
use actix_web::http::header::COOKIE;
use actix_web::test::TestRequest;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::OperatorId;
use sakshi_operator::InternalDeps;
use sakshi_wire::operator::nodes::NodesResponse;
use serde_json::{Value, json};

use super::{Browser, HOST, listener};
use crate::store_fixture::StoreFixture;

/// Returns a running actor as the admin API shows it.
fn actor(name: &str, kind: &str, children: &[Value]) -> Value {
    json!({"name": name, "kind": kind, "state": "running", "live": 1, "restarts": 0, "last_exit": null,
        "last_panic": null, "age_s": 61,
        "mailbox": 0, "children": children})
}

/// Returns two nodes, of which the first has a failed ledger.
fn sample_nodes() -> NodesResponse {
    let mut ledger = actor("credit-ledger", "credit_ledger", &[]);
    ledger["restarts"] = json!(2);
    ledger["last_panic"] = json!({"at": "2026-01-15T10:00:00.000Z", "place": "actors/src/ledger.rs:71",
        "request_id": "order-42", "count": 2});
    let mut shard = actor("transactions-0", "transaction_registry", &[]);
    (shard["live"], shard["mailbox"]) = (json!(1_234), json!(3));
    let tree = actor("root", "root", &[ledger, actor("webhook-dispatcher", "webhook_dispatcher", &[]), shard]);
    let figures = json!({"interval_s": 2, "inits": [0, 20], "callbacks": [1, 1], "webhooks": [4, 4],
        "webhooks_failed": [0, 2],
        "p99_ms": [3.5, 12.0], "cpu_percent": [10.0, 20.0]});
    let live_node = json!({"node": "0123456789abcdef", "is_this": true, "version": "0.1.0 (abc)",
        "started_at": "2026-01-15T09:00:00.000Z",
        "seen_at": "2026-01-15T10:00:00.000Z", "state": "live", "live_transactions": 1_234, "live_events": 5,
        "tree": tree,
        "receivers": [{"origin": "https://client.example", "client_id": "cl_1", "waiting": 17, "in_flight": 4,
            "oldest_s": 9}],
        "receivers_total": 30, "figures": figures});
    let silent_node = json!({"node": "fedcba9876543210", "is_this": false, "version": null, "started_at": null,
        "seen_at": "2026-01-15T10:00:00.000Z", "state": "silent", "live_transactions": null, "live_events": null,
        "tree": null,
        "receivers": [], "receivers_total": 0, "figures": null});
    serde_json::from_value(json!({"now": "2026-01-15T10:00:00.000Z", "nodes": [live_node, silent_node]})).unwrap()
}

fn deps_with_nodes(fixture: &StoreFixture) -> InternalDeps {
    InternalDeps { nodes: Arc::new(|| Box::pin(std::future::ready(sample_nodes()))), ..fixture.internal() }
}

#[actix_rt::test]
async fn a_failed_actor_is_marked_with_its_place_and_links_to_its_request() {
    let fixture = StoreFixture::new();
    let service = listener(deps_with_nodes(&fixture)).await;
    let page = Browser::signed_in(&service).await.page("/console/tree").await;
    assert_eq!(page.matches("class=\"wrong\"").count(), 1, "{page}");
    for words in [
        "1 actor needs a look",
        "actors/src/ledger.rs:71",
        "2 times in a row",
        "href=\"/console/find?id=order-42\"",
        "<b>1234</b> live",
        "https://client.example",
        "The longest 1 of 30.",
        "01234567",
        ">silent<",
        "10 a second",
        "id=\"kind-credit_ledger\"",
        "http-equiv=\"refresh\"",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[actix_rt::test]
async fn every_kind_of_actor_is_explained() {
    let kinds = [
        "root",
        "credit_ledger",
        "webhook_dispatcher",
        "reaper",
        "figures",
        "event_registry",
        "transaction_registry",
        "change_listener",
        "flow_sweeper",
    ];
    let fixture = StoreFixture::new();
    let service = listener(deps_with_nodes(&fixture)).await;
    let page = Browser::signed_in(&service).await.page("/console/tree").await;
    let tree = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../actors/src/tree.rs")).unwrap();
    for kind in kinds {
        assert!(page.contains(&format!("id=\"kind-{kind}\"")), "{kind}");
        assert!(kind == "root" || tree.contains(&format!("\"{kind}\"")), "no actor has the kind {kind}");
    }
    assert_eq!(page.matches("id=\"kind-").count(), kinds.len());
}

#[actix_rt::test]
async fn the_stream_shows_the_nodes_and_ends_with_the_session() {
    let fixture = StoreFixture::new();
    let service = listener(deps_with_nodes(&fixture)).await;
    let (browser, operator) = Browser::with_role(&service, "auditor").await;
    let cookie = browser.cookie.borrow().clone().unwrap();
    let request =
        TestRequest::get().uri("/console/tree/live").insert_header((COOKIE, cookie)).insert_header(("host", HOST));
    let response = service.call(request.to_request()).await.unwrap();
    assert_eq!(response.headers().get("content-type").unwrap(), "text/event-stream");
    let mut body = Box::pin(response.into_body());
    let mut chunk =
        async || std::future::poll_fn(|context| body.as_mut().poll_next(context)).await.transpose().ok().flatten();
    let first = String::from_utf8(chunk().await.unwrap().to_vec()).unwrap();
    assert!(first.contains("event: state") && first.contains("actors/src/ledger.rs:71"), "{first}");
    fixture.store.revoke_operator(operator.parse::<OperatorId>().unwrap(), fixture.clock.now()).await.unwrap();
    assert_eq!(chunk().await.unwrap(), "retry: 2000\n\n");
    assert_eq!(chunk().await, None);
}
