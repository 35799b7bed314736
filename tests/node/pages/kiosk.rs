//! The kiosk's screen: its content, its stream, and the stream's omissions.

use std::pin::Pin;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody as _};
use actix_web::test::TestRequest;
use futures_util::future::poll_fn;
use sakshi_domain::event::{Event, EventEntry, EventPatch, MaxGuests};
use serde_json::{Value, json};

use super::guest::{press, started};
use crate::pages_fixture::{DESKTOP, PagesFixture};

/// A stream, read state by state.
struct Stream(Pin<Box<BoxBody>>);

impl Stream {
    async fn open(fixture: &PagesFixture, path: &str) -> Self {
        let response = fixture.ask(TestRequest::get().uri(path)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers().get("content-type").unwrap(), "text/event-stream");
        Self(Box::pin(response.into_body()))
    }

    async fn text(&mut self) -> Option<String> {
        let next = poll_fn(|context| self.0.as_mut().poll_next(context));
        let chunk = tokio::time::timeout(Duration::from_secs(100), next).await.unwrap();
        chunk.map(|chunk| String::from_utf8(chunk.unwrap().to_vec()).unwrap())
    }

    async fn state(&mut self) -> Value {
        let text = self.text().await.unwrap();
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_else(|| panic!("{text}"));
        serde_json::from_str(data).unwrap()
    }

    /// Returns the next state that differs: the stream also repeats itself.
    async fn change(&mut self, from: &Value) -> Value {
        loop {
            let state = self.state().await;
            if state != *from {
                return state;
            }
        }
    }
}

async fn register(fixture: &PagesFixture, event: &Event) {
    let guest = fixture.pending(started(&press(fixture, event, None).await)).await;
    fixture.verify(&guest).await;
}

#[actix_rt::test]
async fn the_screen_has_the_code_the_steps_and_the_state_and_works_without_javascript() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let (status, html) = fixture.page(&format!("/e/{}/kiosk", event.id), DESKTOP).await;
    assert_eq!(status, 200);
    assert!(
        html.contains("Open day &#38; tour</bdi></h1>") && html.contains("aria-label=\"QR code of this event\"><svg")
    );
    assert_eq!(html.matches("<li>").count(), 3 + 17);
    assert!(
        html.contains("Open for guests")
            && html.contains("<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>")
    );
    assert!(html.contains("src=\"/assets/kiosk.js?v=") && !html.contains("Places left"), "{html}");
    let (_, html) = fixture.page(&format!("/e/{}/kiosk?places=1", event.id), DESKTOP).await;
    assert!(!html.contains("Places left"), "that is for who has the key: {html}");
    let key = fixture.kiosk_key(&event);
    let (_, html) = fixture.page(&format!("/e/{}/kiosk?{key}&places=1", event.id), DESKTOP).await;
    assert!(
        html.contains("Places left <b id=\"places\">10</b>")
            && html.contains(&format!("/kiosk/events?{key}&#38;places=1\""))
    );

    let closed = fixture.event(|terms| terms.is_active = false).await;
    let (status, html) = fixture.page(&format!("/e/{}/kiosk", closed.id), DESKTOP).await;
    assert!(status == 200 && html.contains("Registration has closed") && html.contains("data-state=\"disabled\""));
    assert_eq!(fixture.page("/e/00000000000000000/kiosk", DESKTOP).await.0, 404);
}

#[actix_rt::test]
async fn the_stream_tells_of_a_registration_a_full_event_and_a_raised_cap() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|terms| terms.max_guests = MaxGuests::new(2).unwrap()).await;
    let mut stream =
        Stream::open(&fixture, &format!("/e/{}/kiosk/events?{}&places=1", event.id, fixture.kiosk_key(&event))).await;
    let open = stream.state().await;
    let expected = json!({
        "status": "active", "words": "Open for guests", "name": "Open day & tour", "organiser": "Sandbox client",
        "purpose": null,
        "until": "15 November 2023, 04:43 IST", "registered": false, "places_left": 2, "time": "03:43",
    });
    assert_eq!(open, expected);
    register(&fixture, &event).await;
    let one_left = stream.change(&open).await;
    assert_eq!(
        (&one_left["status"], &one_left["places_left"], &one_left["registered"]),
        (&json!("active"), &json!(1), &json!(true))
    );
    register(&fixture, &event).await;
    let full = stream.change(&one_left).await;
    assert_eq!(
        (&full["status"], &full["words"], &full["places_left"]),
        (&json!("at_capacity"), &json!("This event is full"), &json!(0))
    );

    let patch = EventPatch { max_guests: Some(MaxGuests::new(5).unwrap()), ..EventPatch::default() };
    fixture.shared.service.events.patch(event.id, event.app.clone(), patch).await.unwrap();
    assert_eq!(stream.change(&full).await["places_left"], 3);
}

#[actix_rt::test]
async fn without_leave_no_number_is_told_but_that_a_guest_was_registered_is_once() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    let open = stream.state().await;
    register(&fixture, &event).await;
    let registered = stream.state().await;
    let mut expected = open;
    expected["registered"] = json!(true);
    assert_eq!(registered, expected);
    let patch = EventPatch { is_active: Some(false), ..EventPatch::default() };
    fixture.shared.service.events.patch(event.id, event.app.clone(), patch).await.unwrap();
    let closed = stream.state().await;
    assert_eq!((&closed["status"], &closed["registered"]), (&json!("disabled"), &json!(false)));
}

#[actix_rt::test]
async fn out_of_credits_the_screen_says_unavailable_at_the_scan_that_takes_the_last_one() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    fixture.leave_credits(1).await;
    let path = format!("/e/{}/kiosk", event.id);
    let mut stream = Stream::open(&fixture, &format!("{path}/events")).await;
    let open = stream.state().await;
    assert_eq!(open["status"], "active");
    started(&press(&fixture, &event, None).await);
    let unavailable = stream.change(&open).await;
    assert_eq!(
        (&unavailable["status"], &unavailable["words"]),
        (&json!("unavailable"), &json!("This event is not available"))
    );
    let (status, html) = fixture.page(&path, DESKTOP).await;
    assert!(status == 200 && html.contains("data-state=\"unavailable\""), "{html}");
}

#[actix_rt::test]
async fn a_quiet_stream_repeats_itself_and_makes_way_for_the_next_after_a_minute() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let mut told = Vec::new();
    while let Some(text) = stream.text().await {
        told.push(text);
    }
    assert!((Duration::from_secs(59)..Duration::from_secs(65)).contains(&began.elapsed()));
    assert_eq!(told.iter().filter(|text| text.contains("event: state")).count(), 6, "{told:?}");
    assert_eq!(told.last().unwrap(), "retry: 2000\n\n");
}

#[actix_rt::test]
async fn an_event_that_ends_while_the_screen_looks_is_told_to_have_ended() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    let open = stream.state().await;
    fixture.clock.advance(Duration::from_secs(3_600));
    let ended = stream.change(&open).await;
    assert_eq!((&ended["status"], &ended["words"]), (&json!("expired"), &json!("This event has ended")));
}

#[actix_rt::test]
async fn a_drain_ends_the_stream_and_a_stream_of_nothing_is_a_404() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    stream.state().await;
    assert_eq!(fixture.shared.service.drain.finish(Duration::ZERO).await, 1, "an open stream is under way");
    fixture.shared.service.drain.begin();
    assert_eq!(stream.text().await.unwrap(), "retry: 2000\n\n");
    assert_eq!(stream.text().await, None);
    assert_eq!(fixture.ask(TestRequest::get().uri("/e/00000000000000000/kiosk/events")).await.status(), 404);
}

#[actix_rt::test]
async fn a_stream_without_the_key_ends_when_only_guests_at_the_kiosk_may_start() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    assert_eq!(stream.state().await["code"], Value::Null);
    let patch = EventPatch { entry: Some(EventEntry::Kiosk), ..EventPatch::default() };
    fixture.shared.service.events.patch(event.id, event.app.clone(), patch).await.unwrap();
    while let Some(text) = stream.text().await {
        assert!(!text.contains("\"code\""), "{text}");
    }
}

#[actix_rt::test]
async fn where_only_guests_at_the_kiosk_start_the_stream_brings_the_next_code() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|terms| terms.entry = EventEntry::Kiosk).await;
    let mut stream =
        Stream::open(&fixture, &format!("/e/{}/kiosk/events?{}", event.id, fixture.kiosk_key(&event))).await;
    let shown = stream.state().await;
    fixture.clock.advance(Duration::from_secs(30));
    let next = stream.change(&shown).await;
    let code = |state: &Value| state["code"].as_str().unwrap().to_owned();
    assert!(code(&next).starts_with("M4 4.5h7") && code(&next) != code(&shown));
    // The code, shown for ten more seconds, is accepted for half a minute after that.
    assert_eq!((&next["code_valid_ms"], &next["time"]), (&json!(40_000), &json!("03:43")));
    let (_, html) = fixture.page(&format!("/e/{}/kiosk?{}", event.id, fixture.kiosk_key(&event)), DESKTOP).await;
    assert!(
        html.contains(&code(&next)) && html.contains("data-time=\"03:43\" data-valid=\"40000\""),
        "a page that is opened now shows the same"
    );
}

#[actix_rt::test]
async fn a_screen_whose_address_names_languages_has_call_steps_and_state_in_each() {
    let fixture = PagesFixture::new().await;
    let event = fixture.event(|_| {}).await;
    let path = format!("/e/{}/kiosk", event.id);
    let (_, html) = fixture.page(&format!("{path}?languages=urdu,english"), DESKTOP).await;
    for part in [
        "<html lang=\"ur\" dir=\"rtl\">",
        "<span lang=\"ur\" dir=\"rtl\">",
        "<span lang=\"en\" dir=\"ltr\" hidden>Scan to register</span>",
        "<ol class=\"steps\" lang=\"en\" dir=\"ltr\" hidden>",
        "<span lang=\"en\" dir=\"ltr\" hidden>Open for guests</span>",
        &format!("data-stream=\"{path}/events?languages=22,23\""),
        &format!("href=\"{path}?lang=ta\""),
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    let mut stream = Stream::open(&fixture, &format!("{path}/events?languages=22,23")).await;
    assert_eq!(stream.state().await["other_words"], json!(["Open for guests"]));
    for query in ["languages=german", "languages=urdu,english&lang=en"] {
        let (_, html) = fixture.page(&format!("{path}?{query}"), DESKTOP).await;
        assert!(
            html.contains("<p class=\"call turn\"><span>Scan to register</span></p>") && !html.contains(" hidden>"),
            "{query}: {html}"
        );
    }
}
