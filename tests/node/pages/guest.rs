//! A guest at an event's page: what opening it costs, what starting costs, and coming back.

use actix_web::body::BoxBody;
use actix_web::dev::ServiceResponse;
use actix_web::http::Method;
use actix_web::test::TestRequest;
use sakshi_actors::CompleteReply;
use sakshi_authority::intent::decode_unverified;
use sakshi_domain::channel::Channel;
use sakshi_domain::event::{Event, EventRefusal, MaxGuests};
use sakshi_domain::ids::TxnId;

use crate::pages_fixture::{ANDROID, PagesFixture, WINDOW, text};

pub(super) async fn press(fixture: &PagesFixture, event: &Event, cookie: Option<&str>) -> ServiceResponse<BoxBody> {
    let mut request = TestRequest::post().uri(&format!("/e/{}/start", event.id)).insert_header(("sec-fetch-site", "same-origin"));
    if let Some(cookie) = cookie {
        request = request.insert_header(("cookie", cookie));
    }
    fixture.ask(request).await
}

fn header(response: &ServiceResponse<BoxBody>, name: &str) -> String {
    response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

pub(super) fn started(response: &ServiceResponse<BoxBody>) -> TxnId {
    assert_eq!(response.status(), 303);
    header(response, "location").strip_prefix("/v/").unwrap().parse().unwrap()
}

#[actix_rt::test]
async fn opening_the_page_never_spends_a_credit() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let before = fixture.balance().await;
    let path = format!("/e/{}", event.id);
    for method in [Method::GET, Method::HEAD] {
        for accept in ["text/html", "*/*", "application/json"] {
            let request = TestRequest::default().method(method.clone()).uri(&path).insert_header(("accept", accept));
            assert_eq!(fixture.ask(request.insert_header(("sec-purpose", "prefetch"))).await.status(), 200);
        }
    }
    let head = TestRequest::default().method(Method::HEAD).uri(&path).insert_header(("accept", "application/jwt"));
    assert_eq!(fixture.ask(head).await.status(), 200);
    for (accept, name, purpose) in [
        ("application/jwt", "sec-purpose", "prefetch;prerender"),
        ("application/jwt", "purpose", "prefetch"),
        ("application/jwt", "x-moz", "prefetch"),
        ("application/jwt;q=0, text/html", "accept-language", "en"),
        ("text/html, application/jwt;q=0.1", "accept-language", "en"),
    ] {
        let response = fixture.ask(TestRequest::get().uri(&path).insert_header(("accept", accept)).insert_header((name, purpose))).await;
        assert_eq!((response.status().as_u16(), header(&response, "content-type").as_str()), (200, "text/html; charset=utf-8"), "{accept}");
    }
    assert_eq!(fixture.balance().await, before);
}

#[actix_rt::test]
async fn the_page_names_the_event_says_what_is_asked_for_and_has_one_button() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let (status, html) = fixture.page(&format!("/e/{}", event.id), ANDROID).await;
    assert_eq!(status, 200);
    assert!(html.contains("<h1 class=\"name\"><bdi>Open day &#38; tour</bdi></h1>"), "{html}");
    assert!(html.contains("<li>Full name</li>") && html.contains("<li>Whether you are over 18</li>"));
    assert!(html.contains(&format!("<form method=\"post\" action=\"/e/{}/start\"", event.id)));
    assert_eq!(html.matches("class=\"button").count(), 1);
    for forbidden in [" style=", "<style", " onclick", "<script>", "src=\"http", "href=\"http"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
}

#[actix_rt::test]
async fn a_browser_tells_its_origin_to_the_button() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let response = fixture.ask(TestRequest::get().uri(&format!("/e/{}", event.id))).await;
    assert_eq!(header(&response, "referrer-policy"), "same-origin", "with no-referrer a browser sends Origin: null");
    assert!(header(&response, "content-security-policy").contains("form-action 'self'"));
}

#[actix_rt::test]
async fn the_button_opens_a_transaction_of_the_event_for_one_credit_and_leads_to_its_verify_page() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let before = fixture.balance().await;
    let response = press(&fixture, &event, None).await;
    let pending = fixture.pending(started(&response)).await;
    assert_eq!(fixture.balance().await, before - 1);
    assert_eq!((pending.event, &pending.app, pending.terms.claims), (Some(event.id), &event.app, event.terms.claims));
    assert!(matches!(pending.terms.channel, Channel::Web) && pending.terms.face_auth && pending.terms.webhook_url.is_none());
    assert_eq!(pending.expires_at, pending.opened_at + WINDOW);
    assert_eq!(Some(pending.terms.request_id.as_str()), response.headers().get("x-request-id").map(|id| id.to_str().unwrap()));
    let cookie = header(&response, "set-cookie");
    assert_eq!(cookie, format!("sakshi_visit={}; Path=/e/{}; Max-Age=900; HttpOnly; SameSite=Lax; Secure", pending.id, event.id));
    let (status, html) = fixture.page(&format!("/v/{}", pending.id), ANDROID).await;
    assert!(status == 200 && html.contains("Open the identity app"));
}

#[actix_rt::test]
async fn the_same_browser_continues_while_its_transaction_is_pending_and_starts_afresh_afterwards() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let before = fixture.balance().await;
    let first = started(&press(&fixture, &event, None).await);
    let cookie = format!("other=1; sakshi_visit={first}");
    let again = press(&fixture, &event, Some(&cookie)).await;
    assert_eq!((started(&again), header(&again, "set-cookie")), (first, String::new()));
    let page = TestRequest::get().uri(&format!("/e/{}", event.id)).insert_header(("cookie", cookie.clone()));
    let html = text(fixture.ask(page).await).await;
    assert!(html.contains(&format!("href=\"/v/{first}\">Continue</a>")) && !html.contains("<form"), "{html}");
    assert_eq!(fixture.balance().await, before - 1);

    fixture.fail(&fixture.pending(first).await, "User Reject", "301").await;
    let page = TestRequest::get().uri(&format!("/e/{}", event.id)).insert_header(("cookie", cookie.clone()));
    assert!(text(fixture.ask(page).await).await.contains("<form"));
    assert_ne!(started(&press(&fixture, &event, Some(&cookie)).await), first);
    assert_eq!(fixture.balance().await, before - 2);
}

#[actix_rt::test]
async fn a_cookie_of_another_event_or_of_nothing_is_not_continued() {
    let fixture = PagesFixture::new().await;
    let (event, other) = (fixture.event(|_| {}).await, fixture.event(|_| {}).await);
    let elsewhere = started(&press(&fixture, &other, None).await);
    let single = fixture.open(|_| {}).await;
    for visit in [elsewhere.to_string(), single.id.to_string(), "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11".into(), "\"><b>".into()] {
        let fresh = started(&press(&fixture, &event, Some(&format!("sakshi_visit={visit}"))).await);
        assert_ne!(fresh.to_string(), visit);
        assert_eq!(fixture.pending(fresh).await.event, Some(event.id));
    }
}

#[actix_rt::test]
async fn the_identity_app_starts_a_verification_and_gets_its_intent() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let before = fixture.balance().await;
    let ask = || TestRequest::get().uri(&format!("/e/{}", event.id)).insert_header(("accept", "application/jwt"));
    let response = fixture.ask(ask()).await;
    assert_eq!((response.status().as_u16(), header(&response, "content-type").as_str()), (200, "application/jwt"));
    let txn: TxnId = decode_unverified(&text(response).await).unwrap().txn.parse().unwrap();
    assert_eq!(fixture.pending(txn).await.event, Some(event.id));
    assert_eq!(fixture.balance().await, before - 1);

    // Accept is a header that any site's script may set, so a visitor's browser could be made to ask.
    let refused = fixture.ask(ask().insert_header(("sec-fetch-site", "cross-site"))).await;
    assert_eq!(refused.status(), 403);
    assert!(text(refused).await.contains("\"code\":\"cross_site\""));
    let unknown = TestRequest::get().uri("/e/00000000000000000").insert_header(("accept", "application/jwt"));
    let unknown = fixture.ask(unknown).await;
    assert_eq!(unknown.status(), 404);
    assert!(text(unknown).await.contains("\"code\":\"not_found\""));
    assert_eq!(fixture.balance().await, before - 1);
}

#[actix_rt::test]
async fn another_sites_page_cannot_start_anything() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let before = fixture.balance().await;
    for (name, value) in
        [("sec-fetch-site", "cross-site"), ("sec-fetch-site", "same-site"), ("origin", "https://evil.example"), ("origin", "null")]
    {
        let request = TestRequest::post().uri(&format!("/e/{}/start", event.id)).insert_header((name, value));
        let response = fixture.ask(request).await;
        assert_eq!(response.status(), 403, "{name}: {value}");
        assert!(text(response).await.contains(&format!("href=\"/e/{}\"", event.id)));
    }
    assert_eq!(fixture.balance().await, before);
    let ours = TestRequest::post().uri(&format!("/e/{}/start", event.id)).insert_header(("origin", "https://v.example"));
    assert_eq!(fixture.ask(ours).await.status(), 303);
    let program = TestRequest::post().uri(&format!("/e/{}/start", event.id));
    assert_eq!(fixture.ask(program).await.status(), 303);
}

#[actix_rt::test]
async fn a_guest_who_was_not_verified_or_came_too_late_is_led_back_to_the_event() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|terms| terms.max_guests = MaxGuests::new(1).unwrap()).await;
    let mut guests = Vec::new();
    for _ in 0..4 {
        guests.push(fixture.pending(started(&press(&fixture, &event, None).await)).await);
    }
    let back = format!("href=\"/e/{}\"", event.id);
    fixture.fail(&guests[0], "User Reject", "301").await;
    let (_, html) = fixture.page(&format!("/v/{}", guests[0].id), ANDROID).await;
    assert!(html.contains("You declined the request") && html.contains(&back) && !html.contains("go back there"), "{html}");

    fixture.verify(&guests[1]).await;
    let (_, html) = fixture.page(&format!("/v/{}", guests[1].id), ANDROID).await;
    assert!(html.contains("You are verified") && !html.contains(&back), "{html}");
    assert_eq!(fixture.answer(&guests[2]).await, CompleteReply::EventRefused(EventRefusal::Full));
    let (_, html) = fixture.page(&format!("/v/{}", guests[2].id), ANDROID).await;
    assert!(html.contains("You were not verified") && html.contains("no place is left") && html.contains(&back), "{html}");

    fixture.clock.advance(WINDOW);
    let (status, html) = fixture.page(&format!("/v/{}", guests[3].id), ANDROID).await;
    assert!(status == 410 && html.contains("You can start again.") && html.contains(&back), "{html}");
}

#[actix_rt::test]
async fn opening_the_buttons_address_leads_to_the_button_and_costs_nothing() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let before = fixture.balance().await;
    let response = fixture.ask(TestRequest::get().uri(&format!("/e/{}/start", event.id))).await;
    assert_eq!((response.status().as_u16(), header(&response, "location")), (303, format!("/e/{}", event.id)));
    assert_eq!(fixture.page("/e/nothing/start", ANDROID).await.0, 404);
    assert_eq!(fixture.balance().await, before);
}
