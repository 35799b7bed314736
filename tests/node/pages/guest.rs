//! A guest at an event's page: its content, the cost of starting, and options after a failed verification.

use actix_web::body::BoxBody;
use actix_web::dev::ServiceResponse;
use actix_web::test::TestRequest;
use sakshi_actors::CompleteReply;
use sakshi_domain::channel::Channel;
use sakshi_domain::event::{Event, EventRefusal, MaxGuests};
use sakshi_domain::ids::TxnId;

use crate::pages_fixture::{ANDROID, PagesFixture, RESULT_TTL, WINDOW};

/// Presses the button of an event's page, with this cookie; returns the response.
pub(super) async fn press_start(
    fixture: &PagesFixture,
    event: &Event,
    cookie: Option<&str>,
) -> ServiceResponse<BoxBody> {
    let mut request =
        TestRequest::post().uri(&format!("/e/{}/start", event.id)).insert_header(("sec-fetch-site", "same-origin"));
    if let Some(cookie) = cookie {
        request = request.insert_header(("cookie", cookie));
    }
    fixture.call(request).await
}

/// Returns the value of a header, or an empty text.
fn header(response: &ServiceResponse<BoxBody>, name: &str) -> String {
    response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
}

/// Returns the id of the transaction to whose page the response redirects.
pub(super) fn started_txn(response: &ServiceResponse<BoxBody>) -> TxnId {
    assert_eq!(response.status(), 303);
    header(response, "location").strip_prefix("/v/").unwrap().parse().unwrap()
}

#[actix_rt::test]
async fn the_event_page_shows_name_claims_and_one_button() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let (status, html) = fixture.page(&format!("/e/{}", event.id), ANDROID).await;
    assert_eq!(status, 200);
    assert!(html.contains("<h1 class=\"name\"><bdi>Open day &#38; tour</bdi></h1>"), "{html}");
    assert!(html.contains("<li>Full name\n") && html.contains("<li>Whether you are 18 or older\n"));
    assert!(html.contains(&format!("<form method=\"post\" action=\"/e/{}/start\"", event.id)));
    assert_eq!(html.matches("class=\"button").count(), 1);
    for forbidden in [" style=", "<style", " onclick", "<script>", "src=\"http", "href=\"http"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
}

#[actix_rt::test]
async fn the_event_page_lets_browsers_send_their_origin() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let response = fixture.call(TestRequest::get().uri(&format!("/e/{}", event.id))).await;
    assert_eq!(header(&response, "referrer-policy"), "same-origin", "with no-referrer a browser sends Origin: null");
    assert!(header(&response, "content-security-policy").contains("form-action 'self'"));
}

#[actix_rt::test]
async fn the_button_opens_a_transaction_for_one_credit() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let before = fixture.balance().await;
    let response = press_start(&fixture, &event, None).await;
    let pending = fixture.load_pending(started_txn(&response)).await;
    assert_eq!(fixture.balance().await, before - 1);
    assert_eq!((pending.event, &pending.app, pending.terms.claims), (Some(event.id), &event.app, event.terms.claims));
    assert!(
        matches!(pending.terms.channel, Channel::Web) && pending.terms.face_auth && pending.terms.webhook_url.is_none()
    );
    assert_eq!(pending.expires_at, pending.opened_at + WINDOW);
    assert_eq!(
        Some(pending.terms.request_id.as_str()),
        response.headers().get("x-request-id").map(|id| id.to_str().unwrap())
    );
    let cookie = header(&response, "set-cookie");
    let max_age = (WINDOW + RESULT_TTL).as_secs();
    let (id, path) = (pending.id, format!("/e/{}", event.id));
    assert_eq!(
        cookie,
        format!("sakshi_visit_{id}=started; Path={path}; Max-Age={max_age}; HttpOnly; SameSite=Lax; Secure")
    );
    let (status, html) = fixture.page(&format!("/v/{}", pending.id), ANDROID).await;
    assert!(
        status == 200 && html.contains("Open the identity app") && html.contains("<bdi>Open day &#38; tour</bdi>"),
        "{html}"
    );
}

#[actix_rt::test]
async fn an_unverified_or_late_guest_gets_a_link_back_to_the_event() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|terms| terms.max_guests = MaxGuests::new(1).unwrap()).await;
    let mut guests = Vec::new();
    for _ in 0..4 {
        guests.push(fixture.load_pending(started_txn(&press_start(&fixture, &event, None).await)).await);
    }
    let link_to_event = format!("href=\"/e/{}\"", event.id);
    fixture.fail(&guests[0], "User Reject", "301").await;
    let (_, html) = fixture.page(&format!("/v/{}", guests[0].id), ANDROID).await;
    assert!(
        html.contains("You declined the request") && html.contains(&link_to_event) && !html.contains("go back there"),
        "{html}"
    );

    fixture.verify(&guests[1]).await;
    let (_, html) = fixture.page(&format!("/v/{}", guests[1].id), ANDROID).await;
    assert!(html.contains("You are registered") && !html.contains(&link_to_event), "{html}");
    assert_eq!(fixture.deliver_credential(&guests[2]).await, CompleteReply::EventRefused(EventRefusal::Full));
    let (_, html) = fixture.page(&format!("/v/{}", guests[2].id), ANDROID).await;
    assert!(
        html.contains("You were not verified")
            && html.contains("no places are left")
            && html.contains("If places are added")
            && html.contains(&link_to_event),
        "{html}"
    );

    fixture.clock.advance(WINDOW);
    let (status, html) = fixture.page(&format!("/v/{}", guests[3].id), ANDROID).await;
    assert!(status == 410 && html.contains("You can start again.") && html.contains(&link_to_event), "{html}");
}
