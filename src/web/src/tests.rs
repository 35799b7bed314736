//! Tests of the middleware: request ids, errors, and the framework's own errors in our form.

use actix_web::body::{MessageBody, to_bytes};
use actix_web::dev::{Service as _, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, HttpResponse, web};
use sakshi_service::ServiceError;
use serde_json::{Value, json};

use super::body::Body;
use super::error::ApiError;
use super::routing::{RouteMetrics, resource, unknown_path};
use crate::edge::{edge, request_id};

async fn echo(request: actix_web::HttpRequest) -> HttpResponse {
    HttpResponse::Ok().body(request_id(&request).to_string())
}

async fn page() -> HttpResponse {
    HttpResponse::Gone().content_type("text/html").body("<p>too late</p>")
}

async fn asset() -> HttpResponse {
    HttpResponse::Ok().insert_header(("cache-control", "public, max-age=60")).body("asset")
}

async fn echo_body(body: Body) -> HttpResponse {
    HttpResponse::Ok().body(body.bytes)
}

async fn fail() -> Result<HttpResponse, ApiError> {
    Err(ApiError::Service(ServiceError::Internal("a secret detail".into())))
}

async fn fail_in_framework() -> Result<HttpResponse, actix_web::Error> {
    Err(actix_web::error::ErrorInternalServerError("a secret detail"))
}

async fn send(request: TestRequest) -> ServiceResponse<impl MessageBody> {
    let app = App::new()
        .wrap(from_fn(edge))
        .app_data(RouteMetrics::unmatched())
        .service(resource("/echo", vec![(Method::GET, web::to(echo)), (Method::DELETE, web::to(echo))]))
        .service(resource("/page", vec![(Method::GET, web::to(page))]))
        .service(resource("/asset", vec![(Method::GET, web::to(asset))]))
        .service(resource("/take", vec![(Method::POST, web::to(echo_body))]))
        .service(resource("/number/{n}", vec![(Method::GET, web::to(|_: web::Path<u32>| async { "ok" }))]))
        .service(resource("/broken", vec![(Method::GET, web::to(fail))]))
        .service(resource("/framework", vec![(Method::GET, web::to(fail_in_framework))]))
        .service(web::resource("/bare").route(web::get().to(|| async { HttpResponse::ServiceUnavailable().finish() })))
        .default_service(web::to(unknown_path));
    call_service(&init_service(app).await, request.to_request()).await
}

/// Sends a request that is refused; returns the status, the body and `Allow`. Checks the parts common to all errors.
async fn send_refused(request: TestRequest) -> (u16, Value, Option<String>) {
    let response = send(request.insert_header(("x-request-id", "req-7"))).await;
    assert_eq!(response.headers().get("x-request-id").unwrap(), "req-7");
    assert_eq!(response.headers().get("content-type").unwrap(), "application/json");
    let status = response.status().as_u16();
    let allow = response.headers().get("allow").map(|allow| allow.to_str().unwrap().to_owned());
    let body: Value = serde_json::from_slice(&read_body(response).await).unwrap();
    let members: Vec<&str> =
        body.as_object().unwrap().keys().map(String::as_str).filter(|name| *name != "errors").collect();
    assert_eq!(members, ["code", "docUrl", "error", "errorId", "message", "statusCode", "success"]);
    assert_eq!(
        (&body["success"], &body["statusCode"], &body["errorId"]),
        (&json!(false), &json!(status), &json!("req-7"))
    );
    (status, body, allow)
}

#[actix_rt::test]
async fn a_request_id_is_echoed_or_generated() {
    let response = send(TestRequest::get().uri("/echo").insert_header(("X-Request-ID", "my-id-1"))).await;
    assert_eq!(response.headers().get("x-request-id").unwrap(), "my-id-1");
    assert_eq!(read_body(response).await, "my-id-1");
    let minted = send(TestRequest::get().uri("/echo")).await;
    let header = minted.headers().get("x-request-id").unwrap().clone();
    assert_eq!(read_body(minted).await, header.as_bytes());
}

#[actix_rt::test]
async fn a_response_is_not_stored_unless_its_handler_allows_it() {
    let cache_control =
        async |uri: &str| send(TestRequest::get().uri(uri)).await.headers().get("cache-control").cloned().unwrap();
    for uri in ["/echo", "/page", "/nowhere", "/broken"] {
        assert_eq!(cache_control(uri).await, "no-store", "{uri}");
    }
    assert_eq!(cache_control("/asset").await, "public, max-age=60");
}

#[actix_rt::test]
async fn every_response_has_nosniff() {
    for uri in ["/echo", "/page", "/asset", "/nowhere", "/broken"] {
        let response = send(TestRequest::get().uri(uri)).await;
        assert_eq!(response.headers().get("x-content-type-options").unwrap(), "nosniff", "{uri}");
    }
}

#[actix_rt::test]
async fn a_malformed_or_repeated_request_id_is_replaced() {
    let invalid_ids = ["", "a b", &"x".repeat(129)]
        .map(|id| TestRequest::get().uri("/echo").insert_header(("x-request-id", id.to_owned())));
    let twice =
        TestRequest::get().uri("/echo").append_header(("x-request-id", "one")).append_header(("x-request-id", "two"));
    for request in invalid_ids.into_iter().chain([twice]) {
        let response = send(request).await;
        assert_eq!(response.status(), 200);
        let minted = response.headers().get("x-request-id").unwrap().clone();
        assert_eq!((minted.len(), read_body(response).await.as_ref()), (36, minted.as_bytes()));
    }
}

#[actix_rt::test]
async fn every_refusal_has_the_same_body() {
    let post = |text: &'static str| TestRequest::post().uri("/take").set_payload(text);
    let json = |text: &'static str| post(text).insert_header(("content-type", "application/json"));
    for (request, status, code) in [
        (TestRequest::get().uri("/nowhere"), 404, "not_found"),
        (TestRequest::get().uri("/number/seven"), 404, "not_found"),
        (post("{}").insert_header(("content-type", "text/plain")), 415, "unsupported_media_type"),
        (post(""), 400, "malformed_request"),
        (json("{"), 400, "malformed_request"),
        (json("{}").insert_header(("content-length", "99999999")), 413, "body_too_large"),
        (TestRequest::get().uri("/bare"), 503, "overloaded"),
    ] {
        let (actual_status, body, _) = send_refused(request).await;
        assert_eq!((actual_status, body["code"].as_str().unwrap()), (status, code));
    }
}

#[actix_rt::test]
async fn a_405_lists_the_methods_of_the_path() {
    for (request, allow) in
        [(TestRequest::put().uri("/echo"), "GET, DELETE, HEAD"), (TestRequest::get().uri("/take"), "POST")]
    {
        let (status, body, actual_allow) = send_refused(request).await;
        assert_eq!(
            (status, body["code"].as_str(), actual_allow.as_deref()),
            (405, Some("method_not_allowed"), Some(allow))
        );
    }
    assert_eq!(send(TestRequest::default().method(Method::HEAD).uri("/echo")).await.status(), 200);
}

#[actix_rt::test]
async fn a_500_hides_its_detail() {
    for uri in ["/broken", "/framework"] {
        let (status, body, _) = send_refused(TestRequest::get().uri(uri)).await;
        assert_eq!((status, body["code"].as_str()), (500, Some("internal_error")));
        assert!(!body.to_string().contains("secret"));
    }
}

#[actix_rt::test]
async fn a_page_keeps_its_own_body() {
    let response = send(TestRequest::get().uri("/page")).await;
    assert_eq!(response.status(), 410);
    assert!(response.headers().contains_key("x-request-id"));
    assert_eq!(read_body(response).await, "<p>too late</p>");
}

#[actix_rt::test]
async fn a_panic_becomes_a_500_with_the_id_of_the_request() {
    let panicking = web::get().to(|| async { if true { panic!("a secret detail") } else { "" } });
    let app = init_service(App::new().wrap(from_fn(edge)).route("/", panicking)).await;
    let request = TestRequest::get().uri("/").insert_header(("x-request-id", "req-8")).to_request();
    let error = app.call(request).await.map(|_| ()).unwrap_err();
    let response = error.error_response();
    assert_eq!(
        (response.status().as_u16(), response.headers().get("x-request-id").unwrap().as_bytes()),
        (500, &b"req-8"[..])
    );
    let body: Value = serde_json::from_slice(&to_bytes(response.into_body()).await.unwrap()).unwrap();
    assert_eq!((&body["code"], &body["errorId"]), (&json!("internal_error"), &json!("req-8")));
    assert!(!body.to_string().contains("secret"));
}
