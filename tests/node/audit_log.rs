//! The audit log: its entries for every change, and what it leaves out.

use std::process::ExitCode;
use std::time::Duration;

use actix_web::dev::Service as _;
use actix_web::test::TestRequest;
use rusqlite::Connection;
use sakshi_domain::clock::Clock as _;
use serde_json::{Value, json};

use crate::cli::{printed_value, run_admin, serve};
use crate::operator::{call, document, listener};
use crate::operator_document::{OPERATIONS, example_uri};
use crate::store_fixture::{CONNECTOR_TOKEN, StoreFixture};

const LOG: &str = "/admin/v1/audit-log?limit=100";

fn open_database(fixture: &StoreFixture) -> Connection {
    Connection::open(fixture.directory.path().join("store/sakshi.db")).unwrap()
}

#[actix_rt::test]
async fn an_entry_names_operator_operation_ids_and_outcome() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let client = fixture.create_client().await;
    let app = fixture.create_app(&client).await;
    let uri = format!("/admin/v1/apps/{app}");
    let first = json!({"consent_webhook_url": "https://one.example/planted-secret?key=planted"});
    assert_eq!(call(&service, "PATCH", &uri, Some(first)).await.0, 200);
    let second = json!({"consent_webhook_url": "https://two.example/planted-secret", "payload_spelling": "camelCase"});
    assert_eq!(call(&service, "PATCH", &uri, Some(second)).await.0, 200);
    let (_, log) = call(&service, "GET", LOG, None).await;
    // A change has two entries: its request (`asked`) and its outcome (`answered`).
    let [.., asked, answered] = log["entries"].as_array().unwrap().as_slice() else { panic!("{log}") };
    assert_eq!((&log["head"]["number"], &log["head"]["hash"]), (&json!(4), &answered["hash"]));
    assert_eq!((&asked["number"], &asked["previous_hash"]), (&json!(3), &log["entries"][1]["hash"]));
    let (now, asked, answered) = (fixture.clock.now(), &asked["entry"], &answered["entry"]);
    for entry in [asked, answered] {
        assert_eq!((&entry["operator_id"], &entry["operator"]), (&Value::Null, &json!("settings")));
        assert_eq!(
            (&entry["operation"], &entry["ids"], &entry["at"]),
            (&json!("updateApp"), &json!({"app_id": app}), &json!(now))
        );
        assert_eq!(
            (&entry["from"], entry["request_id"].is_string()),
            (&json!("0.0.0.0"), true),
            "a request of the test has no peer address"
        );
    }
    assert_eq!((&asked["stage"], &asked["asked"]["payload_spelling"]), (&json!("asked"), &json!("camelCase")));
    let changed_fields = |record: &Value| [record["consent_webhook_url"].clone(), record["payload_spelling"].clone()];
    assert_eq!(changed_fields(&asked["before"]), [json!("https://one.example"), json!("snake_case")]);
    assert_eq!(changed_fields(&answered["after"]), [json!("https://two.example"), json!("camelCase")]);
    let outcome = (&answered["stage"], &answered["asked_number"], &answered["status"], &answered["code"]);
    assert_eq!(outcome, (&json!("answered"), &json!(3), &json!(200), &Value::Null));
    assert!(!log.to_string().contains("planted"), "{log}");
}

#[actix_rt::test]
async fn every_change_is_logged_without_keys_and_digests() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let document = document(&service).await;
    let client = fixture.create_client().await;
    let mut expected = Vec::new();
    for (method, path, id, _) in
        OPERATIONS.into_iter().filter(|(method, .., token)| *method != "GET" && *token == Some("admin_token"))
    {
        let body =
            &document["paths"][path][method.to_lowercase()]["requestBody"]["content"]["application/json"]["example"];
        let uri = example_uri(path).replace("cl_1", client.as_str());
        let (status, _) = call(&service, method, &uri, (!body.is_null()).then(|| body.clone())).await;
        assert!([200, 404].contains(&status), "{id}: {status}");
        // While data is lost, the store accepts no entry before the change.
        expected.extend((id != "acceptLoss").then(|| json!([id, "asked", null])));
        expected.push(json!([id, "answered", status]));
    }
    assert!(expected.len() >= 18, "most operations change something");
    let (_, log) = call(&service, "GET", LOG, None).await;
    let entries = log["entries"].as_array().unwrap().iter().map(|entry| &entry["entry"]);
    assert_eq!(
        entries.map(|entry| json!([entry["operation"], entry["stage"], entry["status"]])).collect::<Vec<_>>(),
        expected
    );
    for secret in ["sk_", "so_", "9f86d081", "/hooks/"] {
        assert!(!log.to_string().contains(secret), "{secret}");
    }
}

#[actix_rt::test]
async fn reads_and_invalid_requests_are_not_logged() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    for uri in ["/admin/v1/clients", "/admin/v1/credits/audit", "/admin/v1/apps/app_1"] {
        call(&service, "GET", uri, None).await;
    }
    assert_eq!(call(&service, "POST", "/admin/v1/clients", Some(json!({"name": 7}))).await.0, 400);
    let request = TestRequest::post().uri("/admin/v1/clients").set_json(json!({"name": "Acme"}));
    assert_eq!(service.call(request.to_request()).await.unwrap().status(), 401);
    let report = TestRequest::post()
        .uri("/internal/v1/flows/esign")
        .insert_header(("authorization", format!("Bearer {CONNECTOR_TOKEN}")));
    service.call(report.set_json(json!({})).to_request()).await.unwrap();
    let (_, log) = call(&service, "GET", LOG, None).await;
    assert_eq!((&log["entries"], &log["head"]["number"]), (&json!([]), &json!(0)));
}

#[actix_rt::test]
async fn a_change_that_cannot_be_logged_is_refused_and_not_made() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let failing_trigger =
        "CREATE TRIGGER no_room BEFORE INSERT ON audit_list BEGIN SELECT raise(ABORT, 'no room'); END";
    open_database(&fixture).execute_batch(failing_trigger).unwrap();
    let (status, refused) = call(&service, "POST", "/admin/v1/clients", Some(json!({"name": "Acme"}))).await;
    assert_eq!((status, &refused["code"]), (503, &json!("storage_unavailable")));
    assert_eq!(call(&service, "GET", "/admin/v1/clients", None).await.1["total"], 0);
    open_database(&fixture).execute_batch("DROP TRIGGER no_room").unwrap();
    assert_eq!(call(&service, "POST", "/admin/v1/clients", Some(json!({"name": "Acme"}))).await.0, 200);
}

#[actix_rt::test]
async fn a_key_is_issued_or_rotated_only_with_an_entry_in_the_log_of_the_client() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let client = fixture.create_client().await;
    let (_, key) = fixture.create_key(&client, |_| {}).await;
    let failing_trigger =
        "CREATE TRIGGER no_room BEFORE INSERT ON client_log_list BEGIN SELECT raise(ABORT, 'no room'); END";
    open_database(&fixture).execute_batch(failing_trigger).unwrap();
    let (keys, rotate) = (format!("/admin/v1/clients/{client}/keys"), format!("/admin/v1/keys/{key}/rotate"));
    for (uri, body) in [(&keys, json!({})), (&rotate, json!({"overlap_s": 0}))] {
        assert_eq!(call(&service, "POST", uri, Some(body)).await.0, 503, "{uri}");
    }
    let (_, listed) = call(&service, "GET", &keys, None).await;
    let listed = listed["keys"].as_array().unwrap();
    assert!(listed.len() == 1 && listed[0]["expires_at"].is_null(), "the text of a new key would be lost: {listed:?}");
}

#[actix_rt::test]
async fn the_log_can_be_read_from_a_number_or_a_time() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let mut times = Vec::new();
    for number in 0..5 {
        times.push(fixture.clock.now());
        call(&service, "POST", "/admin/v1/clients", Some(json!({"name": format!("Client {number}")}))).await;
        fixture.clock.advance(Duration::from_secs(60));
    }
    let numbers = async |query: &str| {
        let (status, page) = call(&service, "GET", &format!("/admin/v1/audit-log?{query}"), None).await;
        let entries = page["entries"].as_array().into_iter().flatten();
        (status, entries.map(|entry| entry["number"].as_u64().unwrap()).collect::<Vec<_>>())
    };
    assert_eq!(numbers("after=3&limit=2").await, (200, vec![4, 5]));
    assert_eq!(numbers("after=10").await, (200, vec![]));
    for (index, time) in times.iter().enumerate() {
        // Each change has two entries.
        let first = 2 * index as u64 + 1;
        assert_eq!(numbers(&format!("since={time}&limit=3")).await.1[0], first, "{time}");
    }
    assert_eq!(numbers(&format!("since={}&after=8", times[1])).await.1, [9, 10]);
    assert_eq!(numbers(&format!("since={}", fixture.clock.now())).await, (200, vec![]));
    for query in ["since=yesterday", "since=", "limit=0", "limit=101", "after=-1", "page=1"] {
        assert_eq!(numbers(query).await.0, 400, "{query}");
    }
}

#[actix_rt::test]
async fn verification_names_the_first_broken_entry() {
    let fixture = StoreFixture::new();
    let url = serve(&fixture);
    for name in ["Acme", "Bank", "Cafe"] {
        run_admin(&url, &["clients", "create", name]).await;
    }
    let (code, out, _) = run_admin(&url, &["audit-log", "--verify"]).await;
    assert!(code == ExitCode::SUCCESS && out.contains("createClient") && out.contains("verified:"), "{out}");
    let head = printed_value(&out, "head: ").to_owned();
    assert_eq!(run_admin(&url, &["audit-log", "--verify", "--head", &head]).await.0, ExitCode::SUCCESS);
    let database = open_database(&fixture);
    database.execute_batch("DROP TRIGGER audit_cut; DELETE FROM audit_list WHERE _entry = 6").unwrap();
    assert_eq!(
        run_admin(&url, &["audit-log", "--verify"]).await.0,
        ExitCode::SUCCESS,
        "without the head, a missing end is not detected"
    );
    let (code, out, _) = run_admin(&url, &["audit-log", "--verify", "--head", &head]).await;
    assert!(
        code == ExitCode::from(1) && out.ends_with("not as it was written: entry 6 is missing: the end was cut off\n"),
        "{out}"
    );
    database.execute_batch("DELETE FROM audit_list WHERE _entry = 2").unwrap();
    let (code, out, _) = run_admin(&url, &["--json", "audit-log", "--verify", "--since", "2100-01-01T00:00:00Z"]).await;
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &report["fault"], &report["entries"]),
        (ExitCode::from(1), &json!("entry 2 is missing"), &json!([]))
    );
}
