//! The register of consents: client, claims, time, purpose and decision of each request, without shared values.

use aws_lc_rs::digest::{SHA256, digest};
use reqwest::Method;
use sakshi_kit::answer::Answer;
use sakshi_kit::backend::Opened;
use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::flow_fixture::FlowFixture;
use sakshi_kit::node::TestNode;
use serde_json::{Value, json};

/// A purpose that a spreadsheet would read as a formula.
const PURPOSE: &str = "=To open your savings account";
const CONSENT_TEXT: &str = "I agree that Example Bank verifies me.";

fn sha256(text: &str) -> String {
    digest(&SHA256, text.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the entries of a client's register, from every page.
async fn register_entries(node: &TestNode, client: &str, query: &str) -> Vec<Value> {
    let mut entries = Vec::new();
    let mut next = Some(format!("/admin/v1/clients/{client}/consents{query}"));
    while let Some(path) = next {
        let page = node.operator().get(&path).await.ok();
        entries.extend(page["consents"].as_array().unwrap().clone());
        next = page["next"].as_str().map(str::to_owned);
    }
    entries
}

#[tokio::test]
async fn the_register_lists_answered_verifications_with_purpose_and_without_claims() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(9).await, node.identity_app());
    let request = json!({"claims": ["name", "dob"], "channel": "web", "language": "hindi", "purpose": PURPOSE,
        "consent": "Y", "consent_text": CONSENT_TEXT});
    let opened = Opened::read(&backend.post("/api/v1/nationalid-ovse/init", &request).await.ok());
    let page = node.get(&format!("/v/{}", opened.txn)).await.text;
    assert!(page.contains(PURPOSE), "{page}");
    let declined = backend.open(&["gender"]).await;
    let unanswered = backend.open(&["name"]).await;
    assert_eq!(register_entries(&node, &backend.client, "").await, [] as [Value; 0], "the person has not answered yet");

    identity_app.approve(&opened, "asha").await;
    identity_app.fail(&declined, "301", "User Reject").await;
    let mut terms = terms(5);
    terms["purpose"] = json!("Free entry for residents");
    let event = TestEvent::open(&node, &backend, &terms).await;
    let guest = event.scan().await;
    identity_app.approve(&guest, "asha").await;

    let entries = register_entries(&node, &backend.client, "?limit=1").await;
    let column = |field: &str| entries.iter().map(|entry| entry[field].clone()).collect::<Vec<_>>();
    assert_eq!(column("id"), [&opened.txn, &declined.txn, &guest.txn].map(|txn| json!(txn)), "{entries:?}");
    assert_eq!(column("answer"), ["given", "not_given", "given"]);
    assert_eq!(column("code"), [Value::Null, json!("301"), Value::Null]);
    assert_eq!(column("purpose"), [json!(PURPOSE), Value::Null, json!("Free entry for residents")]);
    assert_eq!(column("event_id"), [Value::Null, Value::Null, json!(event.id)]);
    assert_eq!(column("consent_text_sha256"), [json!(sha256(CONSENT_TEXT)), Value::Null, Value::Null]);
    assert_eq!((&entries[0]["asked"], &entries[0]["language"]), (&json!(["name", "dob"]), &json!("hindi")));
    assert_eq!((&entries[0]["client_id"], &entries[0]["app_id"]), (&json!(backend.client), &json!(backend.app)));
    assert!(
        entries.iter().all(
            |entry| entry["kind"] == "verification" && entry["opened_at"].as_str() <= entry["answered_at"].as_str()
        )
    );
    assert!(!json!(entries).to_string().contains("Asha"), "{entries:?}");
    assert!(!json!(entries).to_string().contains(&unanswered.txn), "{entries:?}");

    node.operator().post("/admin/v1/erasures", &json!({"kind": "client", "id": backend.client})).await.ok();
    assert_eq!(register_entries(&node, &backend.client, "").await, entries, "the register has its own retention");
    let second_opened_at = entries[1]["opened_at"].as_str().unwrap();
    assert_eq!(register_entries(&node, &backend.client, &format!("?to={second_opened_at}")).await, entries[..1]);
    assert_eq!(register_entries(&node, &backend.client, &format!("?from={second_opened_at}")).await, entries[1..]);
}

#[tokio::test]
async fn the_register_lists_checks_and_flows_when_they_are_requested() {
    let fixture = FlowFixture::start().await;
    let (backend, client) = (&fixture.backend, &fixture.backend.client);
    let with_consent = |mut body: Value| {
        body["consent"] = json!("Y");
        body["consent_text"] = json!(CONSENT_TEXT);
        backend.secrets.watch_for_personal_data(&body);
        body
    };
    let pan = with_consent(json!({"pan": "ABCPE1234F", "name_as_per_pan": "Asha Rao"}));
    Answer::receive(backend.request(Method::POST, "/api/v1/pan/verify").header("X-Request-ID", "check-1").json(&pan))
        .await
        .ok();
    backend.post("/api/v1/ifsc/verify", &json!({"ifsc": "EXMP0001234"})).await;
    let documents = backend
        .post("/api/v1/doclocker/init", &with_consent(json!({"docs": ["PAN card", "Driving licence"]})))
        .await
        .ok();
    let wealth = backend.post("/api/v1/wealth/consents", &with_consent(json!({}))).await.ok();

    let entries = register_entries(&fixture.node, client, "").await;
    let column = |field: &str| entries.iter().map(|entry| entry[field].clone()).collect::<Vec<_>>();
    assert_eq!(column("kind"), ["pan", "doclocker", "wealth"], "{entries:?}");
    assert_eq!(
        column("id"),
        [json!("check-1"), documents["transactionId"].clone(), wealth["uniqueIdentifier"].clone()]
    );
    assert_eq!(column("asked"), [json!(["pan", "name_as_per_pan"]), json!(["PAN card", "Driving licence"]), json!([])]);
    assert_eq!(column("consent_text_sha256"), [sha256(CONSENT_TEXT), sha256(CONSENT_TEXT), sha256(CONSENT_TEXT)]);
    assert_eq!(column("answer"), ["given", "given", "given"]);
    assert!(!json!(entries).to_string().contains("ABCPE1234F"), "{entries:?}");
}

#[tokio::test]
async fn an_operator_exports_the_register_as_jsonl_or_csv() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(5).await, node.identity_app());
    let request = json!({"claims": ["name"], "channel": "web", "purpose": PURPOSE});
    let opened = Opened::read(&backend.post("/api/v1/nationalid-ovse/init", &request).await.ok());
    identity_app.approve(&opened, "asha").await;

    let jsonl = node.admin(&["consents", &backend.client, "--format", "jsonl"]).await;
    let entry: Value = serde_json::from_str(jsonl.out.trim()).expect("one line");
    assert_eq!((&entry["id"], &entry["purpose"]), (&json!(opened.txn), &json!(PURPOSE)), "{}{}", jsonl.out, jsonl.err);
    let csv = node.admin(&["consents", &backend.client, "--format", "csv"]).await;
    let rows: Vec<&str> = csv.out.trim_start_matches('\u{feff}').split("\r\n").collect();
    assert!(rows[0].starts_with("kind,id,client_id,app_id,event_id,purpose,asked,"), "{}", csv.out);
    assert!(rows[1].contains(&opened.txn) && rows[1].contains("\"'=To open your savings account\""), "{}", csv.out);
    let table = node.admin(&["consents", &backend.client]).await;
    assert!(table.out.contains("ANSWERED_AT") && table.out.contains(&opened.txn), "{}", table.out);
    let none_after =
        node.admin(&["consents", &backend.client, "--from", "2999-01-01T00:00:00Z", "--format", "jsonl"]).await;
    assert_eq!((none_after.out.as_str(), none_after.status.success()), ("", true));
    assert!(!node.admin(&["consents", "cl_unknown"]).await.status.success());
    let refused =
        node.operator().get(&format!("/admin/v1/clients/{}/consents?after=x&from=yesterday", backend.client)).await;

    assert_eq!(refused.refused_fields(), ["from", "after"], "{}", refused.text);
}
