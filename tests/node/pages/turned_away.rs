//! Events that accept no guest: the page, the error body, and the balance.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use sakshi_domain::event::MaxGuests;
use serde_json::Value;

use super::guest::{press_start, started_txn};
use crate::pages_fixture::{ANDROID, PagesFixture, text};

/// Returns the status, and the error code of a JSON response or the heading of a page.
async fn fetch_error(fixture: &PagesFixture, method: Method, path: &str, accept: &str) -> (u16, String) {
    let response =
        fixture.call(TestRequest::default().method(method).uri(path).insert_header(("accept", accept))).await;
    let status = response.status().as_u16();
    let is_json = response.headers().get("content-type").is_some_and(|kind| kind == "application/json");
    let body = text(response).await;
    let code_or_heading = if is_json {
        serde_json::from_str::<Value>(&body).unwrap()["code"].as_str().unwrap().to_owned()
    } else {
        body.split("<h1>").nth(1).and_then(|rest| rest.split("</h1>").next()).unwrap_or(&body).to_owned()
    };
    (status, code_or_heading)
}

/// Asserts that an event refuses its page, its button and its intent, without a cost.
pub(super) async fn assert_guest_refused(fixture: &PagesFixture, id: &str, status: u16, heading: &str, code: &str) {
    let before = fixture.balance().await;
    let (page, button) = (format!("/e/{id}"), format!("/e/{id}/start"));
    for (method, path) in [(Method::GET, &page), (Method::POST, &button)] {
        assert_eq!(
            fetch_error(fixture, method.clone(), path, "text/html,*/*;q=0.8").await,
            (status, heading.to_owned()),
            "{method} {path}"
        );
        assert_eq!(
            fetch_error(fixture, method.clone(), path, "application/json").await,
            (status, code.to_owned()),
            "{method} {path}"
        );
        assert_eq!(fetch_error(fixture, method, path, "application/json, text/html").await.1, heading);
    }
    assert_eq!(fetch_error(fixture, Method::GET, &page, "application/jwt").await, (status, code.to_owned()));
    assert_eq!(fixture.balance().await, before, "a refusal costs no credit");
}

#[actix_rt::test]
async fn a_guest_who_arrives_after_the_last_place_gets_409() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|terms| terms.max_guests = MaxGuests::new(1).unwrap()).await;
    let guest = fixture.load_pending(started_txn(&press_start(&fixture, &event, None).await)).await;
    fixture.verify(&guest).await;
    assert_guest_refused(&fixture, &event.id.to_string(), 409, "This event is full", "event_full").await;
}

#[actix_rt::test]
async fn a_refused_guest_sees_the_event_and_its_organiser() {
    let fixture = PagesFixture::new().await;
    let full = fixture.create_event(|terms| terms.max_guests = MaxGuests::new(1).unwrap()).await;
    let guest = fixture.load_pending(started_txn(&press_start(&fixture, &full, None).await)).await;
    fixture.verify(&guest).await;
    let closed = fixture.create_event(|terms| terms.is_active = false).await;
    let unfunded = fixture.create_event(|_| {}).await;
    fixture.set_balance(0).await;
    for event in [&full, &closed, &unfunded] {
        let (_, html) = fixture.page(&format!("/e/{}", event.id), ANDROID).await;
        assert!(
            html.contains("<bdi>Open day &#38; tour</bdi>") && html.contains("<bdi>Sandbox client</bdi>"),
            "{html}"
        );
        assert!(!html.contains("You were not registered"), "opening the page is no registration: {html}");
    }
    let html_after_start = text(press_start(&fixture, &full, None).await).await;
    assert!(html_after_start.contains("You were not registered"), "{html_after_start}");
    fixture.clock.advance(std::time::Duration::from_secs(3_600));
    let (_, html) = fixture.page(&format!("/e/{}", unfunded.id), ANDROID).await;
    assert!(html.contains("This event has ended") && html.contains("<bdi>Open day &#38; tour</bdi>"), "{html}");
}

#[actix_rt::test]
async fn a_disabled_or_expired_event_gets_410() {
    let fixture = PagesFixture::new().await;
    let disabled = fixture.create_event(|terms| terms.is_active = false).await;
    assert_guest_refused(&fixture, &disabled.id.to_string(), 410, "Registration has closed", "event_closed").await;
    let ended = fixture.create_event(|_| {}).await;
    fixture.clock.advance(std::time::Duration::from_secs(3_600));
    assert_guest_refused(&fixture, &ended.id.to_string(), 410, "This event has ended", "event_closed").await;
}

#[actix_rt::test]
async fn an_app_at_a_closed_event_is_told_so_whatever_credits_and_codes_are_left() {
    let fixture = PagesFixture::new().await;
    let spent = |terms: &mut sakshi_domain::event::EventTerms| {
        terms.max_guests = MaxGuests::new(1).unwrap();
        terms.credit_budget = sakshi_domain::event::CreditBudget::new(1).ok();
    };
    let full = fixture.create_event(spent).await;
    let guest = fixture.load_pending(started_txn(&press_start(&fixture, &full, None).await)).await;
    fixture.verify(&guest).await;
    let disabled = fixture.create_event(|terms| terms.is_active = false).await;
    let kiosk = fixture
        .create_event(|terms| {
            (terms.entry, terms.is_active) = (sakshi_domain::event::EventEntry::Kiosk, false);
        })
        .await;
    fixture.set_balance(0).await;
    for (event, expected) in
        [(&full, (409, "event_full")), (&disabled, (410, "event_closed")), (&kiosk, (410, "event_closed"))]
    {
        let told = fetch_error(&fixture, Method::GET, &format!("/e/{}", event.id), "application/jwt").await;
        assert_eq!((told.0, told.1.as_str()), expected, "{}", event.id);
    }
}

#[actix_rt::test]
async fn an_unknown_or_malformed_event_gets_404() {
    let fixture = PagesFixture::new().await;
    for id in ["00000000000000000", "x", "%3Cscript%3E", "%FF%FE"] {
        assert_guest_refused(&fixture, id, 404, "This code does not work", "not_found").await;
    }
    let (status, html) = fixture.page("/e/%22%3E%3Cscript%3E", ANDROID).await;
    assert!(status == 404 && !html.contains("<script>"));
}

#[actix_rt::test]
async fn starts_have_their_own_limit_and_a_429_is_not_retried_automatically() {
    for limit in ["limits.event_starts_per_second_per_address", "limits.event_starts_per_minute_per_event"] {
        let fixture = PagesFixture::with_settings(&[(limit, "1")]).await;
        let event = fixture.create_event(|_| {}).await;
        started_txn(&press_start(&fixture, &event, None).await);
        let start = format!("/e/{}/start", event.id);
        let response = fixture.call_until_limited(|| TestRequest::post().uri(&start)).await;
        assert!(response.headers().contains_key("retry-after"));
        let html = text(response).await;
        assert!(html.contains("Too many attempts") && html.contains(&format!("href=\"/e/{}\"", event.id)), "{html}");
        assert!(!html.contains("data-retry") && !html.contains("http-equiv"), "{html}");
        assert_eq!(fixture.page(&format!("/e/{}", event.id), ANDROID).await.0, 200, "viewing has another limit");
    }
}

#[actix_rt::test]
async fn an_overloaded_node_returns_a_503_page_that_retries() {
    let mut fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    fixture.refuse_actor_requests().await;
    let (status, html) = fixture.page(&format!("/e/{}", event.id), ANDROID).await;
    assert_eq!(status, 503);
    assert!(html.contains("One moment, please") && html.contains("data-retry"));
    assert_eq!(fetch_error(&fixture, Method::GET, &format!("/e/{}", event.id), "application/json").await.0, 503);
}
