//! Credits above the limit: a second operator confirms them, for every way of granting.

use std::process::ExitCode;
use std::time::Duration;

use sakshi_domain::limits::GRANT_REQUEST_TTL;
use sakshi_operator::InternalDeps;
use serde_json::{Value, json};

use crate::cli::{admin, serve_with, typed, word_after};
use crate::operator::{ask, listener};
use crate::operators::{add, ask_with};
use crate::store_fixture::StoreFixture;

const REQUESTS: &str = "/admin/v1/credits/requests";

/// Returns the listener's dependencies, with a limit of 100 credits.
fn limited(fixture: &StoreFixture) -> InternalDeps {
    InternalDeps { second_person_above: Some(100), ..fixture.internal() }
}

#[actix_rt::test]
async fn a_grant_above_the_limit_waits_until_another_operator_confirms_it() {
    let fixture = StoreFixture::new();
    let service = listener(limited(&fixture)).await;
    let (_, one) = add(&service, json!({"name": "Asha", "role": "owner"})).await;
    let (_, other) = add(&service, json!({"name": "Ravi", "role": "owner"})).await;
    let client = fixture.client().await;
    let uri = format!("/admin/v1/clients/{client}/credits");
    let grant = |amount: u64| Some(json!({"amount": amount, "reference": "invoice-8"}));
    let (status, asked) = ask_with(&service, &one, "POST", &uri, grant(101)).await;
    assert_eq!((status, &asked["balance"], &asked["entry"]), (200, &json!(0), &Value::Null));
    assert_eq!((&asked["request"]["state"], &asked["request"]["asked_by_name"]), (&json!("pending"), &json!("Asha")));
    let (_, again) = ask_with(&service, &other, "POST", &uri, grant(101)).await;
    assert_eq!(again["request"], asked["request"], "the same again is the same request");
    let (status, refused) = ask_with(&service, &other, "POST", &uri, grant(102)).await;
    assert_eq!((status, &refused["code"]), (409, &json!("reference_reused")));
    let confirm = format!("{REQUESTS}/{}/confirm", asked["request"]["grant_id"].as_str().unwrap());
    let (status, refused) = ask_with(&service, &one, "POST", &confirm, None).await;
    assert_eq!((status, &refused["code"]), (409, &json!("second_person_required")));
    for _ in 0..2 {
        let (status, moved) = ask_with(&service, &other, "POST", &confirm, None).await;
        assert_eq!((status, &moved["balance"], &moved["entry"]["amount"]), (200, &json!(101), &json!(101)));
        assert_eq!(moved["request"]["decided_by_name"], "Ravi");
    }
    let (status, repeated) = ask_with(&service, &one, "POST", &uri, grant(101)).await;
    assert_eq!((status, &repeated["entry"]["amount"], &repeated["request"]), (200, &json!(101), &Value::Null));
    let (status, refused) = ask_with(&service, &one, "POST", &confirm.replace("/confirm", "/refuse"), None).await;
    assert_eq!((status, &refused["code"]), (409, &json!("already_decided")));
}

#[actix_rt::test]
async fn what_is_within_the_limit_or_takes_credits_away_does_not_wait() {
    let fixture = StoreFixture::new();
    let service = listener(limited(&fixture)).await;
    let uri = format!("/admin/v1/clients/{}/credits", fixture.client().await);
    let movement = |kind: &str, amount: i64| {
        Some(json!({"kind": kind, "amount": amount, "reference": format!("{kind} {amount}")}))
    };
    for (kind, amount, balance) in [("grant", 100, 100), ("adjust", 100, 200), ("adjust", -150, 50)] {
        let (status, moved) = ask(&service, "POST", &uri, movement(kind, amount)).await;
        assert_eq!((status, &moved["balance"]), (200, &json!(balance)), "{kind} {amount}");
    }
    let (_, asked) = ask(&service, "POST", &uri, movement("adjust", 101)).await;
    assert_eq!((&asked["balance"], &asked["entry"]), (&json!(50), &Value::Null), "an adjustment is no way around");
    assert_eq!(ask(&service, "POST", "/admin/v1/clients/cl_none/credits", movement("grant", 101)).await.0, 404);
}

#[actix_rt::test]
async fn a_request_that_was_refused_or_is_too_old_grants_nothing() {
    let fixture = StoreFixture::new();
    let service = listener(limited(&fixture)).await;
    let (_, other) = add(&service, json!({"name": "Ravi", "role": "owner"})).await;
    let uri = format!("/admin/v1/clients/{}/credits", fixture.client().await);
    let grant = |reference: &str| Some(json!({"amount": 500, "reference": reference}));
    let mut paths = Vec::new();
    for reference in ["refused", "too old"] {
        let (_, asked) = ask(&service, "POST", &uri, grant(reference)).await;
        paths.push(format!("{REQUESTS}/{}", asked["request"]["grant_id"].as_str().unwrap()));
    }
    let (status, refused) = ask(&service, "POST", &format!("{}/refuse", paths[0]), None).await;
    assert_eq!((status, &refused["state"]), (200, &json!("refused")), "who asked may withdraw it");
    assert_eq!(ask_with(&service, &other, "POST", &format!("{}/confirm", paths[0]), None).await.0, 409);
    let (_, listed) = ask(&service, "GET", REQUESTS, None).await;
    assert_eq!(listed["requests"].as_array().unwrap().len(), 2);
    fixture.clock.advance(GRANT_REQUEST_TTL + Duration::from_millis(1));
    assert_eq!(ask_with(&service, &other, "POST", &format!("{}/confirm", paths[1]), None).await.0, 404);
    assert_eq!(ask(&service, "GET", REQUESTS, None).await.1, json!({"requests": []}));
    assert_eq!(ask(&service, "GET", &uri, None).await.1, json!({"balance": 0}));
}

#[actix_rt::test]
async fn the_audit_log_names_both_operators_of_a_grant() {
    let fixture = StoreFixture::new();
    let service = listener(limited(&fixture)).await;
    let (id, other) = add(&service, json!({"name": "Ravi", "role": "owner"})).await;
    let uri = format!("/admin/v1/clients/{}/credits", fixture.client().await);
    let (_, asked) = ask(&service, "POST", &uri, Some(json!({"amount": 500, "reference": "invoice-9"}))).await;
    let grant = asked["request"]["grant_id"].as_str().unwrap();
    ask_with(&service, &other, "POST", &format!("{REQUESTS}/{grant}/confirm"), None).await;
    let (_, log) = ask(&service, "GET", "/admin/v1/audit-log?limit=100", None).await;
    let entries = log["entries"].as_array().unwrap();
    let [.., answered, confirmed, moved] = entries.as_slice() else { panic!("{log}") };
    assert_eq!(answered["entry"]["after"]["request"]["asked_by"], "settings");
    let confirmed = &confirmed["entry"];
    assert_eq!((&confirmed["operation"], &confirmed["operator_id"]), (&json!("confirmGrant"), &json!(id)));
    assert_eq!((&confirmed["ids"], &confirmed["before"]["state"]), (&json!({"grant_id": grant}), &json!("pending")));
    assert_eq!(
        (&moved["entry"]["after"]["balance"], &moved["entry"]["after"]["request"]["decided_by"]),
        (&json!(500), &json!(id))
    );
}

#[actix_rt::test]
async fn the_command_line_asks_and_another_operator_confirms_there() {
    let fixture = StoreFixture::new();
    let url = serve_with(limited(&fixture));
    let client = fixture.client().await;
    let (code, out, _) = admin(&url, &["credits", "grant", client.as_str(), "500", "--reference", "invoice-9"]).await;
    assert!(code == ExitCode::SUCCESS && out.contains("pending"), "{out}");
    let (_, out, _) = admin(&url, &["credits", "requests"]).await;
    let grant = out.split_whitespace().find(|word| word.starts_with("gr_")).unwrap().to_owned();
    let (code, _, err) = admin(&url, &["credits", "confirm", &grant]).await;
    assert!(code == ExitCode::from(1) && err.contains("Another operator must confirm this"), "{err}");
    let (_, out, _) = admin(&url, &["operators", "add", "Ravi", "--role", "owner"]).await;
    let token = word_after(&out, "token").to_owned();
    let (code, out, _) = typed(&["admin", "--url", &url, "--token", &token, "credits", "confirm", &grant]).await;
    assert!(code == ExitCode::SUCCESS && out.contains("confirmed"), "{out}");
    assert!(admin(&url, &["credits", "balance", client.as_str()]).await.1.contains("500"));
}
