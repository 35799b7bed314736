//! A guest who cannot be verified at an event: as a page, as the error table's body, and the cost.

use actix_web::http::Method;
use actix_web::test::TestRequest;
use sakshi_domain::event::MaxGuests;
use serde_json::Value;

use super::guest::{press, started};
use crate::pages_fixture::{ANDROID, PagesFixture, text};

/// Returns the status, with the error code of a JSON answer or the heading of a page.
async fn asked(fixture: &PagesFixture, method: Method, path: &str, accept: &str) -> (u16, String) {
    let response = fixture.ask(TestRequest::default().method(method).uri(path).insert_header(("accept", accept))).await;
    let status = response.status().as_u16();
    let json = response.headers().get("content-type").is_some_and(|kind| kind == "application/json");
    let body = text(response).await;
    let word = if json {
        serde_json::from_str::<Value>(&body).unwrap()["code"].as_str().unwrap().to_owned()
    } else {
        body.split("<h1>").nth(1).and_then(|rest| rest.split("</h1>").next()).unwrap_or(&body).to_owned()
    };
    (status, word)
}

/// Checks page, button, JSON and intent of an event.
pub(super) async fn turned_away(fixture: &PagesFixture, id: &str, status: u16, heading: &str, code: &str) {
    let before = fixture.balance().await;
    let (page, button) = (format!("/e/{id}"), format!("/e/{id}/start"));
    for (method, path) in [(Method::GET, &page), (Method::POST, &button)] {
        assert_eq!(
            asked(fixture, method.clone(), path, "text/html,*/*;q=0.8").await,
            (status, heading.to_owned()),
            "{method} {path}"
        );
        assert_eq!(
            asked(fixture, method.clone(), path, "application/json").await,
            (status, code.to_owned()),
            "{method} {path}"
        );
        assert_eq!(asked(fixture, method, path, "application/json, text/html").await.1, heading);
    }
    assert_eq!(asked(fixture, Method::GET, &page, "application/jwt").await, (status, code.to_owned()));
    assert_eq!(fixture.balance().await, before, "nothing is spent on a refusal");
}

#[actix_rt::test]
async fn a_guest_who_arrives_after_the_last_place_gets_409() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|terms| terms.max_guests = MaxGuests::new(1).unwrap()).await;
    let guest = fixture.pending(started(&press(&fixture, &event, None).await)).await;
    fixture.verify(&guest).await;
    turned_away(&fixture, &event.id.to_string(), 409, "This event is full", "event_full").await;
}

#[actix_rt::test]
async fn a_guest_who_is_turned_away_reads_of_which_event_and_whose() {
    let fixture = PagesFixture::new().await;
    let full = fixture.event(|terms| terms.max_guests = MaxGuests::new(1).unwrap()).await;
    let guest = fixture.pending(started(&press(&fixture, &full, None).await)).await;
    fixture.verify(&guest).await;
    let closed = fixture.event(|terms| terms.is_active = false).await;
    let unfunded = fixture.event(|_| {}).await;
    fixture.leave_credits(0).await;
    for event in [&full, &closed, &unfunded] {
        let (_, html) = fixture.page(&format!("/e/{}", event.id), ANDROID).await;
        assert!(
            html.contains("<bdi>Open day &#38; tour</bdi>") && html.contains("<bdi>Sandbox client</bdi>"),
            "{html}"
        );
        assert!(!html.contains("You were not registered"), "opening the page is no registration: {html}");
    }
    let pressed = text(press(&fixture, &full, None).await).await;
    assert!(pressed.contains("You were not registered"), "{pressed}");
    fixture.clock.advance(std::time::Duration::from_secs(3_600));
    let (_, html) = fixture.page(&format!("/e/{}", unfunded.id), ANDROID).await;
    assert!(html.contains("This event has ended") && html.contains("<bdi>Open day &#38; tour</bdi>"), "{html}");
}

#[actix_rt::test]
async fn a_disabled_or_expired_event_is_a_410() {
    let fixture = PagesFixture::new().await;
    let disabled = fixture.event(|terms| terms.is_active = false).await;
    turned_away(&fixture, &disabled.id.to_string(), 410, "Registration has closed", "event_closed").await;
    let over = fixture.event(|_| {}).await;
    fixture.clock.advance(std::time::Duration::from_secs(3_600));
    turned_away(&fixture, &over.id.to_string(), 410, "This event has ended", "event_closed").await;
}

#[actix_rt::test]
async fn an_unknown_or_malformed_event_is_a_404() {
    let fixture = PagesFixture::new().await;
    for id in ["00000000000000000", "x", "%3Cscript%3E", "%FF%FE"] {
        turned_away(&fixture, id, 404, "This code does not work", "not_found").await;
    }
    let (status, html) = fixture.page("/e/%22%3E%3Cscript%3E", ANDROID).await;
    assert!(status == 404 && !html.contains("<script>"));
}

#[actix_rt::test]
async fn starts_have_a_limit_of_their_own_and_a_busy_answer_is_not_repeated_unseen() {
    for limit in ["limits.event_starts_per_second_per_address", "limits.event_starts_per_minute_per_event"] {
        let fixture = PagesFixture::with_settings(&[(limit, "1")]).await;
        let event = fixture.event(|_| {}).await;
        started(&press(&fixture, &event, None).await);
        let response = press(&fixture, &event, None).await;
        assert_eq!(response.status(), 429);
        assert!(response.headers().contains_key("retry-after"));
        let html = text(response).await;
        assert!(html.contains("Too many attempts") && html.contains(&format!("href=\"/e/{}\"", event.id)), "{html}");
        assert!(!html.contains("data-retry") && !html.contains("http-equiv"), "{html}");
        assert_eq!(fixture.page(&format!("/e/{}", event.id), ANDROID).await.0, 200, "looking has another limit");
    }
}

#[actix_rt::test]
async fn a_service_without_time_is_a_503_page_that_tries_again() {
    let mut fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    fixture.admit_nothing().await;
    let (status, html) = fixture.page(&format!("/e/{}", event.id), ANDROID).await;
    assert_eq!(status, 503);
    assert!(html.contains("One moment, please") && html.contains("data-retry"));
    assert_eq!(asked(&fixture, Method::GET, &format!("/e/{}", event.id), "application/json").await.0, 503);
}
