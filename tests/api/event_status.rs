//! The status of an event: disabled, expired, at capacity or active, in this order of precedence.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use sakshi_kit::answer::Answer;
use sakshi_kit::event::{
    BROWSER, EVENTS, EventCounts, IDENTITY_APP, PROGRAM, TestEvent, cookie_of, redirect_txn, terms, timestamp_in,
};
use sakshi_kit::node::TestNode;
use sakshi_kit::waiting::{TIMEOUT, eventually};

/// HTTP status and code of a refused guest.
type Refusal = (u16, &'static str);
const EVENT_FULL: Refusal = (409, "event_full");
const EVENT_CLOSED: Refusal = (410, "event_closed");

/// Guests on a page of the list that the test reads page by page.
const PAGE_SIZE: u64 = 2;

/// Checks that an event is active, and that guests see its page.
async fn assert_active(event: &TestEvent) {
    assert_eq!(event.state().await["status"], "active");
    assert_eq!(Answer::receive(event.visit(Method::GET, BROWSER)).await.status, 200);
}

/// Checks the status of an event, and that its page, its button and its intent are refused.
async fn assert_refusing(event: &TestEvent, status: &str, (http_status, code): Refusal) {
    assert_eq!(event.state().await["status"], status);
    for request in [event.visit(Method::GET, PROGRAM), event.visit(Method::GET, IDENTITY_APP), event.button(PROGRAM)] {
        assert_eq!(Answer::receive(request).await.refusal(http_status), code, "{status}");
    }
    for request in [event.visit(Method::GET, BROWSER), event.button(BROWSER)] {
        let page = Answer::receive(request).await;
        assert_eq!(page.status, http_status, "{status}");
        assert!(page.header("content-type").unwrap().starts_with("text/html"), "{status}");
    }
}

#[tokio::test]
async fn the_status_is_the_first_of_disabled_expired_at_capacity_and_active() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(5).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(1)).await;
    assert_active(&event).await;
    identity_app.approve(&event.scan().await, "asha").await;
    assert_refusing(&event, "at_capacity", EVENT_FULL).await;
    assert_eq!(event.end_soon().await["remaining"], 0);
    eventually("the end", TIMEOUT, || async { (event.state().await["status"] == "expired").then_some(()) }).await;
    assert_refusing(&event, "expired", EVENT_CLOSED).await;
    assert_eq!(event.patch(&json!({"is_active": false})).await.ok()["status"], "disabled");
    assert_refusing(&event, "disabled", EVENT_CLOSED).await;

    assert_eq!(
        event.patch(&json!({"is_active": true})).await.ok()["status"],
        "expired",
        "enabling does not extend the event"
    );
    let extended = event.patch(&json!({"expires_at": timestamp_in(Duration::from_secs(60))})).await.ok();
    assert_eq!(extended["status"], "at_capacity", "a later end adds no places");
    assert_refusing(&event, "at_capacity", EVENT_FULL).await;
    assert_eq!(event.patch(&json!({"max_guests": 2})).await.ok()["status"], "active");
    assert_active(&event).await;
    assert_eq!(node.operator().balance(&organiser.client).await, 4);
}

#[tokio::test]
async fn an_ended_event_accepts_neither_scans_nor_credentials() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(5).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(5)).await;
    let pending = event.scan().await;
    let credential = identity_app.credential(&pending, "asha");
    event.end_soon().await;
    eventually("the end", TIMEOUT, || async { (event.state().await["status"] == "expired").then_some(()) }).await;
    assert_refusing(&event, "expired", EVENT_CLOSED).await;
    for _ in 0..2 {
        assert_eq!(identity_app.present(&pending, &credential).await.status, 410);
    }
    assert_eq!(organiser.result(&pending.txn).await.ok()["data"]["error_code"], "event_closed");
    assert_eq!(event.counts().await, EventCounts { status: "expired", registered: 0, scanned: 1, abandoned: 0 });
    assert_eq!(node.operator().balance(&organiser.client).await, 4);
}

#[tokio::test]
async fn an_event_ends_at_the_time_set_at_its_creation() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(1).await;
    let mut short_terms = terms(5);
    short_terms["expires_at"] = json!(timestamp_in(Duration::from_secs(4)));
    let event = TestEvent::open(&node, &organiser, &short_terms).await;
    eventually("the end", TIMEOUT, || async {
        (Answer::receive(event.visit(Method::GET, PROGRAM)).await.status == 410).then_some(())
    })
    .await;
    assert_refusing(&event, "expired", EVENT_CLOSED).await;
}

#[tokio::test]
async fn the_language_in_a_status_is_accepted_in_requests() {
    let node = TestNode::start().await;
    let organiser = node.backend_with_credits(1).await;
    let stored_language = async |requested: Value| {
        let mut event_terms = terms(10);
        event_terms["language"] = requested;
        TestEvent::open(&node, &organiser, &event_terms).await.state().await["language"].clone()
    };
    let mut languages = Vec::new();
    for code in 1..=23 {
        let language = stored_language(json!(code)).await;
        assert_eq!(stored_language(language.clone()).await, language, "{code}");
        languages.push(language);
    }
    let numbers: Vec<u64> = languages.iter().filter_map(|language| language.as_str().unwrap().parse().ok()).collect();
    assert_eq!(
        numbers,
        [3, 4, 8, 9, 10, 12, 17, 18, 19],
        "languages without an accepted name are written as their code"
    );
    languages.dedup();
    assert_eq!(languages.len(), 23, "every code must have a different language: {languages:?}");
}

#[tokio::test]
async fn the_status_shows_the_terms_of_the_event() {
    let node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let organiser = node.backend_with_credits(1).await;
    let mut event_terms = terms(250);
    event_terms["language"] = json!("Hindi");
    event_terms["webhook_url"] = json!("https://hooks.example/guests?venue=7");
    event_terms["purpose"] = json!("For the guest list");
    let event = TestEvent::open(&node, &organiser, &event_terms).await;
    let state = event.state().await;
    let created_at = state["created_at"].clone();
    let kiosk_url = state["kiosk_url"].clone();
    assert!(kiosk_url.as_str().unwrap().starts_with(&format!("https://verify.example/e/{}/kiosk?key=", event.id)));
    let expected = json!({
        "event_id": event.id, "name": "Open day", "status": "active", "status_reason": null, "is_active": true,
        "claims": ["name", "gender"],
        "language": "hindi", "max_guests": 250, "max_pending": null, "credit_budget": null, "entry": "open",
        "on_duplicate": "flag",
        "registration_count": 0, "duplicate_count": 0, "checked_in_count": 0, "remaining": 250, "scan_count": 0,
        "abandoned_count": 0, "pending_count": 0, "warning": null, "kiosk_url": kiosk_url,
        "poster_url": format!("https://verify.example/api/v1/nationalid-ovse/events/{}/poster", event.id),
        "webhook_url": "https://hooks.example/guests?venue=7", "qr_url": format!("https://verify.example/e/{}",
            event.id),
        "created_at": created_at, "starts_at": null, "place": null, "expires_at": event_terms["expires_at"],
        "time_zone": "Asia/Kolkata", "organiser": null,
        "purpose": "For the guest list",
    });
    assert_eq!(state, expected);
    assert!(event.id.len() >= 11 && event.id.chars().all(|letter| letter.is_ascii_alphanumeric()), "{}", event.id);
    let list = organiser.get(EVENTS).await.ok();
    assert_eq!((&list["total"], &list["events"]), (&json!(1), &json!([state])));
    let guest_list = organiser.get(&format!("{}/registrations", event.path())).await.ok();
    assert_eq!(guest_list, json!({"event_id": event.id, "page": 1, "page_size": 20, "total": 0, "registrations": []}));
    let second = TestEvent::open(&node, &organiser, &terms(10)).await;
    let page = organiser.get(&format!("{EVENTS}?page=2&page_size=1")).await.ok();
    assert_eq!((&page["page"], &page["page_size"], &page["total"]), (&json!(2), &json!(1), &json!(2)));
    assert_eq!(page["events"], json!([second.state().await]), "oldest first");
    assert_eq!(page.get("next"), None);
    let first = organiser.get(&format!("{EVENTS}?page_size=1")).await.ok();
    assert_eq!(first["next"], json!(format!("{EVENTS}?page=2&page_size=1")));
}

#[tokio::test]
async fn pages_of_registrations_are_stable_while_guests_register() {
    let node = TestNode::start().await;
    let (organiser, identity_app) = (node.backend_with_credits(20).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(20)).await;
    let (mut registered, mut listed_in_pages) = (Vec::new(), Vec::new());
    let mut pages = Vec::new();
    for number in 1..=4 {
        for _ in 0..3 {
            let opened = event.scan().await;
            identity_app.approve(&opened, "asha").await;
            registered.push(json!(opened.txn));
        }
        let page = event.page(number, PAGE_SIZE).await;
        assert_eq!(
            (&page["page"], &page["page_size"], &page["total"]),
            (&json!(number), &json!(PAGE_SIZE), &json!(registered.len()))
        );
        let next = format!("{}/registrations?page={}&page_size={PAGE_SIZE}", event.path(), number + 1);
        assert_eq!(page["next"], json!(next));
        let rows = page["registrations"].as_array().expect("registrations").clone();
        listed_in_pages.extend(rows.iter().map(|row| row["txn_id"].clone()));
        pages.push(rows);
    }
    assert_eq!(listed_in_pages, registered[..8], "every guest is listed once, oldest first");
    for (number, rows) in (1..).zip(&pages) {
        assert_eq!(event.page(number, PAGE_SIZE).await["registrations"].as_array(), Some(rows));
    }
    assert_eq!(event.page(6, PAGE_SIZE).await.get("next"), None);
    let after_last_page = event.page(7, PAGE_SIZE).await;
    assert_eq!(
        (&after_last_page["total"], &after_last_page["registrations"], after_last_page.get("next")),
        (&json!(12), &json!([]), None)
    );
    let default_page = organiser.get(&format!("{}/registrations", event.path())).await.ok();
    assert_eq!((&default_page["page"], &default_page["page_size"]), (&json!(1), &json!(20)));
    let listed: Vec<_> =
        default_page["registrations"].as_array().unwrap().iter().map(|row| row["txn_id"].clone()).collect();
    assert_eq!(listed, registered);
}

#[tokio::test]
async fn an_event_survives_a_kill_unchanged() {
    let mut node = TestNode::start_with(&[("SERVER__PUBLIC_BASE_URL", "https://verify.example")]).await;
    let (organiser, identity_app) = (node.backend_with_credits(10).await, node.identity_app());
    let event = TestEvent::open(&node, &organiser, &terms(1)).await;
    let disabled = TestEvent::open(&node, &organiser, &terms(1)).await;
    for _ in 0..2 {
        let scan = event.scan().await;
        identity_app.approve(&scan, "asha").await;
        event.patch(&json!({"max_guests": 3})).await.ok();
    }
    let pressed = event.press_in_new_browser().await;
    disabled.patch(&json!({"is_active": false, "name": "Cancelled"})).await.ok();
    let before = (event.state().await, event.registrations().await, disabled.state().await);
    node.kill().await;
    node.launch().await;
    assert_eq!((event.state().await, event.registrations().await, disabled.state().await), before);
    assert_refusing(&disabled, "disabled", EVENT_CLOSED).await;
    assert_eq!(
        redirect_txn(&event.press_with_cookies(&cookie_of(&pressed)).await),
        redirect_txn(&pressed),
        "a pending guest continues"
    );
    identity_app.approve(&event.follow(&pressed).await, "asha").await;
    assert_eq!(event.counts().await, EventCounts { status: "at_capacity", registered: 3, scanned: 3, abandoned: 0 });
    assert_refusing(&event, "at_capacity", EVENT_FULL).await;
    assert_eq!(node.operator().balance(&organiser.client).await, 7);
}

/// Returns the year of the next 31 January.
fn year_of_next_january() -> u32 {
    let soon = timestamp_in(Duration::from_secs(60));
    let year: u32 = soon[..4].parse().expect("a year");
    if soon < format!("{year}-01-31T18:30:00.000Z") { year } else { year + 1 }
}

#[tokio::test]
async fn guests_see_organiser_purpose_and_times_in_the_events_time_zone() {
    let node = TestNode::start_with(&[("OVSE__TIME_ZONE", "Asia/Kathmandu")]).await;
    let (organiser, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let mut terms = terms(3);
    let year = year_of_next_january();
    terms["expires_at"] = json!(format!("{year}-01-31T18:30:00Z"));
    let event = TestEvent::open(&node, &organiser, &terms).await;
    assert_eq!(event.state().await["time_zone"], "Asia/Kathmandu");
    let pressed = event.press_in_new_browser().await;
    let opened = event.follow(&pressed).await;
    let page = || Answer::receive(event.visit(Method::GET, BROWSER));
    let kiosk = async || node.get(&format!("/e/{}/kiosk", event.id)).await;
    let poster = async |file: &str| organiser.get(&format!("{}/{file}", event.path())).await;
    for answer in [page().await, kiosk().await, poster("poster").await, poster("poster.svg").await] {
        assert!(answer.text.contains(&format!("1 February {year}, 00:15 UTC+05:45")), "{}", answer.text);
    }
    let client = "Requested by <strong><bdi>Client</bdi></strong><span class=\"of-app\"><bdi>App</bdi></span>";
    assert!(page().await.text.contains(client), "{}", page().await.text);
    for answer in [kiosk().await, poster("poster").await, poster("poster.svg").await] {
        assert!(answer.text.contains(">Client<") && !answer.text.contains(">App<"), "{}", answer.text);
    }

    let change = json!({"time_zone": "Asia/Kolkata", "organiser": "Museum <of> Demopura", "purpose": "Free entry for \
        residents & friends",
        "place": "Hall B, 2nd floor", "starts_at": format!("{year}-01-31T13:00:00Z")});
    let changed = event.patch(&change).await.ok();
    assert_eq!((&changed["time_zone"], &changed["organiser"]), (&change["time_zone"], &change["organiser"]));
    let verify_page = || {
        Answer::receive(node.http.get(node.addresses.public(&format!("/v/{}", opened.txn))).header("accept", BROWSER))
    };
    for answer in [page().await, kiosk().await, poster("poster").await, poster("poster.svg").await] {
        assert!(
            answer.text.contains(&format!("31 January {year}, 18:30 IST")) && answer.text.contains("Hall B, 2nd floor"),
            "{}",
            answer.text
        );
    }
    for answer in [page().await, kiosk().await, poster("poster").await, poster("poster.svg").await, verify_page().await]
    {
        assert!(
            answer.text.contains("Museum &#60;of&#62; Demopura") && !answer.text.contains("<bdi>App</bdi>"),
            "{}",
            answer.text
        );
    }
    assert!(page().await.text.contains("Free entry for residents &#38; friends"));
    for answer in [page().await, kiosk().await, poster("poster").await, poster("poster.svg").await] {
        assert!(answer.text.contains(&format!("1 February {year}, 00:00 IST")), "{}", answer.text);
    }
    identity_app.approve(&opened, "asha").await;
    let ticket = verify_page().await.text;
    let calendar = node.get(&format!("/e/{}/event.ics", event.id)).await;
    assert_eq!(calendar.header("content-type"), Some("text/calendar; charset=utf-8"));
    let start = format!("DTSTART:{year}0131T130000Z\r\n");
    for line in [&*start, "SUMMARY:Open day\r\n", "LOCATION:Hall B\\, 2nd floor\r\n"] {
        assert!(calendar.text.contains(line), "{line}: {}", calendar.text);
    }
    for part in ["event.ics", " IST</time>", "Hall B, 2nd floor", "<dd><bdi>A••• R••</bdi></dd>"] {
        assert!(ticket.contains(part) && !ticket.contains("Asha"), "{part}: {ticket}");
    }
    let changed = event.patch(&json!({"organiser": null, "purpose": null})).await.ok();
    assert_eq!(
        (&changed["organiser"], &changed["purpose"], &changed["time_zone"]),
        (&Value::Null, &Value::Null, &json!("Asia/Kolkata"))
    );
}
