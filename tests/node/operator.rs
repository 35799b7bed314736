//! The operator's API on the internal listener, on a real store.

use std::sync::atomic::Ordering;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service, read_body};
use actix_web::{App, Error};
use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::EventId;
use sakshi_kit::records;
use sakshi_operator::{InternalDeps, configure};
use sakshi_service::api_key::ApiKey;
use sakshi_store::CreateEvent;
use sakshi_web::edge::edge;
use sakshi_wire::ISO_8601;
use serde_json::{Value, json};

use crate::document::assert_described;
use crate::operator_document::{OPERATIONS, example_uri};
use crate::store_fixture::{StoreFixture, TOKEN};

/// Returns the internal listener with these dependencies.
pub(crate) async fn listener(
    deps: InternalDeps,
) -> impl Service<actix_http::Request, Response = ServiceResponse<impl MessageBody>, Error = Error> {
    init_service(App::new().wrap(from_fn(edge)).configure(|cfg| configure(cfg, deps))).await
}

/// Sends a request as the operator; returns status and body, which must match the document.
pub(crate) async fn call<S, B>(service: &S, method: &str, uri: &str, body: Option<Value>) -> (u16, Value)
where
    S: Service<actix_http::Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    let mut request = TestRequest::default().method(method.parse().unwrap()).uri(uri);
    request = request.insert_header(("authorization", format!("Bearer {TOKEN}")));
    if let Some(body) = body {
        request = request.set_json(body);
    }
    let response = service.call(request.to_request()).await.unwrap();
    let status = response.status().as_u16();
    let answer = serde_json::from_slice(&read_body(response).await).unwrap_or(Value::Null);
    assert_described(&document(service).await, method, uri, status, &answer);
    (status, answer)
}

/// Returns the listener's document.
pub(crate) async fn document<S, B>(service: &S) -> Value
where
    S: Service<actix_http::Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    let request = TestRequest::get().uri("/openapi.json").insert_header(("authorization", format!("Bearer {TOKEN}")));
    let response = service.call(request.to_request()).await.unwrap();
    assert_eq!(
        (response.status().as_u16(), response.headers().get("content-type").unwrap().as_bytes()),
        (200, &b"application/json"[..])
    );
    serde_json::from_slice(&read_body(response).await).unwrap()
}

/// Returns a member that must be a string.
fn member_text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no {name} in {value}")).to_owned()
}

#[actix_rt::test]
async fn every_protected_route_accepts_only_its_token() {
    let service = listener(StoreFixture::new().internal()).await;
    let tokens = [Some("admin_token"), Some("connector_token")];
    for (method, path, _, _) in OPERATIONS.into_iter().filter(|(.., token)| tokens.contains(token)) {
        let uri = &example_uri(path);
        for header in [None, Some("Bearer wrong"), Some("Bearer "), Some("Basic abc"), Some(TOKEN)] {
            let mut request = TestRequest::default().method(method.parse().unwrap()).uri(uri).set_json(json!({}));
            if let Some(header) = header {
                request = request.insert_header(("authorization", header));
            }
            let response = service.call(request.to_request()).await.unwrap();
            assert_eq!(response.status(), 401, "{method} {uri} {header:?}");
            assert_eq!(response.headers().get("www-authenticate").unwrap(), "Bearer");
        }
    }
}

#[actix_rt::test]
async fn an_operator_sets_up_a_client() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (status, client) = call(&service, "POST", "/admin/v1/clients", Some(json!({"name": "Acme"}))).await;
    let client = member_text(&client, "client_id");
    assert_eq!(status, 200);
    let (_, app) =
        call(&service, "POST", &format!("/admin/v1/clients/{client}/apps"), Some(json!({"name": "Kiosk"}))).await;
    let (_, key) =
        call(&service, "POST", &format!("/admin/v1/clients/{client}/keys"), Some(json!({"label": "first"}))).await;
    assert!(ApiKey::parse(&member_text(&key, "api_key")).is_some());
    let (_, listed) = call(&service, "GET", "/admin/v1/clients", None).await;
    assert_eq!((&listed["total"], &listed["clients"][0]["name"]), (&json!(1), &json!("Acme")));
    let (_, apps) = call(&service, "GET", &format!("/admin/v1/clients/{client}/apps"), None).await;
    assert_eq!(apps["apps"][0]["app_id"], app["app_id"]);
    let (_, keys) = call(&service, "GET", &format!("/admin/v1/clients/{client}/keys"), None).await;
    assert_eq!((&keys["keys"][0]["key_id"], &keys["keys"][0]["label"]), (&key["key_id"], &json!("first")));
    assert!(!keys.to_string().contains(&member_text(&key, "api_key")), "a key is shown once");
}

#[actix_rt::test]
async fn an_app_is_patched_field_by_field_and_null_removes_a_url() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let app = format!("/admin/v1/apps/{}", fixture.create_app(&fixture.create_client().await).await);
    let (status, changed) =
        call(&service, "PATCH", &app, Some(json!({"consent_webhook_url": "https://a.example/c"}))).await;
    assert_eq!((status, &changed["payload_spelling"]), (200, &json!("snake_case")));
    let (_, changed) = call(&service, "PATCH", &app, Some(json!({"payloadSpelling": "camelCase"}))).await;
    assert_eq!(
        (&changed["payload_spelling"], &changed["consent_webhook_url"]),
        (&json!("camelCase"), &json!("https://a.example/c"))
    );
    let (_, changed) = call(&service, "PATCH", &app, Some(json!({"consent_webhook_url": null}))).await;
    assert_eq!(changed["consent_webhook_url"], Value::Null);
    let invalid = json!({"payload_spelling": "kebab", "consent_webhook_url": "https://127.0.0.1/c",
        "data_webhook_url": "http://a.example",
        "historical_webhook_url": "nonsense"});
    let (status, refused) = call(&service, "PATCH", &app, Some(invalid)).await;
    let fields: Vec<&str> =
        refused["errors"].as_array().unwrap().iter().filter_map(|error| error["field"].as_str()).collect();
    assert_eq!(
        (status, fields),
        (400, vec!["payload_spelling", "consent_webhook_url", "data_webhook_url", "historical_webhook_url"])
    );
    let (status, refused) = call(&service, "PATCH", &app, Some(json!({"name": "x", "colour": 1}))).await;
    assert_eq!((status, refused["errors"].as_array().unwrap().len()), (400, 2));
}

#[actix_rt::test]
async fn a_rotated_key_overlaps_with_its_successor_and_a_revoked_one_ends_at_once() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let client = fixture.create_client().await;
    let (_, old_key) = fixture.create_key(&client, |key| key.label = "kiosk".into()).await;
    let rotate = format!("/admin/v1/keys/{old_key}/rotate");
    let (status, rotated) = call(&service, "POST", &rotate, Some(json!({"overlap_s": 60}))).await;
    assert_eq!((status, &rotated["previous"]["expires_at"]), (200, &json!("2023-11-14T22:14:20.000Z")));
    let (_, keys) = call(&service, "GET", &format!("/admin/v1/clients/{client}/keys"), None).await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2);
    assert!(keys["keys"].as_array().unwrap().iter().all(|key| key["label"] == "kiosk"));
    fixture.clock.advance(Duration::from_secs(60));
    let (status, refused) = call(&service, "POST", &rotate, Some(json!({}))).await;
    assert_eq!((status, &refused["code"]), (409, &json!("key_not_active")));
    let new_key = member_text(&rotated, "key_id");
    let (status, revoked) = call(&service, "DELETE", &format!("/admin/v1/keys/{new_key}"), None).await;
    assert_eq!((status, &revoked["revoked_at"]), (200, &json!("2023-11-14T22:14:20.000Z")));
    for (method, uri) in [("DELETE", "/admin/v1/keys/key_none"), ("POST", "/admin/v1/keys/key_none/rotate")] {
        assert_eq!(call(&service, method, uri, Some(json!({}))).await.0, 404);
    }
    let (status, _) = call(&service, "POST", "/admin/v1/clients/cl_none/keys", Some(json!({}))).await;
    assert_eq!(status, 404);
}

#[actix_rt::test]
async fn a_grant_is_idempotent_by_reference_and_a_balance_is_never_negative() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let client = fixture.create_client().await;
    let credits = format!("/admin/v1/clients/{client}/credits");
    for (body, status, code) in [
        (json!({"amount": 25, "reference": "inv-1"}), 200, None),
        (json!({"amount": 25, "reference": "inv-1"}), 200, None),
        (json!({"amount": 26, "reference": "inv-1"}), 409, Some("reference_reused")),
        (json!({"kind": "adjust", "amount": -26, "reference": "adj-1"}), 409, Some("balance_out_of_range")),
        (json!({"kind": "adjust", "amount": -5, "reference": "adj-2"}), 200, None),
        (json!({"amount": -5, "reference": "x"}), 400, Some("validation_failed")),
        (json!({"amount": 0, "kind": "adjust", "reference": "x"}), 400, Some("validation_failed")),
        (json!({"amount": 5, "kind": "debit", "reference": "x"}), 400, Some("validation_failed")),
        (json!({"amount": 5}), 400, Some("validation_failed")),
        (json!({"amount": 5.5, "reference": "x"}), 400, Some("validation_failed")),
    ] {
        let (actual, answer) = call(&service, "POST", &credits, Some(body.clone())).await;
        assert_eq!((actual, answer["code"].as_str()), (status, code), "{body}: {answer}");
    }
    let (_, balance) = call(&service, "GET", &credits, None).await;
    assert_eq!(balance, json!({"balance": 20}));
    let (_, statement) =
        call(&service, "GET", &format!("/admin/v1/clients/{client}/statement?page_size=1&page=2"), None).await;
    assert_eq!((&statement["total"], &statement["entries"][0]["kind"]), (&json!(2), &json!("adjust")));
    assert_eq!(
        (&statement["entries"][0]["amount"], &statement["entries"][0]["balance_after"]),
        (&json!(-5), &json!(20))
    );
    let (_, audit) = call(&service, "GET", "/admin/v1/credits/audit", None).await;
    assert_eq!((&audit["clean"], &audit["clients"][0]["sum"]), (&json!(true), &json!(20)));
    for uri in
        ["/admin/v1/clients/cl_none/credits", "/admin/v1/clients/cl_none/statement", "/admin/v1/clients/!/credits"]
    {
        assert_eq!(call(&service, "GET", uri, None).await.0, 404, "{uri}");
    }
}

#[actix_rt::test]
async fn invalid_requests_are_refused_by_the_field_names_that_were_sent() {
    let fixture = StoreFixture::new();
    let client = fixture.create_client().await;
    let app = fixture.create_app(&client).await;
    let service = listener(fixture.internal()).await;
    let environments_error = "must be an array that names some of sandbox, stage and production; leave it out for all";
    let [keys, credits, app, apps] =
        ["clients/{}/keys", "clients/{}/credits", "apps/{}", "clients/{}/apps"].map(|path| {
            let id = if path.starts_with("apps") { app.as_str() } else { client.as_str() };
            format!("/admin/v1/{}", path.replace("{}", id))
        });
    for (method, uri, body, expected) in [
        ("POST", &keys, json!({"environments": []}), json!([{"field": "environments", "message": environments_error}])),
        (
            "POST",
            &keys,
            json!({"environments": "stage"}),
            json!([{"field": "environments", "message": environments_error}]),
        ),
        (
            "POST",
            &keys,
            json!({"environments": ["stage", 7, "moon"], "expiresAt": 7, "label": ""}),
            json!([
                {"field": "label", "message": "must be 1 to 100 characters without control characters"},
                {"field": "environments[1]", "message": "must be one of sandbox, stage, production"},
                {"field": "environments[2]", "message": "must be one of sandbox, stage, production"},
                {"field": "expiresAt", "message": ISO_8601},
            ]),
        ),
        (
            "POST",
            &credits,
            json!({"kind": "take", "amount": "5"}),
            json!([
                {"field": "kind", "message": "must be grant or adjust"},
                {"field": "amount", "message": "must be a whole number from 1 to 1000000000000, or below zero for an \
                    adjustment"},
                {"field": "reference", "message": "is required"},
            ]),
        ),
        (
            "PATCH",
            &app,
            json!({"payloadSpelling": null, "data_webhook_url": 7}),
            json!([
                {"field": "payloadSpelling", "message": "must not be null; leave it out to keep what is set"},
                {"field": "data_webhook_url", "message": "must be a string"},
            ]),
        ),
        (
            "PATCH",
            &app,
            json!({"payload_spelling": "kebab"}),
            json!([{"field": "payload_spelling", "message": "must be snake_case or camelCase"}]),
        ),
        ("POST", &apps, json!({"name": 7}), json!([{"field": "name", "message": "must be a string"}])),
        ("POST", &apps, json!({}), json!([{"field": "name", "message": "is required"}])),
    ] {
        let (status, refused) = call(&service, method, uri, Some(body.clone())).await;
        assert_eq!((status, &refused["errors"]), (400, &expected), "{body}");
    }
    assert_eq!(call(&service, "PATCH", &app, Some(json!({"data_webhook_url": null}))).await.0, 200);
    assert_eq!(call(&service, "GET", &keys, None).await.1["keys"], json!([]));
}

#[actix_rt::test]
async fn the_events_of_an_app_are_listed_with_their_counts() {
    let fixture = StoreFixture::new();
    let client = fixture.create_client().await;
    let (app, event) = (fixture.create_app(&client).await, EventId::generate(client.partition(), 0));
    let now = fixture.clock.now();
    let created = records::event(event, client, app.clone(), now, Duration::from_secs(60));
    fixture.store.create_event(CreateEvent { event: created, events_max: None, idempotency: None }).await.unwrap();
    let service = listener(fixture.internal()).await;
    let (status, page) = call(&service, "GET", &format!("/admin/v1/apps/{app}/events"), None).await;
    let row = json!({"event_id": event, "name": "Open day & tour", "status": "active", "max_guests": 10,
        "registrations": 0, "scans": 0,
        "abandoned": 0, "created_at": now, "expires_at": now + Duration::from_secs(60)});
    assert_eq!((status, page), (200, json!({"page": 1, "page_size": 20, "total": 1, "events": [row]})));
    assert_eq!(call(&service, "GET", "/admin/v1/apps/app_none/events", None).await.0, 404);
    assert_eq!(call(&service, "GET", &format!("/admin/v1/apps/{app}/events?page=0"), None).await.0, 400);
}

#[actix_rt::test]
async fn probes_name_the_problem_and_need_no_token() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let probe = async |uri: &str| {
        let response = service.call(TestRequest::get().uri(uri).to_request()).await.unwrap();
        let status = response.status().as_u16();
        let answer = serde_json::from_slice(&read_body(response).await).unwrap();
        assert_described(&document(&service).await, "GET", uri, status, &answer);
        (status, answer)
    };
    assert_eq!((probe("/livez").await.0, probe("/readyz").await.0), (200, 200));
    fixture.health.draining.store(true, Ordering::SeqCst);
    let (status, body) = probe("/readyz").await;
    assert_eq!((status, &body["message"]), (503, &json!("it is draining")));
    assert_eq!(probe("/livez").await.0, 200);
    fixture.health.hung.store(true, Ordering::SeqCst);
    assert_eq!(probe("/livez").await.0, 503);
}

#[actix_rt::test]
async fn metrics_are_labelled_by_route_pattern_and_never_by_path() {
    let recorder = sakshi::telemetry::PrometheusRecorder::default();
    let deps = InternalDeps { metrics: metrics_renderer(&recorder), ..StoreFixture::new().internal() };
    let _guard = metrics::set_default_local_recorder(&recorder);
    let service = listener(deps).await;
    call(&service, "GET", "/admin/v1/clients/cl_secret/credits", None).await;
    call(&service, "GET", "/cl_secret", None).await;
    let response = service.call(TestRequest::get().uri("/metrics").to_request()).await.unwrap();
    let page = String::from_utf8(read_body(response).await.to_vec()).unwrap();
    let counted = |route: &str| {
        let mut lines = page.lines().filter(|line| line.starts_with("sakshi_http_requests_total"));
        lines.any(|line| {
            line.contains(&format!("route=\"{route}\"")) && line.contains("status=\"4xx\"") && line.ends_with(" 1")
        })
    };
    assert!(counted("/admin/v1/clients/{client_id}/credits") && counted("unmatched"), "{page}");
    assert!(!page.contains("cl_secret"));
}

#[actix_rt::test]
async fn the_tree_is_shown_and_an_unknown_delivery_gets_404() {
    let service = listener(StoreFixture::new().internal()).await;
    let (status, tree) = call(&service, "GET", "/admin/v1/tree", None).await;
    assert_eq!((status, &tree["name"]), (200, &json!("root")));
    for txn in ["3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11", "no-uuid"] {
        assert_eq!(call(&service, "GET", &format!("/admin/v1/transactions/{txn}/delivery"), None).await.0, 404);
    }
}

/// Returns a function that renders the recorder's metrics.
pub(crate) fn metrics_renderer(
    recorder: &sakshi::telemetry::PrometheusRecorder,
) -> std::sync::Arc<dyn Fn() -> String + Send + Sync> {
    let recorder = recorder.clone();
    std::sync::Arc::new(move || recorder.render())
}
