//! Live status: the states for the page's script, and the end of a stream.

use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::dev::ServiceResponse;
use actix_web::http::Method;
use actix_web::test::TestRequest;
use serde_json::{Value, json};

use crate::pages_fixture::{PagesFixture, WINDOW, redirecting_to, text};

/// Returns HTTP status and body of a page's live status.
async fn fetch_status(fixture: &PagesFixture, path: &str) -> (u16, Value) {
    let response = fixture.call(TestRequest::get().uri(&format!("{path}/status"))).await;
    (response.status().as_u16(), serde_json::from_str(&text(response).await).unwrap())
}

/// Returns the states of a stream until its end.
async fn stream_states(response: ServiceResponse<BoxBody>) -> Vec<Value> {
    assert_eq!(response.headers().get("content-type").unwrap(), "text/event-stream");
    assert_eq!(response.headers().get("cache-control").unwrap(), "no-store");
    let stream = text(response).await;
    assert!(stream.starts_with("retry: 2000\n\nevent: state\ndata: "), "{stream}");
    stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[actix_rt::test]
async fn the_status_shows_state_and_time_and_nothing_personal() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(redirecting_to("https://shop.example/back")).await;
    let path = format!("/v/{}", pending.id);
    assert_eq!(fetch_status(&fixture, &path).await, (200, json!({"state": "waiting", "remaining_s": 900})));
    fixture.verify(&pending).await;
    let verified = json!({"state": "verified", "remaining_s": 0, "redirect_url": "https://shop.example/back"});
    assert_eq!(fetch_status(&fixture, &path).await, (200, verified));
    assert_eq!(fetch_status(&fixture, "/v/none").await.0, 404);
}

#[actix_rt::test]
async fn a_stream_reports_the_outcome_at_once_and_ends() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(redirecting_to("https://shop.example/back")).await;
    let path = format!("/v/{}", pending.id);
    let response = fixture.call(TestRequest::get().uri(&format!("{path}/events"))).await;
    let states_during_failure =
        async { tokio::join!(stream_states(response), fixture.fail(&pending, "User Reject", "301")).0 };
    let states = tokio::time::timeout(Duration::from_secs(4), states_during_failure).await.unwrap();
    let last = json!({"state": "not_verified", "remaining_s": 0, "redirect_url": "https://shop.example/back"});
    assert_eq!(states, [json!({"state": "waiting", "remaining_s": 900}), last]);
}

#[actix_rt::test]
async fn a_stream_of_an_ended_transaction_reports_it_and_ends() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    fixture.clock.advance(WINDOW);
    let response = fixture.call(TestRequest::get().uri(&format!("/v/{}/events", pending.id))).await;
    assert_eq!(stream_states(response).await, [json!({"state": "expired", "remaining_s": 0})]);
}

#[actix_rt::test]
async fn a_quiet_stream_repeats_its_state_and_ends_after_a_minute() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let response = fixture.call(TestRequest::get().uri(&format!("/v/{}/events", pending.id))).await;
    tokio::time::pause();
    let started_at = tokio::time::Instant::now();
    let stream = text(response).await;
    let duration = started_at.elapsed();
    assert!((Duration::from_secs(59)..Duration::from_secs(65)).contains(&duration), "{duration:?}");
    assert_eq!(stream.matches("event: state\ndata: {\"state\":\"waiting\"").count(), 6, "{stream}");
    assert!(stream.ends_with("retry: 2000\n\n"));
}

#[actix_rt::test]
async fn a_drain_ends_every_stream_and_browsers_reconnect() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let response = fixture.call(TestRequest::get().uri(&format!("/v/{}/events", pending.id))).await;
    fixture.shared.service.drain.begin();
    let stream = tokio::time::timeout(Duration::from_secs(10), text(response)).await.unwrap();
    assert!(stream.ends_with("\n\nretry: 2000\n\n"), "{stream}");
    assert_eq!(fixture.shared.service.drain.finish(Duration::ZERO).await, 0, "no stream is in flight");
}

#[actix_rt::test]
async fn an_open_stream_counts_as_in_flight() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let response = fixture.call(TestRequest::get().uri(&format!("/v/{}/events", pending.id))).await;
    assert_eq!(fixture.shared.service.drain.finish(Duration::ZERO).await, 1);
    drop(response);
    assert_eq!(fixture.shared.service.drain.finish(Duration::ZERO).await, 0);
}

#[actix_rt::test]
async fn an_unknown_stream_gets_404_and_head_opens_none() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    assert_eq!(fixture.call(TestRequest::get().uri("/v/none/events")).await.status(), 404);
    let head =
        fixture.call(TestRequest::default().method(Method::HEAD).uri(&format!("/v/{}/events", pending.id))).await;
    assert_eq!(head.status(), 200);
    assert_eq!(fixture.shared.service.drain.finish(Duration::ZERO).await, 0);
}
