//! The state of an event: the portal and its guests' pages agree.

use sakshi_domain::event::Event;

use super::{Answer, Browser};
use crate::pages_fixture::{ANDROID, DESKTOP, PagesFixture, text};

/// Returns the page of an event in the portal.
async fn event_page(browser: &Browser<'_>, event: &Event) -> Answer {
    browser.get(&format!("/portal/events/{}", event.id)).await
}

/// Returns the `status_reason` of an event in the API.
async fn status_reason(fixture: &PagesFixture, event: &Event) -> serde_json::Value {
    let answer = text(fixture.get_as_client(&format!("/api/v1/nationalid-ovse/events/{}", event.id)).await).await;
    serde_json::from_str::<serde_json::Value>(&answer).unwrap()["status_reason"].clone()
}

#[actix_rt::test]
async fn all_pages_and_the_api_agree_that_an_event_is_out_of_credits() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let event = fixture.create_event(|_| {}).await;
    let guest_path = format!("/e/{}", event.id);
    fixture.set_balance(1).await;
    for credits in [1, 0] {
        if credits == 0 {
            fixture.open(|_| {}).await;
        }
        let page = event_page(&browser, &event).await;
        let list = browser.get("/portal/events").await;
        let (tag, is_open) = if credits == 0 { ("tag out_of_credits", false) } else { ("tag active", true) };
        assert!(page.html.contains(tag) && list.html.contains(tag), "{credits}: {}", page.html);
        assert_eq!(page.element_text("credits"), credits.to_string());
        assert_eq!(page.html.contains("id=\"unfunded\" hidden"), is_open, "{}", page.html);
        assert_eq!(fixture.page(&guest_path, ANDROID).await.1.contains("<form"), is_open);
        assert_eq!(
            fixture.page(&format!("{guest_path}/kiosk"), DESKTOP).await.1.contains("data-state=\"active\""),
            is_open
        );
        assert_eq!(
            status_reason(&fixture, &event).await,
            if is_open { serde_json::Value::Null } else { "credits_exhausted".into() }
        );
    }
    let closed = fixture.create_event(|terms| terms.is_active = false).await;
    assert_eq!(event_page(&browser, &closed).await.element_text("status"), "Closed", "closed comes before unfunded");
    assert_eq!(status_reason(&fixture, &closed).await, serde_json::Value::Null);
}

#[actix_rt::test]
async fn the_scans_of_an_event_add_up() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let event = fixture.create_event(|_| {}).await;
    let mut guests = Vec::new();
    for _ in 0..3 {
        let started = browser.post(&format!("/e/{}/start", event.id), &[]).await;
        guests.push(fixture.load_pending(started.location.rsplit('/').next().unwrap().parse().unwrap()).await);
    }
    fixture.verify(&guests[0]).await;
    fixture.fail(&guests[1], "User Reject", "301").await;
    let page = event_page(&browser, &event).await;
    let counts = ["scans", "registrations", "pending", "others", "abandoned"].map(|id| page.element_text(id));
    assert_eq!(counts, ["3", "1", "1", "1", "0"]);
}

#[actix_rt::test]
async fn times_of_an_event_are_in_its_own_time_zone() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let event = fixture.create_event(|_| {}).await;
    for page in [event_page(&browser, &event).await, browser.get("/portal/events").await] {
        assert!(page.html.contains("data-event>15 November 2023, 04:43 IST</time>"), "{}", page.html);
    }
}
