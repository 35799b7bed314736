//! Kiosk-only events, whose guests start with the changing code on the kiosk's screen.

use std::time::Duration;

use actix_web::http::Method;
use actix_web::test::TestRequest;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::event::{CreditBudget, Event, EventEntry};

use super::guest::started_txn;
use super::turned_away::assert_guest_refused;
use crate::pages_fixture::{ANDROID, DESKTOP, PagesFixture, text};

const SECOND: Duration = Duration::from_secs(1);

async fn kiosk_event(fixture: &PagesFixture) -> Event {
    fixture.create_event(|terms| terms.entry = EventEntry::Kiosk).await
}

/// Returns path and query of the kiosk's current code.
fn kiosk_code_path(fixture: &PagesFixture, event: &Event) -> String {
    let authority = &fixture.shared.service.authority;
    authority.code_url(event, fixture.clock.now()).strip_prefix(&authority.public_base).unwrap().to_owned()
}

/// Returns the address of the button on the event's page.
fn start_address(html: &str) -> String {
    let (_, rest) = html.split_once("<form method=\"post\" action=\"").unwrap_or_else(|| panic!("{html}"));
    rest.split('"').next().unwrap().to_owned()
}

/// Returns the status of a request that accepts this media type.
async fn request_status(fixture: &PagesFixture, method: Method, path: &str, accept: &str) -> u16 {
    let request = TestRequest::default().method(method).uri(path).insert_header(("accept", accept));
    fixture.call(request).await.status().as_u16()
}

#[actix_rt::test]
async fn a_guest_who_has_not_scanned_the_kiosk_cannot_start() {
    let fixture = PagesFixture::new().await;
    let event = kiosk_event(&fixture).await;
    assert_guest_refused(&fixture, &event.id.to_string(), 403, "Scan to register", "code_expired").await;
    let (_, html) = fixture.page(&format!("/e/{}?code=AAAAAAAAAAAAAAAAAAAAAAAA", event.id), ANDROID).await;
    assert!(html.contains("Please scan the one that the screen at the entrance shows now."), "{html}");
    let other_event = kiosk_event(&fixture).await;
    let foreign_code =
        kiosk_code_path(&fixture, &other_event).replace(&other_event.id.to_string(), &event.id.to_string());
    assert_eq!(fixture.page(&foreign_code, ANDROID).await.0, 403, "the code of another event");
}

#[actix_rt::test]
async fn a_kiosk_code_is_valid_for_a_minute_and_its_page_for_minutes_more() {
    let fixture = PagesFixture::new().await;
    let event = kiosk_event(&fixture).await;
    let code = kiosk_code_path(&fixture, &event);
    assert_eq!(
        request_status(&fixture, Method::GET, &code, "application/jwt").await,
        200,
        "the identity app gets an intent"
    );
    fixture.clock.advance(30 * SECOND);
    assert_ne!(kiosk_code_path(&fixture, &event), code);
    let (status, html) = fixture.page(&code, ANDROID).await;
    assert_eq!(status, 200);
    let start = start_address(&html);
    fixture.clock.advance(30 * SECOND);
    assert_eq!(fixture.page(&code, ANDROID).await.0, 403, "the code is an old photograph");
    assert_eq!(request_status(&fixture, Method::GET, &code, "application/jwt").await, 403);
    assert_eq!(request_status(&fixture, Method::POST, &code.replace("?code", "/start?code"), "text/html").await, 403);

    fixture.clock.advance(240 * SECOND);
    let started = fixture.call(TestRequest::post().uri(&start).insert_header(("sec-fetch-site", "same-origin"))).await;
    fixture.verify(&fixture.load_pending(started_txn(&started)).await).await;
    fixture.clock.advance(330 * SECOND);
    assert_eq!(
        request_status(&fixture, Method::POST, &start, "text/html").await,
        403,
        "a guest who waited too long must scan again"
    );
}

#[actix_rt::test]
async fn a_scanned_page_keeps_the_chosen_language() {
    let fixture = PagesFixture::new().await;
    let event = kiosk_event(&fixture).await;
    let (_, html) = fixture.page(&kiosk_code_path(&fixture, &event), ANDROID).await;
    let (_, link) =
        html.split_once("lang=ta\" lang=\"ta\"").map(|(before, _)| before.rsplit_once("href=\"").unwrap()).unwrap();
    let (status, html) = fixture.page(&format!("{}lang=ta", link.replace("&#38;", "&")), ANDROID).await;
    assert!(status == 200 && html.contains("lang=\"ta\"") && start_address(&html).contains("/start?pass="), "{html}");
}

#[actix_rt::test]
async fn a_refused_start_and_a_ticket_keep_the_permission_to_start() {
    let fixture = PagesFixture::with_settings(&[("limits.event_starts_per_minute_per_event", "1")]).await;
    let event = kiosk_event(&fixture).await;
    let (_, html) = fixture.page(&kiosk_code_path(&fixture, &event), ANDROID).await;
    let start = start_address(&html);
    let page = start.replace("/start?", "?");
    let guest = fixture.load_pending(started_txn(&fixture.call(TestRequest::post().uri(&start)).await)).await;
    let html = text(fixture.call_until_limited(|| TestRequest::post().uri(&start)).await).await;
    assert!(html.contains(&format!("href=\"{page}\"")), "the link to try again: {html}");
    let reloaded = fixture.call(TestRequest::get().uri(&start)).await;
    assert_eq!(reloaded.headers().get("location").unwrap(), page.as_str());

    fixture.verify(&guest).await;
    let visit = format!("sakshi_visit_{}=started", guest.id);
    let ticket = text(fixture.call(TestRequest::get().uri(&page).insert_header(("cookie", visit))).await).await;
    assert!(
        ticket.contains("Register someone else") && ticket.contains(&format!("href=\"{page}&#38;lang=ta\"")),
        "the page in another language has the button, too: {ticket}"
    );
}

#[actix_rt::test]
async fn the_kiosk_of_a_kiosk_only_event_requires_its_key() {
    let fixture = PagesFixture::new().await;
    let (event, open_event) = (kiosk_event(&fixture).await, fixture.create_event(|_| {}).await);
    for path in [
        "kiosk",
        "kiosk/events",
        "kiosk?key=AAAAAAAAAAAAAAAAAAAAAAAA",
        &format!("kiosk?{}", fixture.kiosk_key(&open_event)),
    ] {
        assert_eq!(fixture.page(&format!("/e/{}/{path}", event.id), DESKTOP).await.0, 404, "{path}");
    }
    let key = fixture.kiosk_key(&event);
    let (status, html) = fixture.page(&format!("/e/{}/kiosk?{key}", event.id), DESKTOP).await;
    assert!(status == 200 && html.contains(&format!("/kiosk/events?{key}\"")), "{html}");
}

#[actix_rt::test]
async fn an_exhausted_event_budget_turns_guests_away_and_spends_no_more() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|terms| terms.credit_budget = CreditBudget::new(1).ok()).await;
    let before = fixture.balance().await;
    started_txn(&super::guest::press_start(&fixture, &event, None).await);
    assert_guest_refused(&fixture, &event.id.to_string(), 409, "This event is not available", "budget_spent").await;
    assert_eq!(fixture.balance().await, before - 1);
    let (_, html) = fixture.page(&format!("/e/{}/kiosk", event.id), DESKTOP).await;
    assert!(html.contains("data-state=\"unavailable\"") && html.contains("This event is not available"), "{html}");
}
