//! Reports of connectors on a real store, and the operator's view of flows.

use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::http::header::HeaderMap;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service, read_body};
use actix_web::{App, Error};
use sakshi_domain::clock::Clock as _;
use sakshi_domain::flow::api_type::ApiType;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::limits::REPORT_BYTES_MAX;
use sakshi_operator::{ConnectorTokens, InternalDeps, configure_reports};
use sakshi_service::budget::{MemoryBudget, MemoryBudgets};
use sakshi_web::edge::edge;
use serde_json::{Value, json};

use crate::document::assert_described;
use crate::operator::{call, document, listener, metrics_renderer};
use crate::operator_document::{OPERATIONS, example_uri};
use crate::store_fixture::{CONNECTOR_TOKEN, StoreFixture, TOKEN};
use sakshi_kit::flow_records::Party;

/// Creates a client with an app.
async fn create_party(fixture: &StoreFixture) -> Party {
    let client = fixture.create_client().await;
    Party { app: fixture.create_app(&client).await, client, now: fixture.clock.now() }
}

/// Sends a report with this token; returns status, headers and body, which must match the document.
async fn send_report<S, B>(service: &S, request: TestRequest, token: &str) -> (u16, HeaderMap, Value)
where
    S: Service<actix_http::Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    let request = request.insert_header(("authorization", format!("Bearer {token}")));
    let request = request.to_request();
    let (method, path) = (request.method().to_string(), request.path().to_owned());
    let response = service.call(request).await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let answer = serde_json::from_slice(&read_body(response).await).unwrap();
    assert_described(&document(service).await, &method, &path, status, &answer);
    (status, headers, answer)
}

/// Returns a request that reports this body for a kind of flow.
fn report(kind: &str, body: &Value) -> TestRequest {
    TestRequest::post().uri(&format!("/internal/v1/flows/{kind}")).set_json(body)
}

#[actix_rt::test]
async fn the_connector_token_reports_and_does_nothing_else() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let body = create_party(&fixture).await.open_locker(&fixture.store).await.locker_report("Fetched");
    for token in [TOKEN, "", "wrong", &CONNECTOR_TOKEN[1..]] {
        let (status, headers, refused) = send_report(&service, report("doclocker", &body), token).await;
        assert_eq!(
            (status, &refused["code"], headers.get("www-authenticate").unwrap().as_bytes()),
            (401, &json!("unauthorized"), &b"Bearer"[..])
        );
    }
    let unsigned = service.call(report("doclocker", &body).to_request()).await.unwrap();
    assert_eq!(unsigned.status(), 401);
    for (method, uri) in [("GET", "/admin/v1/clients"), ("GET", "/admin/v1/tree"), ("POST", "/admin/v1/clients")] {
        let request = TestRequest::default().method(method.parse().unwrap()).uri(uri).set_json(json!({"name": "x"}));
        assert_eq!(send_report(&service, request, CONNECTOR_TOKEN).await.0, 401, "{uri}");
    }
    let without_tokens = InternalDeps { connector_tokens: ConnectorTokens::default(), ..fixture.internal() };
    assert_eq!(
        send_report(&listener(without_tokens).await, report("doclocker", &body), "").await.0,
        401,
        "a token that is not set opens nothing"
    );
    assert_eq!(send_report(&service, report("doclocker", &body), CONNECTOR_TOKEN).await.0, 200);
}

#[actix_rt::test]
async fn a_token_of_one_flow_is_the_only_one_for_that_flow() {
    const ESIGN: &str = "a-token-of-esign-of-more-than-32-characters";
    const LOCKER: &str = "a-token-of-doclocker-of-more-than-32-characters";
    let fixture = StoreFixture::new();
    let per_flow = [(ReportKind::ESign, ESIGN.into()), (ReportKind::DocLocker, LOCKER.into())].into();
    let connector_tokens = ConnectorTokens { shared: CONNECTOR_TOKEN.into(), per_flow };
    let service = listener(InternalDeps { connector_tokens, ..fixture.internal() }).await;
    let party = create_party(&fixture).await;
    let document = party.open_document(&fixture.store).await.document_report("Completed");
    let locker = party.open_locker(&fixture.store).await.locker_report("Fetched");
    for token in [LOCKER, CONNECTOR_TOKEN, TOKEN] {
        assert_eq!(send_report(&service, report("esign", &document), token).await.0, 401, "{token}");
    }
    for token in [ESIGN, CONNECTOR_TOKEN] {
        assert_eq!(send_report(&service, report("doclocker", &locker), token).await.0, 401, "{token}");
    }
    assert_eq!(send_report(&service, report("esign", &document), ESIGN).await.0, 200);
    assert_eq!(send_report(&service, report("doclocker", &locker), LOCKER).await.0, 200);
    // A flow without its own token accepts the shared one; an unknown path accepts any and is not found.
    assert_eq!(send_report(&service, report("wealth-data", &json!({})), CONNECTOR_TOKEN).await.0, 400);
    assert_eq!(send_report(&service, report("wealth-data", &json!({})), ESIGN).await.0, 401);
    for (token, status) in [(ESIGN, 404), (LOCKER, 404), (CONNECTOR_TOKEN, 404), (TOKEN, 401)] {
        assert_eq!(send_report(&service, report("nothing", &json!({})), token).await.0, status, "{token}");
    }
}

#[actix_rt::test]
async fn a_connector_listener_accepts_reports_and_nothing_else() {
    let fixture = StoreFixture::new();
    let deps = InternalDeps { connectors_apart: true, ..fixture.internal() };
    let internal = listener(deps.clone()).await;
    let reports = init_service(App::new().wrap(from_fn(edge)).configure(|cfg| configure_reports(cfg, deps))).await;
    let body = create_party(&fixture).await.open_locker(&fixture.store).await.locker_report("Fetched");
    assert_eq!(send_report(&reports, report("doclocker", &body), CONNECTOR_TOKEN).await.0, 200);
    let report_to_internal =
        report("doclocker", &body).insert_header(("authorization", format!("Bearer {CONNECTOR_TOKEN}")));
    assert_eq!(internal.call(report_to_internal.to_request()).await.unwrap().status(), 404);
    for (method, path, id, token) in OPERATIONS {
        let token = token.map_or("", |token| if token == "admin_token" { TOKEN } else { CONNECTOR_TOKEN });
        let request = TestRequest::default().method(method.parse().unwrap()).uri(&example_uri(path));
        let request = request.insert_header(("authorization", format!("Bearer {token}"))).set_json(json!({}));
        let is_offered = ["reportFlow", "getOpenApiDocument"].contains(&id);
        let status = reports.call(request.to_request()).await.unwrap().status();
        assert_eq!(status != 404, is_offered, "{id}: {status}");
    }
    let paths = |document: &Value| document["paths"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let (reports_document, internal_document) = (document(&reports).await, document(&internal).await);
    assert_eq!(paths(&reports_document), ["/internal/v1/flows/{kind}", "/openapi.json"]);
    assert!(!paths(&internal_document).iter().any(|path| path.starts_with("/internal/")));
    assert_eq!(paths(&internal_document).len() + 1, paths(&document(&listener(fixture.internal()).await).await).len());
    let tags: Vec<&Value> = reports_document["tags"].as_array().unwrap().iter().map(|tag| &tag["name"]).collect();
    assert_eq!(tags, ["Connectors", "Node"]);
}

#[actix_rt::test]
async fn an_invalid_report_gets_field_paths_and_none_of_its_values() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let flow = create_party(&fixture).await.open_document(&fixture.store).await;
    let mut body = flow.document_report("Completed");
    body["documentStatus"] = json!("Asha");
    body["signerInfo"][0]["signerName"] = json!(["Asha Rao"]);
    body["signerInfo"][0]["shoeSize"] = json!("Asha Rao");
    body["app_id"] = json!("Asha Rao");
    let (status, _, refused) = send_report(&service, report("esign", &body), CONNECTOR_TOKEN).await;
    let fields: Vec<_> =
        refused["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap()).collect();
    assert_eq!((status, &refused["code"]), (400, &json!("validation_failed")));
    for field in ["app_id", "documentStatus", "signerInfo[0].signerName", "signerInfo[0].shoeSize"] {
        assert!(fields.contains(&field), "{field} in {fields:?}");
    }
    assert!(!refused.to_string().contains("Asha"), "{refused}");
    let post = || TestRequest::post().uri("/internal/v1/flows/esign");
    let json = ("content-type", "application/json");
    for (request, expected, code) in [
        (post().insert_header(json).set_payload("{\"signerName\": \"Asha Rao\""), 400, "validation_failed"),
        (
            post().insert_header(("content-type", "text/plain")).set_payload(body.to_string()),
            415,
            "unsupported_media_type",
        ),
        (
            post().insert_header(json).insert_header(("content-encoding", "gzip")).set_payload(body.to_string()),
            415,
            "unsupported_media_type",
        ),
        (post().insert_header(json).set_payload(vec![b' '; REPORT_BYTES_MAX + 1]), 413, "body_too_large"),
    ] {
        let (status, _, refused) = send_report(&service, request, CONNECTOR_TOKEN).await;
        assert_eq!((status, &refused["code"]), (expected, &json!(code)), "{refused}");
        assert!(!refused.to_string().contains("Asha"), "{refused}");
    }
}

#[actix_rt::test]
async fn a_report_without_memory_gets_503_with_retry_after() {
    let fixture = StoreFixture::new();
    let flow = create_party(&fixture).await.open_locker(&fixture.store).await;
    let body = flow.locker_report("Fetched");
    let memory_limit = |bytes_max: usize| MemoryBudgets {
        reports: MemoryBudget::new("reports", bytes_max),
        ..MemoryBudgets::default()
    };
    let too_small = InternalDeps { memory: memory_limit(100), ..fixture.internal() };
    let (status, headers, refused) =
        send_report(&listener(too_small).await, report("doclocker", &body), CONNECTOR_TOKEN).await;
    assert_eq!(
        (status, &refused["code"], headers.get("retry-after").unwrap().as_bytes()),
        (503, &json!("overloaded"), &b"1"[..])
    );
    // Each report releases its memory when it ends.
    let exact_limit = InternalDeps { memory: memory_limit(body.to_string().len()), ..fixture.internal() };
    let service = listener(exact_limit).await;
    for result in ["accepted", "repeated", "repeated"] {
        let (status, _, answer) = send_report(&service, report("doclocker", &body), CONNECTOR_TOKEN).await;
        assert_eq!((status, &answer["result"]), (200, &json!(result)));
    }
}

#[actix_rt::test]
async fn reports_are_counted_by_kind_and_result_only() {
    let recorder = sakshi::telemetry::PrometheusRecorder::default();
    let fixture = StoreFixture::new();
    let deps = InternalDeps { metrics: metrics_renderer(&recorder), ..fixture.internal() };
    let _guard = metrics::set_default_local_recorder(&recorder);
    let (service, flow) = (listener(deps).await, create_party(&fixture).await.open_locker(&fixture.store).await);
    for status in ["Fetched", "Fetched", "Failed"] {
        send_report(&service, report("doclocker", &flow.locker_report(status)), CONNECTOR_TOKEN).await;
    }
    let response = service.call(TestRequest::get().uri("/metrics").to_request()).await.unwrap();
    let page = String::from_utf8(read_body(response).await.to_vec()).unwrap();
    for result in ["accepted", "repeated", "report_refused"] {
        let line = format!("sakshi_connector_reports_total{{kind=\"doclocker\",result=\"{result}\"}} 1");
        assert!(page.contains(&line), "{line} in {page}");
    }
    assert!(!page.contains(&flow.id.to_string()) && !page.contains(flow.party.app.as_str()));
}

#[actix_rt::test]
async fn the_operator_sees_a_flow_and_its_webhooks_without_personal_data() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let party = create_party(&fixture).await;
    let hook = HttpUrl::parse("https://client.example/secret-path", Schemes::HttpsOnly).unwrap();
    fixture.store.set_webhook_url(party.app.clone(), ApiType::ESign, Some(hook)).await.unwrap();
    let flow = party.open_document(&fixture.store).await;
    let uri = format!("/admin/v1/flows/{}/deliveries", flow.id);
    let (status, view) = call(&service, "GET", &uri, None).await;
    assert_eq!(
        (status, &view["kind"], &view["state"], &view["deliveries"]),
        (200, &json!("esign"), &json!("Pending"), &json!([]))
    );
    assert_eq!(
        send_report(&service, report("esign", &flow.document_report("Completed")), CONNECTOR_TOKEN).await.0,
        200
    );
    let (_, view) = call(&service, "GET", &uri, None).await;
    assert_eq!(
        (&view["state"], &view["app_id"], &view["kept_until"]),
        (&json!("Completed"), &json!(party.app), &json!("2023-11-14T23:13:20.000Z"))
    );
    let row = &view["deliveries"][0];
    assert_eq!(
        (&row["tells"], &row["state"], &row["origin"]),
        (&json!("esign Completed"), &json!("waiting"), &json!("https://client.example"))
    );
    assert!(!view.to_string().contains("Asha") && !view.to_string().contains("secret-path"), "{view}");
    let (status, urls) = call(&service, "GET", &format!("/admin/v1/apps/{}/webhook-urls", party.app), None).await;
    assert_eq!(
        (status, urls),
        (200, json!({"webhook_urls": [{"apiType": "ESign", "origin": "https://client.example"}]}))
    );
    let unknown_flow = "/admin/v1/flows/3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11/deliveries";
    for uri in [unknown_flow, "/admin/v1/flows/none/deliveries", "/admin/v1/apps/app_none/webhook-urls"] {
        assert_eq!(call(&service, "GET", uri, None).await.0, 404, "{uri}");
    }
}
