//! The kiosk's screen, and its stream of states.

use std::pin::Pin;
use std::time::Duration;

use actix_web::body::{BoxBody, MessageBody as _};
use actix_web::test::TestRequest;
use futures_util::future::poll_fn;
use sakshi_domain::event::{Event, EventEntry, EventPatch, MaxGuests};
use serde_json::{Value, json};

use super::guest::{press_start, started_txn};
use crate::pages_fixture::{DESKTOP, PagesFixture};

/// The event stream of a kiosk's screen, read state by state.
struct Stream(Pin<Box<BoxBody>>);

impl Stream {
    async fn open(fixture: &PagesFixture, path: &str) -> Self {
        let response = fixture.call(TestRequest::get().uri(path)).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers().get("content-type").unwrap(), "text/event-stream");
        Self(Box::pin(response.into_body()))
    }

    /// Returns the next message as it was sent; nothing after the end of the stream.
    async fn next_text(&mut self) -> Option<String> {
        let next = poll_fn(|context| self.0.as_mut().poll_next(context));
        let chunk = tokio::time::timeout(Duration::from_secs(100), next).await.unwrap();
        chunk.map(|chunk| String::from_utf8(chunk.unwrap().to_vec()).unwrap())
    }

    /// Returns the state in the next message.
    async fn next_state(&mut self) -> Value {
        let text = self.next_text().await.unwrap();
        let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_else(|| panic!("{text}"));
        serde_json::from_str(data).unwrap()
    }

    /// Returns the next state that differs from `previous`; the stream repeats its state.
    async fn next_change(&mut self, previous: &Value) -> Value {
        loop {
            let state = self.next_state().await;
            if state != *previous {
                return state;
            }
        }
    }
}

/// Registers a guest who starts at the event's page and is verified.
async fn register(fixture: &PagesFixture, event: &Event) {
    let guest = fixture.load_pending(started_txn(&press_start(fixture, event, None).await)).await;
    fixture.verify(&guest).await;
}

#[actix_rt::test]
async fn the_screen_shows_code_steps_and_state_without_javascript() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let (status, html) = fixture.page(&format!("/e/{}/kiosk", event.id), DESKTOP).await;
    assert_eq!(status, 200);
    assert!(
        html.contains("Open day &#38; tour</bdi></h1>") && html.contains("aria-label=\"QR code of this event\"><svg")
    );
    assert_eq!(html.matches("<li>").count(), 3 + 17, "three steps and a link to each language");
    assert!(
        html.contains("Open for guests")
            && html.contains("<noscript><meta http-equiv=\"refresh\" content=\"10\"></noscript>")
    );
    assert!(html.contains("src=\"/assets/kiosk.js?v=") && !html.contains("Places left"), "{html}");
    let (_, html) = fixture.page(&format!("/e/{}/kiosk?places=1", event.id), DESKTOP).await;
    assert!(!html.contains("Places left"), "places are shown only with the key: {html}");
    let key = fixture.kiosk_key(&event);
    let (_, html) = fixture.page(&format!("/e/{}/kiosk?{key}&places=1", event.id), DESKTOP).await;
    assert!(
        html.contains("Places left <b id=\"places\">10</b>")
            && html.contains(&format!("/kiosk/events?{key}&#38;places=1\""))
    );

    let closed = fixture.create_event(|terms| terms.is_active = false).await;
    let (status, html) = fixture.page(&format!("/e/{}/kiosk", closed.id), DESKTOP).await;
    assert!(status == 200 && html.contains("Registration has closed") && html.contains("data-state=\"disabled\""));
    let key = fixture.kiosk_key(&closed);
    let (_, html) = fixture.page(&format!("/e/{}/kiosk?{key}&places=1", closed.id), DESKTOP).await;
    assert!(
        html.contains("<p class=\"places\" hidden>") && html.contains("<b id=\"places\"></b>"),
        "the script shows the places once the event opens again: {html}"
    );
    assert_eq!(fixture.page("/e/00000000000000000/kiosk", DESKTOP).await.0, 404);
}

#[actix_rt::test]
async fn the_stream_reports_registrations_a_full_event_and_a_raised_limit() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|terms| terms.max_guests = MaxGuests::new(2).unwrap()).await;
    let mut stream =
        Stream::open(&fixture, &format!("/e/{}/kiosk/events?{}&places=1", event.id, fixture.kiosk_key(&event))).await;
    let open = stream.next_state().await;
    let expected = json!({
        "status": "active", "words": "Open for guests", "name": "Open day & tour", "organiser": "Sandbox client",
        "purpose": null,
        "until": "15 November 2023, 04:43 IST", "registered": false, "places_left": 2, "time": "03:43",
    });
    assert_eq!(open, expected);
    register(&fixture, &event).await;
    let one_left = stream.next_change(&open).await;
    assert_eq!(
        (&one_left["status"], &one_left["places_left"], &one_left["registered"]),
        (&json!("active"), &json!(1), &json!(true))
    );
    register(&fixture, &event).await;
    let full = stream.next_change(&one_left).await;
    assert_eq!(
        (&full["status"], &full["words"], &full["places_left"]),
        (&json!("at_capacity"), &json!("This event is full"), &json!(0))
    );

    let patch = EventPatch { max_guests: Some(MaxGuests::new(5).unwrap()), ..EventPatch::default() };
    fixture.shared.service.events.patch(event.id, event.app.clone(), patch).await.unwrap();
    assert_eq!(stream.next_change(&full).await["places_left"], 3);
}

#[actix_rt::test]
async fn a_stream_without_the_key_reports_registrations_without_numbers() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    let open = stream.next_state().await;
    register(&fixture, &event).await;
    let registered = stream.next_state().await;
    let mut expected = open;
    expected["registered"] = json!(true);
    assert_eq!(registered, expected);
    let patch = EventPatch { is_active: Some(false), ..EventPatch::default() };
    fixture.shared.service.events.patch(event.id, event.app.clone(), patch).await.unwrap();
    let closed = stream.next_state().await;
    assert_eq!((&closed["status"], &closed["registered"]), (&json!("disabled"), &json!(false)));
}

#[actix_rt::test]
async fn the_screen_shows_unavailable_after_the_last_credit() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    fixture.set_balance(1).await;
    let path = format!("/e/{}/kiosk", event.id);
    let mut stream = Stream::open(&fixture, &format!("{path}/events")).await;
    let open = stream.next_state().await;
    assert_eq!(open["status"], "active");
    started_txn(&press_start(&fixture, &event, None).await);
    let unavailable = stream.next_change(&open).await;
    assert_eq!(
        (&unavailable["status"], &unavailable["words"]),
        (&json!("unavailable"), &json!("This event is not available"))
    );
    let (status, html) = fixture.page(&path, DESKTOP).await;
    assert!(status == 200 && html.contains("data-state=\"unavailable\""), "{html}");
}

#[actix_rt::test]
async fn a_quiet_stream_repeats_its_state_and_ends_after_a_minute() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    tokio::time::pause();
    let started_at = tokio::time::Instant::now();
    let mut messages = Vec::new();
    while let Some(text) = stream.next_text().await {
        messages.push(text);
    }
    assert!((Duration::from_secs(59)..Duration::from_secs(65)).contains(&started_at.elapsed()));
    assert_eq!(messages.iter().filter(|text| text.contains("event: state")).count(), 6, "{messages:?}");
    assert_eq!(messages.last().unwrap(), "retry: 2000\n\n");
}

#[actix_rt::test]
async fn the_stream_reports_the_end_of_the_event() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    let open = stream.next_state().await;
    fixture.clock.advance(Duration::from_secs(3_600));
    let ended = stream.next_change(&open).await;
    assert_eq!((&ended["status"], &ended["words"]), (&json!("expired"), &json!("This event has ended")));
}

#[actix_rt::test]
async fn a_drain_ends_the_stream_and_an_unknown_event_gets_404() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    stream.next_state().await;
    assert_eq!(fixture.shared.service.drain.finish(Duration::ZERO).await, 1, "an open stream is in flight");
    fixture.shared.service.drain.begin();
    assert_eq!(stream.next_text().await.unwrap(), "retry: 2000\n\n");
    assert_eq!(stream.next_text().await, None);
    assert_eq!(fixture.call(TestRequest::get().uri("/e/00000000000000000/kiosk/events")).await.status(), 404);
}

#[actix_rt::test]
async fn a_stream_without_the_key_ends_when_the_event_becomes_kiosk_only() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
    let mut stream = Stream::open(&fixture, &format!("/e/{}/kiosk/events", event.id)).await;
    assert_eq!(stream.next_state().await["code"], Value::Null);
    let patch = EventPatch { entry: Some(EventEntry::Kiosk), ..EventPatch::default() };
    fixture.shared.service.events.patch(event.id, event.app.clone(), patch).await.unwrap();
    while let Some(text) = stream.next_text().await {
        assert!(!text.contains("\"code\""), "{text}");
    }
}

#[actix_rt::test]
async fn the_stream_of_a_kiosk_only_event_brings_the_next_code() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|terms| terms.entry = EventEntry::Kiosk).await;
    let mut stream =
        Stream::open(&fixture, &format!("/e/{}/kiosk/events?{}", event.id, fixture.kiosk_key(&event))).await;
    let first = stream.next_state().await;
    fixture.clock.advance(Duration::from_secs(30));
    let next = stream.next_change(&first).await;
    let code = |state: &Value| state["code"].as_str().unwrap().to_owned();
    assert!(code(&next).starts_with("M4 4.5h7") && code(&next) != code(&first));
    // The code, shown for ten more seconds, is accepted for half a minute after that.
    assert_eq!((&next["code_valid_ms"], &next["time"]), (&json!(40_000), &json!("03:43")));
    let (_, html) = fixture.page(&format!("/e/{}/kiosk?{}", event.id, fixture.kiosk_key(&event)), DESKTOP).await;
    assert!(
        html.contains(&code(&next)) && html.contains("data-time=\"03:43\" data-valid=\"40000\""),
        "a newly opened page shows the same code"
    );
}

#[actix_rt::test]
async fn a_screen_shows_each_language_of_its_address() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|_| {}).await;
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
    assert_eq!(stream.next_state().await["other_words"], json!(["Open for guests"]));
    for query in ["languages=german", "languages=urdu,english&lang=en"] {
        let (_, html) = fixture.page(&format!("{path}?{query}"), DESKTOP).await;
        assert!(
            html.contains("<p class=\"call turn\"><span>Scan to register</span></p>") && !html.contains(" hidden>"),
            "{query}: {html}"
        );
    }
}
