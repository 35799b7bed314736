//! Invalid tokens: the limit for one address, and the entries in the audit log.

use std::net::SocketAddr;
use std::time::Instant;

use actix_http::Request;
use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::test::{TestRequest, read_body};
use sakshi_domain::clock::Clock as _;
use sakshi_kit::waiting::{TIMEOUT, eventually};
use sakshi_operator::{FailedLogins, InternalDeps};
use serde_json::{Value, json};

use crate::document::assert_described;
use crate::operator::{call, document, listener, metrics_renderer};
use crate::store_fixture::{CONNECTOR_TOKEN, StoreFixture, TOKEN};

const CLIENTS: &str = "/admin/v1/clients";

/// Sends a request with a token from an address; returns its status and `Retry-After`.
async fn request_from<S, B>(service: &S, address: [u8; 4], method: &str, uri: &str, token: &str) -> (u16, Option<u64>)
where
    S: Service<Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody,
{
    let request =
        TestRequest::default().method(method.parse().unwrap()).uri(uri).peer_addr(SocketAddr::from((address, 9)));
    let request = request.insert_header(("authorization", format!("Bearer {token}")));
    let response = service.call(request.to_request()).await.unwrap();
    let status = response.status().as_u16();
    let retry = response.headers().get("retry-after").map(|seconds| seconds.to_str().unwrap().parse().unwrap());
    let answer: Value = serde_json::from_slice(&read_body(response).await).unwrap();
    assert_described(&document(service).await, method, uri, status, &answer);
    (status, retry)
}

/// Returns the entries about failed logins.
async fn login_entries<S, B>(service: &S) -> Vec<Value>
where
    S: Service<Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody,
{
    let (_, log) = call(service, "GET", "/admin/v1/audit-log?limit=100", None).await;
    let entries = log["entries"].as_array().unwrap().iter().map(|entry| entry["entry"].clone());
    entries.filter(|entry| entry["operation"] == "login").collect()
}

#[actix_rt::test]
async fn an_address_with_many_wrong_tokens_gets_429_and_a_good_token_still_works() {
    let deps = InternalDeps { failed_logins: FailedLogins::per_minute(2), ..StoreFixture::new().internal() };
    let service = listener(deps).await;
    let (limited_address, other_address) = ([192, 0, 2, 1], [192, 0, 2, 2]);
    for token in ["wrong", CONNECTOR_TOKEN] {
        assert_eq!(request_from(&service, limited_address, "GET", CLIENTS, token).await, (401, None));
    }
    let (status, retry) = request_from(&service, limited_address, "GET", CLIENTS, "wrong").await;
    assert!(status == 429 && retry.is_some_and(|seconds| (1..=60).contains(&seconds)), "{status} {retry:?}");
    assert_eq!(
        request_from(&service, limited_address, "POST", "/internal/v1/flows/esign", "wrong").await.0,
        429,
        "both kinds of tokens share the limit"
    );
    assert_eq!(
        request_from(&service, limited_address, "GET", CLIENTS, TOKEN).await.0,
        200,
        "a good token works from a limited address"
    );
    assert_eq!(request_from(&service, other_address, "GET", CLIENTS, "wrong").await, (401, None));
}

#[actix_rt::test]
async fn only_failed_logins_with_a_token_are_counted() {
    let recorder = sakshi::telemetry::PrometheusRecorder::default();
    let deps = InternalDeps { metrics: metrics_renderer(&recorder), ..StoreFixture::new().internal() };
    let render_metrics = deps.metrics.clone();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let service = listener(deps).await;
    for (method, uri) in [("GET", CLIENTS), ("POST", CLIENTS), ("POST", "/internal/v1/flows/esign")] {
        request_from(&service, [192, 0, 2, 1], method, uri, "wrong").await;
        service.call(TestRequest::default().method(method.parse().unwrap()).uri(uri).to_request()).await.unwrap();
    }
    let page = render_metrics();
    for line in ["{token=\"connector\"} 1", "{token=\"operator\"} 2"] {
        assert!(page.contains(&format!("sakshi_operator_logins_failed_total{line}\n")), "{page}");
    }
}

/// Fails to log in once, waits for the entry in the audit log, and fails four more times.
async fn fail_five_times<S, B>(service: &S) -> Value
where
    S: Service<Request, Response = ServiceResponse<B>, Error = actix_web::Error>,
    B: MessageBody,
{
    request_from(service, [192, 0, 2, 1], "GET", CLIENTS, "wrong").await;
    let first = eventually("the first entry", TIMEOUT, || async { login_entries(service).await.pop() }).await;
    for _ in 0..4 {
        request_from(service, [192, 0, 2, 1], "GET", CLIENTS, "wrong").await;
    }
    first
}

#[actix_rt::test]
async fn only_the_first_failure_of_an_address_is_logged_at_once() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let started_at = Instant::now();
    let first = fail_five_times(&service).await;
    let expected = json!({"at": fixture.clock.now(), "operation": "login", "stage": "refused", "token": "operator",
        "from": "192.0.2.1",
        "count": 1});
    assert_eq!(first, expected);
    // Pending entries are written before this change is answered.
    call(&service, "POST", CLIENTS, Some(json!({"name": "Acme"}))).await;
    let entries = login_entries(&service).await;
    // A failure later in the minute is logged at its end.
    assert!(entries.len() as u64 <= 1 + started_at.elapsed().as_secs() / 60, "{entries:?}");
}

#[actix_rt::test]
async fn every_failed_login_eventually_reaches_the_audit_log() {
    let service = listener(StoreFixture::new().internal()).await;
    fail_five_times(&service).await;
    // Time advances whenever all tasks are idle.
    tokio::time::pause();
    eventually("entries for all failed logins", TIMEOUT, || async {
        let counts = login_entries(&service).await.iter().map(|entry| entry["count"].as_u64().unwrap()).sum::<u64>();
        (counts == 5).then_some(())
    })
    .await;
}

#[actix_rt::test]
async fn a_thousand_addresses_do_not_fill_the_audit_log() {
    let service = listener(StoreFixture::new().internal()).await;
    let started_at = Instant::now();
    for number in 0..1_000_u16 {
        let [high, low] = number.to_be_bytes();
        let request = TestRequest::get().uri(CLIENTS).peer_addr(SocketAddr::from(([10, 0, high, low], 9)));
        let request = request.insert_header(("authorization", "Bearer wrong"));
        assert_eq!(service.call(request.to_request()).await.unwrap().status(), 401);
    }
    let entries = eventually("the entry for other addresses", TIMEOUT, || async {
        let entries = login_entries(&service).await;
        entries.iter().any(|entry| entry["from"].is_null()).then_some(entries)
    })
    .await;
    // A minute has at most ten entries with an address, and one for all other addresses.
    assert!(entries.len() as u64 <= 11 * (1 + started_at.elapsed().as_secs() / 60), "{}", entries.len());
}
