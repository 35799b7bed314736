//! Grants above the limit, which a second operator must confirm.

use std::process::ExitCode;
use std::time::Duration;

use sakshi_domain::grant_request::GrantState;
use sakshi_domain::limits::GRANT_REQUEST_TTL;
use sakshi_domain::operator::Signatory;
use sakshi_operator::InternalDeps;
use sakshi_store::{DecideGrant, DecideGrantOutcome};
use serde_json::{Value, json};

use crate::cli::{printed_value, run_admin, run_command, serve_with};
use crate::operator::{call, listener};
use crate::operators::{add_operator, call_with};
use crate::store_fixture::StoreFixture;

const REQUESTS: &str = "/admin/v1/credits/requests";

/// Returns the listener's dependencies, with a limit of 100 credits.
fn deps_with_limit(fixture: &StoreFixture) -> InternalDeps {
    InternalDeps { second_person_above: Some(100), ..fixture.internal() }
}

#[actix_rt::test]
async fn a_grant_above_the_limit_waits_until_another_operator_confirms_it() {
    let fixture = StoreFixture::new();
    let service = listener(deps_with_limit(&fixture)).await;
    let (_, asha_token) = add_operator(&service, json!({"name": "Asha", "role": "owner"})).await;
    let (_, ravi_token) = add_operator(&service, json!({"name": "Ravi", "role": "owner"})).await;
    let client = fixture.create_client().await;
    let uri = format!("/admin/v1/clients/{client}/credits");
    let grant = |amount: u64| Some(json!({"amount": amount, "reference": "invoice-8"}));
    let (status, requested) = call_with(&service, &asha_token, "POST", &uri, grant(101)).await;
    assert_eq!((status, &requested["balance"], &requested["entry"]), (200, &json!(0), &Value::Null));
    assert_eq!(
        (&requested["request"]["state"], &requested["request"]["asked_by_name"]),
        (&json!("pending"), &json!("Asha"))
    );
    let (_, second) = call_with(&service, &ravi_token, "POST", &uri, grant(101)).await;
    assert_eq!(second["request"], requested["request"], "a repeated request returns the same grant request");
    let (status, refused) = call_with(&service, &ravi_token, "POST", &uri, grant(102)).await;
    assert_eq!((status, &refused["code"]), (409, &json!("reference_reused")));
    let confirm = format!("{REQUESTS}/{}/confirm", requested["request"]["grant_id"].as_str().unwrap());
    let (status, refused) = call_with(&service, &asha_token, "POST", &confirm, None).await;
    assert_eq!((status, &refused["code"]), (409, &json!("second_person_required")));
    for _ in 0..2 {
        let (status, moved) = call_with(&service, &ravi_token, "POST", &confirm, None).await;
        assert_eq!((status, &moved["balance"], &moved["entry"]["amount"]), (200, &json!(101), &json!(101)));
        assert_eq!(moved["request"]["decided_by_name"], "Ravi");
    }
    let (status, repeated) = call_with(&service, &asha_token, "POST", &uri, grant(101)).await;
    assert_eq!((status, &repeated["entry"]["amount"], &repeated["request"]), (200, &json!(101), &Value::Null));
    let (status, refused) =
        call_with(&service, &asha_token, "POST", &confirm.replace("/confirm", "/refuse"), None).await;
    assert_eq!((status, &refused["code"]), (409, &json!("already_decided")));
}

#[actix_rt::test]
async fn small_grants_and_deductions_need_no_confirmation() {
    let fixture = StoreFixture::new();
    let service = listener(deps_with_limit(&fixture)).await;
    let uri = format!("/admin/v1/clients/{}/credits", fixture.create_client().await);
    let movement = |kind: &str, amount: i64| {
        Some(json!({"kind": kind, "amount": amount, "reference": format!("{kind} {amount}")}))
    };
    for (kind, amount, balance) in [("grant", 100, 100), ("adjust", 100, 200), ("adjust", -150, 50)] {
        let (status, moved) = call(&service, "POST", &uri, movement(kind, amount)).await;
        assert_eq!((status, &moved["balance"]), (200, &json!(balance)), "{kind} {amount}");
    }
    let (_, requested) = call(&service, "POST", &uri, movement("adjust", 101)).await;
    assert_eq!(
        (&requested["balance"], &requested["entry"]),
        (&json!(50), &Value::Null),
        "a large adjustment needs confirmation too"
    );
    assert_eq!(call(&service, "POST", "/admin/v1/clients/cl_none/credits", movement("grant", 101)).await.0, 404);
}

#[actix_rt::test]
async fn a_refused_or_expired_grant_request_grants_nothing() {
    let fixture = StoreFixture::new();
    let service = listener(deps_with_limit(&fixture)).await;
    let (_, ravi_token) = add_operator(&service, json!({"name": "Ravi", "role": "owner"})).await;
    let uri = format!("/admin/v1/clients/{}/credits", fixture.create_client().await);
    let grant = |reference: &str| Some(json!({"amount": 500, "reference": reference}));
    let mut paths = Vec::new();
    for reference in ["refused", "too old"] {
        let (_, requested) = call(&service, "POST", &uri, grant(reference)).await;
        paths.push(format!("{REQUESTS}/{}", requested["request"]["grant_id"].as_str().unwrap()));
    }
    let (status, refused) = call(&service, "POST", &format!("{}/refuse", paths[0]), None).await;
    assert_eq!((status, &refused["state"]), (200, &json!("refused")), "the requesting operator may withdraw it");
    assert_eq!(call_with(&service, &ravi_token, "POST", &format!("{}/confirm", paths[0]), None).await.0, 409);
    let (_, listed) = call(&service, "GET", REQUESTS, None).await;
    assert_eq!(listed["requests"].as_array().unwrap().len(), 2);
    fixture.clock.advance(GRANT_REQUEST_TTL + Duration::from_millis(1));
    assert_eq!(call_with(&service, &ravi_token, "POST", &format!("{}/confirm", paths[1]), None).await.0, 404);
    assert_eq!(call(&service, "GET", REQUESTS, None).await.1, json!({"requests": []}));
    assert_eq!(call(&service, "GET", &uri, None).await.1, json!({"balance": 0}));
}

#[actix_rt::test]
async fn repeating_a_confirmed_request_moves_credits_that_did_not_move() {
    let fixture = StoreFixture::new();
    let service = listener(deps_with_limit(&fixture)).await;
    let uri = format!("/admin/v1/clients/{}/credits", fixture.create_client().await);
    let grant = || Some(json!({"amount": 500, "reference": "invoice-9"}));
    let (_, requested) = call(&service, "POST", &uri, grant()).await;
    // The node of the second operator stops between the decision and the movement.
    let decision = DecideGrant {
        id: requested["request"]["grant_id"].as_str().unwrap().parse().unwrap(),
        by: Signatory { id: "op_ravi".to_owned(), name: "Ravi".to_owned() },
        decision: GrantState::Confirmed,
    };
    let decided = fixture.store.decide_grant(decision).await;
    assert!(matches!(decided, Ok(DecideGrantOutcome::Decided(_))), "{decided:?}");
    assert_eq!(call(&service, "GET", &uri, None).await.1, json!({"balance": 0}));
    for _ in 0..2 {
        let (status, moved) = call(&service, "POST", &uri, grant()).await;
        assert_eq!((status, &moved["balance"], &moved["entry"]["amount"]), (200, &json!(500), &json!(500)), "{moved}");
    }
}

#[actix_rt::test]
async fn the_audit_log_names_both_operators_of_a_grant() {
    let fixture = StoreFixture::new();
    let service = listener(deps_with_limit(&fixture)).await;
    let (id, ravi_token) = add_operator(&service, json!({"name": "Ravi", "role": "owner"})).await;
    let uri = format!("/admin/v1/clients/{}/credits", fixture.create_client().await);
    let (_, requested) = call(&service, "POST", &uri, Some(json!({"amount": 500, "reference": "invoice-9"}))).await;
    let grant = requested["request"]["grant_id"].as_str().unwrap();
    call_with(&service, &ravi_token, "POST", &format!("{REQUESTS}/{grant}/confirm"), None).await;
    let (_, log) = call(&service, "GET", "/admin/v1/audit-log?limit=100", None).await;
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
async fn a_grant_is_requested_and_confirmed_by_commands() {
    let fixture = StoreFixture::new();
    let url = serve_with(deps_with_limit(&fixture));
    let client = fixture.create_client().await;
    let (code, out, _) =
        run_admin(&url, &["credits", "grant", client.as_str(), "500", "--reference", "invoice-9"]).await;
    assert!(code == ExitCode::SUCCESS && out.contains("pending"), "{out}");
    let (_, out, _) = run_admin(&url, &["credits", "requests"]).await;
    let grant = out.split_whitespace().find(|word| word.starts_with("gr_")).unwrap().to_owned();
    let (code, _, err) = run_admin(&url, &["credits", "confirm", &grant]).await;
    assert!(code == ExitCode::from(1) && err.contains("Another operator must confirm this"), "{err}");
    let (_, out, _) = run_admin(&url, &["operators", "add", "Ravi", "--role", "owner"]).await;
    let token = printed_value(&out, "token").to_owned();
    let (code, out, _) = run_command(&["admin", "--url", &url, "--token", &token, "credits", "confirm", &grant]).await;
    assert!(code == ExitCode::SUCCESS && out.contains("confirmed"), "{out}");
    assert!(run_admin(&url, &["credits", "balance", client.as_str()]).await.1.contains("500"));
}
