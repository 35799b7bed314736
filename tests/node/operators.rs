//! Operators: roles allow what the table says, and a token works until it is revoked or expires.

use std::process::ExitCode;
use std::time::Duration;

use actix_http::Request;
use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::test::{TestRequest, read_body};
use sakshi_domain::clock::Clock as _;
use serde_json::{Value, json};

use crate::cli::{printed_value, run_admin, run_command, serve};
use crate::operator::{call, document, listener};
use crate::operator_document::{OPERATIONS, example_uri};
use crate::store_fixture::{CONNECTOR_TOKEN, StoreFixture};

/// Operations that the role `support` may do in addition to reading.
const SUPPORT_OPERATIONS: [&str; 5] = ["createClient", "updateClient", "createApp", "revokeKey", "listUsers"];

/// Adds an operator; returns the operator's id and token.
pub(crate) async fn add_operator<S, B>(service: &S, body: Value) -> (String, String)
where
    S: Service<Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody,
{
    let (status, added) = call(service, "POST", "/admin/v1/operators", Some(body)).await;
    assert_eq!(status, 200, "{added}");
    (added["operator_id"].as_str().unwrap().to_owned(), added["token"].as_str().unwrap().to_owned())
}

/// Sends a request with this token; returns status and body.
pub(crate) async fn call_with<S, B>(
    service: &S,
    token: &str,
    method: &str,
    uri: &str,
    body: Option<Value>,
) -> (u16, Value)
where
    S: Service<Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody,
{
    let request = TestRequest::default().method(method.parse().unwrap()).uri(uri);
    let request = request.insert_header(("authorization", format!("Bearer {token}")));
    let request = if let Some(body) = body { request.set_json(body) } else { request };
    let response = service.call(request.to_request()).await.unwrap();
    (response.status().as_u16(), serde_json::from_slice(&read_body(response).await).unwrap_or(Value::Null))
}

#[actix_rt::test]
async fn each_role_may_do_exactly_what_the_table_says() {
    let service = listener(StoreFixture::new().internal()).await;
    let document = document(&service).await;
    for role in ["owner", "support", "auditor"] {
        let (_, token) = add_operator(&service, json!({"name": "Asha", "role": role})).await;
        for (method, path, id, _) in OPERATIONS.into_iter().filter(|(.., token)| *token == Some("admin_token")) {
            let operation = &document["paths"][path][method.to_lowercase()];
            // An export has key digests and full URLs, and the list of users has e-mail addresses.
            let is_read = method == "GET" && !["exportClient", "listUsers"].contains(&id);
            let is_allowed = is_read || role == "owner" || role == "support" && SUPPORT_OPERATIONS.contains(&id);
            assert_eq!(operation["x-roles"].as_array().unwrap().contains(&json!(role)), is_allowed, "{role} {id}");
            let body = ["POST", "PUT", "PATCH"].contains(&method).then(|| json!({"planted": 1}));
            let (status, answer) = call_with(&service, &token, method, &example_uri(path), body).await;
            assert_eq!(status == 403, !is_allowed, "{role} {id}: {status}");
            assert!(is_allowed || answer["code"] == "forbidden", "{answer}");
            assert_ne!(status, 401, "{role} {id}");
        }
        let (status, _) = call_with(&service, &token, "POST", "/internal/v1/flows/esign", Some(json!({}))).await;
        assert_eq!(status, 401, "reports are for connectors");
    }
    assert_eq!(call_with(&service, CONNECTOR_TOKEN, "GET", "/admin/v1/operators", None).await.0, 401);
}

#[actix_rt::test]
async fn support_suspends_clients_and_changes_nothing_else_of_them() {
    let service = listener(StoreFixture::new().internal()).await;
    let (_, token) = add_operator(&service, json!({"name": "Asha", "role": "support"})).await;
    let (_, created) = call_with(&service, &token, "POST", "/admin/v1/clients", Some(json!({"name": "Acme"}))).await;
    let path = format!("/admin/v1/clients/{}", created["client_id"].as_str().unwrap());
    for change in [
        json!({"portal_key_sign_in": true}),
        json!({"result_ttl_s": 60}),
        json!({"name": "Other"}),
        json!({"suspended": true, "requests_per_second": 1}),
    ] {
        let (status, answer) = call_with(&service, &token, "PATCH", &path, Some(change.clone())).await;
        assert_eq!((status, &answer["code"]), (403, &json!("forbidden")), "{change}");
    }
    let (status, answer) = call_with(&service, &token, "PATCH", &path, Some(json!({"suspended": true}))).await;
    assert_eq!((status, &answer["name"]), (200, &json!("Acme")), "{answer}");
}

#[actix_rt::test]
async fn a_token_works_until_its_operator_is_revoked_or_it_expires() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let end = fixture.clock.now() + Duration::from_secs(60);
    let (asha_id, asha_token) = add_operator(&service, json!({"name": "Asha", "role": "owner"})).await;
    let (_, ravi_token) = add_operator(&service, json!({"name": "Ravi", "role": "owner", "expires_at": end})).await;
    // A malformed body is not read before the caller is known.
    let status = async |token: &str| {
        let (status, _) = call_with(&service, token, "POST", "/admin/v1/clients", Some(json!({"name": 7}))).await;
        status
    };
    assert_eq!((status(&asha_token).await, status(&ravi_token).await), (400, 400));
    let (code, answer) = call(&service, "DELETE", &format!("/admin/v1/operators/{asha_id}"), None).await;
    assert_eq!((code, &answer["revoked_at"]), (200, &json!(fixture.clock.now())));
    assert_eq!((status(&asha_token).await, status(&ravi_token).await), (401, 400));
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(status(&ravi_token).await, 401);
    assert_eq!(call(&service, "DELETE", "/admin/v1/operators/op_none", None).await.0, 404);
    // The second time is in the year 10000 of UTC: the record could not be read again, nor any list of operators.
    for end in [json!(fixture.clock.now()), json!("9999-12-31T23:59:59-01:00")] {
        let refused = json!({"name": "Mira", "role": "owner", "expires_at": end});
        assert_eq!(call(&service, "POST", "/admin/v1/operators", Some(refused)).await.0, 400, "{end}");
    }
    assert_eq!(
        call(&service, "POST", "/admin/v1/operators", Some(json!({"name": "Mira", "role": "king"}))).await.0,
        400
    );
}

#[actix_rt::test]
async fn the_audit_log_names_the_operator() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (id, token) = add_operator(&service, json!({"name": "Asha", "role": "support"})).await;
    assert_eq!(call_with(&service, &token, "POST", "/admin/v1/clients", Some(json!({"name": "Acme"}))).await.0, 200);
    let (_, log) = call(&service, "GET", "/admin/v1/audit-log", None).await;
    let entry = |index: usize| &log["entries"][index]["entry"];
    assert_eq!(
        (&entry(0)["asked"], &entry(1)["after"]),
        (&json!({"name": "Asha", "role": "support"}), &json!({"operator_id": id}))
    );
    for index in [2, 3] {
        assert_eq!((&entry(index)["operator_id"], &entry(index)["operator"]), (&json!(id), &json!("Asha")));
    }
    assert!(!log.to_string().contains(&token[3..]));
}

#[actix_rt::test]
async fn forbidden_attempts_are_in_the_audit_log() {
    let service = listener(StoreFixture::new().internal()).await;
    let (id, token) = add_operator(&service, json!({"name": "Asha", "role": "auditor"})).await;
    let secret = json!({"data_webhook_url": "https://elsewhere.example/planted"});
    assert_eq!(call_with(&service, &token, "PATCH", "/admin/v1/apps/app_1", Some(secret)).await.0, 403);
    assert_eq!(call_with(&service, &token, "GET", "/admin/v1/clients/cl_1/export", None).await.0, 403);
    let (_, log) = call(&service, "GET", "/admin/v1/audit-log", None).await;
    let refused: Vec<_> = log["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["entry"])
        .filter(|entry| entry["stage"] == "refused")
        .collect();
    let summary = |entry: &Value| {
        (entry["operation"].clone(), entry["operator_id"].clone(), entry["ids"].clone(), entry["code"].clone())
    };
    assert_eq!(
        refused.into_iter().map(summary).collect::<Vec<_>>(),
        [("updateApp", json!({"app_id": "app_1"})), ("exportClient", json!({"client_id": "cl_1"}))]
            .map(|(operation, ids)| (json!(operation), json!(id), ids, json!("forbidden")))
    );
    assert!(!log.to_string().contains("planted"));
}

#[actix_rt::test]
async fn full_urls_are_shown_to_owners_only() {
    let service = listener(StoreFixture::new().internal()).await;
    let (_, client) = call(&service, "POST", "/admin/v1/clients", Some(json!({"name": "Acme"}))).await;
    let apps = format!("/admin/v1/clients/{}/apps", client["client_id"].as_str().unwrap());
    let (_, app) = call(&service, "POST", &apps, Some(json!({"name": "Till"}))).await;
    let app = format!("/admin/v1/apps/{}", app["app_id"].as_str().unwrap());
    let full_url = "https://hooks.example:8443/secret-path?token=planted";
    assert_eq!(
        call(&service, "PATCH", &app, Some(json!({"consent_webhook_url": full_url, "data_webhook_url": full_url})))
            .await
            .0,
        200
    );
    for (role, expected) in
        [("owner", full_url), ("support", "https://hooks.example:8443/"), ("auditor", "https://hooks.example:8443/")]
    {
        let (_, token) = add_operator(&service, json!({"name": "Asha", "role": role})).await;
        let (_, app_view) = call_with(&service, &token, "GET", &app, None).await;
        let (_, list) = call_with(&service, &token, "GET", &apps, None).await;
        for view in [&app_view, &list["apps"][0]] {
            assert_eq!(
                (&view["consent_webhook_url"], &view["data_webhook_url"]),
                (&json!(expected), &json!(expected)),
                "{role}"
            );
            assert_eq!(view["historical_webhook_url"], Value::Null);
        }
    }
}

/// Runs a command of `admin` with this token; returns its exit code, output and errors.
async fn run_admin_with(url: &str, token: &str, arguments: &[&str]) -> (ExitCode, String, String) {
    run_command(&[&["admin", "--url", url, "--token", token], arguments].concat()).await
}

#[actix_rt::test]
async fn operators_are_added_listed_and_revoked_from_the_command_line() {
    let url = serve(&StoreFixture::new());
    let (code, out, _) =
        run_admin(&url, &["operators", "add", "Asha Rao", "--role", "auditor", "--expires", "2100-01-01T00:00:00Z"])
            .await;
    assert_eq!(code, ExitCode::SUCCESS);
    let (id, token) = (printed_value(&out, "operator_id").to_owned(), printed_value(&out, "token").to_owned());
    let (_, out, _) = run_admin_with(&url, &token, &["operators", "list"]).await;
    assert!(out.contains(&id) && out.contains("Asha Rao") && out.contains("auditor") && !out.contains(&token), "{out}");
    let (code, _, err) = run_admin_with(&url, &token, &["clients", "create", "Acme"]).await;
    assert!(code == ExitCode::from(1) && err.contains("Your role does not include this operation."), "{err}");
    assert_eq!(run_admin(&url, &["operators", "revoke", &id]).await.0, ExitCode::SUCCESS);
    let (code, _, err) = run_admin_with(&url, &token, &["operators", "list"]).await;
    assert!(code == ExitCode::from(1) && err.contains("does not take this token"), "{err}");
}
