//! An operator's erasure: the data is gone for everybody at once, and the ledger stays.

use sakshi_kit::answer::Answer;
use sakshi_kit::event::{BROWSER, EventCounts, TestEvent, terms};
use sakshi_kit::node::TestNode;
use sakshi_kit::portal::Browser;
use sakshi_kit::waiting::TIMEOUT;
use sakshi_sandbox::receiver::{Behaviour, WebhookReceiver};
use serde_json::{Value, json};

const ERASURES: &str = "/admin/v1/erasures";

/// Erases a subject, such as a transaction, and returns the number of erased records of each kind.
async fn erase(node: &TestNode, kind: &str, id: &str) -> Value {
    node.operator().post(ERASURES, &json!({"kind": kind, "id": id})).await.ok()
}

/// Returns the counts of an erasure: these, and zero for every other kind of record.
fn erased_counts(counts: &Value) -> Value {
    let mut all_counts = json!({"transactions": 0, "registrations": 0, "events": 0, "flows": 0, "answers": 0,
        "refusals": 0, "users": 0});
    all_counts.as_object_mut().unwrap().extend(counts.as_object().unwrap().clone());
    all_counts
}

#[tokio::test]
async fn an_erased_verification_is_gone_for_client_resident_portal_and_operator() {
    let node = TestNode::start().await;
    let receiver = WebhookReceiver::start(Behaviour::Answer(200)).await.unwrap();
    let (backend, operator, identity_app) = (node.backend_with_credits(5).await, node.operator(), node.identity_app());
    let body = json!({"claims": ["name"], "channel": "web", "client_reference_id": "order-7",
        "webhook_url": receiver.url("/hook")});
    let opened = sakshi_kit::backend::Opened::read(&backend.init_once("key-1", &body).await.ok());
    let other = backend.open(&["name"]).await;
    identity_app.approve(&opened, "asha").await;
    receiver.wait_for(1, TIMEOUT).await;
    operator.delivery(&opened.txn).await;
    let statement = operator.statement(&backend.client).await;

    assert_eq!(
        erase(&node, "transaction", &opened.txn).await,
        erased_counts(&json!({"transactions": 1, "answers": 1}))
    );
    assert_eq!(backend.result(&opened.txn).await.refusal(404), "transaction_not_found");
    assert_eq!(identity_app.present(&opened, &identity_app.credential(&opened, "asha")).await.status, 404);
    assert_eq!(operator.get(&format!("/admin/v1/transactions/{}", opened.txn)).await.status, 404);
    let portal = Browser::signed_in(&node, &backend).await;
    let page = portal.get(&format!("/portal/verifications?q={}", opened.txn)).await;
    assert!(!page.text.contains("order-7") && !page.text.contains("Asha"), "{}", page.text);
    assert_eq!(operator.statement(&backend.client).await, statement, "paid credits stay paid");
    assert!(backend.is_pending(&other.txn).await, "other transactions go on");

    assert_eq!(
        erase(&node, "transaction", &opened.txn).await,
        erased_counts(&json!({})),
        "a second erasure finds nothing"
    );
    let log = operator.get("/admin/v1/audit-log").await.ok();
    let entries: Vec<&Value> = log["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["entry"])
        .filter(|entry| entry["operation"] == "erase")
        .collect();
    assert_eq!(entries[0]["asked"], json!({"kind": "transaction", "id": opened.txn}));
    assert_eq!((&entries[0]["ids"]["id"], &entries[1]["ids"]["id"]), (&json!(opened.txn), &json!(opened.txn)));
    assert_eq!(entries[1]["after"], erased_counts(&json!({"transactions": 1, "answers": 1})));
    let log = node.admin(&["audit-log", "--verify"]).await;
    assert!(log.status.success(), "{}{}", log.out, log.err);
    assert_eq!(receiver.received().len(), 1);
}

#[tokio::test]
async fn an_erased_guest_leaves_a_place_without_claims() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(9).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    let (erased, remaining) = (event.scan().await, event.scan().await);
    identity_app.approve(&erased, "asha").await;
    identity_app.approve(&remaining, "asha").await;
    let counts = erase(&node, "transaction", &erased.txn).await;
    assert_eq!(counts, erased_counts(&json!({"transactions": 1, "registrations": 1})));
    let guests = event.registrations().await;
    assert_eq!(
        (guests.len(), &guests[0]["txn_id"], &guests[0]["verified_claims"]),
        (2, &json!(erased.txn), &json!({})),
        "{guests:?}"
    );
    assert!(!guests[1]["verified_claims"].as_object().unwrap().is_empty(), "{guests:?}");
    assert_eq!(event.counts().await, EventCounts { status: "active", registered: 2, scanned: 2, abandoned: 0 });

    let added_guest = event.scan().await;
    let (mut listed, mut path) = (Vec::new(), Some(format!("{}/registrations?page_size=1", event.path())));
    while let Some(page) = path {
        let page = organiser.get(&page).await.ok();
        if listed.is_empty() {
            identity_app.approve(&added_guest, "asha").await;
            erase(&node, "transaction", &remaining.txn).await;
        }
        listed.extend(page["registrations"].as_array().unwrap().iter().map(|guest| guest["txn_id"].clone()));
        path = page["next"].as_str().map(str::to_owned);
    }
    assert_eq!(
        listed,
        [&erased.txn, &remaining.txn, &added_guest.txn].map(|txn| json!(txn)),
        "a guest was added and a guest was erased between pages"
    );

    let pending = event.scan().await;
    assert_eq!(
        erase(&node, "event", &event.id).await,
        erased_counts(&json!({"events": 1, "transactions": 2, "registrations": 3}))
    );
    assert_eq!(organiser.get(&event.path()).await.status, 404);
    assert_eq!(identity_app.present(&pending, &identity_app.credential(&pending, "asha")).await.status, 404);
    let page = Answer::receive(event.visit(reqwest::Method::GET, BROWSER)).await;
    assert_eq!(page.status, 404, "{}", page.text);
    assert_eq!(node.operator().balance(&organiser.client).await, 5);
}

#[tokio::test]
async fn the_erase_command_prints_its_counts_and_takes_one_subject() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(5).await;
    backend.open(&["name"]).await;
    let output = node.admin(&["erase", "--client", &backend.client]).await;
    assert!(output.status.success(), "{}{}", output.out, output.err);
    assert!(output.out.lines().any(|line| line.split_whitespace().eq(["transactions", "1"])), "{}", output.out);
    assert_eq!(node.admin(&["erase"]).await.status.code(), Some(2));
    assert_eq!(node.admin(&["erase", "--app", &backend.app, "--client", &backend.client]).await.status.code(), Some(2));
    for (body, field) in [
        (json!({"kind": "transaction", "id": "order-7"}), "id"),
        (json!({"kind": "event", "id": uuid::Uuid::new_v4()}), "id"),
        (json!({"kind": "person", "id": "x"}), "kind"),
        (json!({"kind": "app"}), "id"),
    ] {
        assert_eq!(node.operator().post(ERASURES, &body).await.refused_fields(), [field]);
    }
}
