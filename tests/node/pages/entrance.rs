//! Events whose guests start at the kiosk alone, by a changing code.

use std::time::Duration;

use actix_web::http::Method;
use actix_web::test::TestRequest;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::event::{CreditBudget, Event, EventEntry};

use super::guest::started;
use super::turned_away::turned_away;
use crate::pages_fixture::{ANDROID, DESKTOP, PagesFixture};

const SECOND: Duration = Duration::from_secs(1);

async fn at_the_kiosk(fixture: &PagesFixture) -> Event {
    fixture.event(|terms| terms.entry = EventEntry::Kiosk).await
}

/// Returns path and query of the kiosk's current code.
fn scanned(fixture: &PagesFixture, event: &Event) -> String {
    let authority = &fixture.shared.service.authority;
    authority.code_url(event, fixture.clock.now()).strip_prefix(&authority.public_base).unwrap().to_owned()
}

/// Returns the address of the button on the event's page.
fn button(html: &str) -> String {
    let (_, rest) = html.split_once("<form method=\"post\" action=\"").unwrap_or_else(|| panic!("{html}"));
    rest.split('"').next().unwrap().to_owned()
}

async fn status_of(fixture: &PagesFixture, method: Method, path: &str, accept: &str) -> u16 {
    let request = TestRequest::default().method(method).uri(path).insert_header(("accept", accept));
    fixture.ask(request).await.status().as_u16()
}

#[actix_rt::test]
async fn who_has_not_scanned_the_kiosk_starts_nothing() {
    let fixture = PagesFixture::new().await;
    let event = at_the_kiosk(&fixture).await;
    turned_away(&fixture, &event.id.to_string(), 403, "Scan to register", "code_expired").await;
    let (_, html) = fixture.page(&format!("/e/{}?code=AAAAAAAAAAAAAAAAAAAAAAAA", event.id), ANDROID).await;
    assert!(html.contains("Please scan the one that the screen at the entrance shows now."), "{html}");
    let other = at_the_kiosk(&fixture).await;
    let theirs = scanned(&fixture, &other).replace(&other.id.to_string(), &event.id.to_string());
    assert_eq!(fixture.page(&theirs, ANDROID).await.0, 403, "the code of another event");
}

#[actix_rt::test]
async fn a_code_opens_the_page_for_as_long_again_as_it_is_shown_and_the_page_starts_for_minutes() {
    let fixture = PagesFixture::new().await;
    let event = at_the_kiosk(&fixture).await;
    let code = scanned(&fixture, &event);
    assert_eq!(status_of(&fixture, Method::GET, &code, "application/jwt").await, 200, "the identity app");
    fixture.clock.advance(30 * SECOND);
    assert_ne!(scanned(&fixture, &event), code);
    let (status, html) = fixture.page(&code, ANDROID).await;
    assert_eq!(status, 200);
    let start = button(&html);
    fixture.clock.advance(30 * SECOND);
    assert_eq!(fixture.page(&code, ANDROID).await.0, 403, "it was photographed");
    assert_eq!(status_of(&fixture, Method::GET, &code, "application/jwt").await, 403);
    assert_eq!(status_of(&fixture, Method::POST, &code.replace("?code", "/start?code"), "text/html").await, 403);

    fixture.clock.advance(240 * SECOND);
    let guest = fixture.ask(TestRequest::post().uri(&start).insert_header(("sec-fetch-site", "same-origin"))).await;
    fixture.verify(&fixture.pending(started(&guest)).await).await;
    fixture.clock.advance(330 * SECOND);
    assert_eq!(
        status_of(&fixture, Method::POST, &start, "text/html").await,
        403,
        "who has waited too long scans again"
    );
}

#[actix_rt::test]
async fn the_page_of_a_guest_who_has_scanned_stays_in_the_language_that_is_chosen() {
    let fixture = PagesFixture::new().await;
    let event = at_the_kiosk(&fixture).await;
    let (_, html) = fixture.page(&scanned(&fixture, &event), ANDROID).await;
    let (_, link) =
        html.split_once("lang=ta\" lang=\"ta\"").map(|(before, _)| before.rsplit_once("href=\"").unwrap()).unwrap();
    let (status, html) = fixture.page(&format!("{}lang=ta", link.replace("&#38;", "&")), ANDROID).await;
    assert!(status == 200 && html.contains("lang=\"ta\"") && button(&html).contains("/start?pass="), "{html}");
}

#[actix_rt::test]
async fn the_kiosk_of_such_an_event_is_for_who_has_its_key() {
    let fixture = PagesFixture::new().await;
    let (event, open) = (at_the_kiosk(&fixture).await, fixture.event(|_| {}).await);
    for path in
        ["kiosk", "kiosk/events", "kiosk?key=AAAAAAAAAAAAAAAAAAAAAAAA", &format!("kiosk?{}", fixture.kiosk_key(&open))]
    {
        assert_eq!(fixture.page(&format!("/e/{}/{path}", event.id), DESKTOP).await.0, 404, "{path}");
    }
    let key = fixture.kiosk_key(&event);
    let (status, html) = fixture.page(&format!("/e/{}/kiosk?{key}", event.id), DESKTOP).await;
    assert!(status == 200 && html.contains(&format!("/kiosk/events?{key}\"")), "{html}");
}

#[actix_rt::test]
async fn guests_who_have_spent_the_budget_are_turned_away_and_the_rest_of_the_credits_stays() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|terms| terms.credit_budget = CreditBudget::new(1).ok()).await;
    let before = fixture.balance().await;
    started(&super::guest::press(&fixture, &event, None).await);
    turned_away(&fixture, &event.id.to_string(), 409, "This event is not available", "budget_spent").await;
    assert_eq!(fixture.balance().await, before - 1);
    let (_, html) = fixture.page(&format!("/e/{}/kiosk", event.id), DESKTOP).await;
    assert!(html.contains("data-state=\"unavailable\"") && html.contains("This event is not available"), "{html}");
}
