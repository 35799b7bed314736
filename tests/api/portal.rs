//! The portal over HTTP: sign-in, forms, and trials. A trial costs and discloses the same as the API.

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::json;

use sakshi_kit::event::{TestEvent, terms};
use sakshi_kit::node::TestNode;
use sakshi_kit::portal::{Browser, CSRF_FIELD, TRIAL, element_text, hidden_field};
use sakshi_kit::waiting::{TIMEOUT, eventually};

#[tokio::test]
async fn the_session_cookie_is_http_only_and_no_page_contains_the_key() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let mut browser = Browser::at(&node);
    let answer = browser.sign_in(&backend.key, &backend.app).await;
    assert_eq!((answer.status, answer.header("location"), &*answer.text), (303, Some("/portal"), ""));
    let cookie = answer.header("set-cookie").unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/portal"] {
        assert!(cookie.split("; ").any(|part| part == attribute), "{attribute}");
    }
    assert!(!cookie.contains("Max-Age") && !cookie.contains("Expires"), "the cookie ends with the browser");
    let secret = browser.cookie.split_once('=').unwrap().1;
    for path in [
        "/portal",
        "/portal/events",
        "/portal/verifications",
        "/portal/events/new",
        "/portal/checks",
        "/portal/webhooks",
        "/portal/credits",
        "/portal/nothing",
    ] {
        let page = browser.get(path).await;
        assert!(!page.text.contains(&backend.key) && !page.text.contains(secret), "{path}");
        assert_eq!(page.header("cache-control"), Some("no-store"), "{path}");
    }
    for (key, app) in [(&backend.app, &backend.key), (&backend.key, &backend.key), (&backend.key, &"nobody".to_owned())]
    {
        let refused = Browser::at(&node).sign_in(key, app).await;
        assert_eq!((refused.status, refused.header("set-cookie")), (401, None));
        assert!(!refused.text.contains(&backend.key), "the key is never shown, in whichever field it was pasted");
    }
}

#[tokio::test]
async fn the_sandbox_redirects_a_browser_to_the_portal() {
    let node = TestNode::start().await;
    let answer = Browser::at(&node).get("/").await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/portal")));
}

#[tokio::test]
async fn a_form_without_the_csrf_token_of_its_session_changes_nothing() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(5).await;
    let browser = Browser::signed_in(&node, &backend).await;
    let foreign_token = Browser::signed_in(&node, &backend).await.csrf_token().await;
    let event = [
        ("name", "Open day"),
        ("claims", "name"),
        ("max_guests", "5"),
        ("expires_at", "2099-01-01T00:00"),
        ("language", "english"),
    ];
    let webhook = [("apiType", "ESign"), ("webhookUrl", "https://client.example/hook")];
    let forms: [(&str, &[(&str, &str)]); 4] = [
        ("/portal/trial", &TRIAL),
        ("/portal/events", &event),
        ("/portal/webhooks", &webhook),
        ("/portal/sign-out", &[]),
    ];
    for (path, fields) in forms {
        for token in [None, Some((CSRF_FIELD, "")), Some((CSRF_FIELD, foreign_token.as_str()))] {
            let fields: Vec<_> = fields.iter().copied().chain(token).collect();
            let refused = browser.post(path, &fields).await;
            assert_eq!(refused.status, 403, "{path}: {}", refused.text);
            assert!(refused.text.contains("This form was not accepted"));
        }
        let own_token = browser.csrf_token().await;
        let from_other_site = browser.request(Method::POST, path).header("Origin", "https://evil.example");
        let from_other_site = from_other_site
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(format!("{CSRF_FIELD}={own_token}"));
        assert_eq!(from_other_site.send().await.unwrap().status(), 403, "{path} from a page of another site");
    }
    assert_eq!(node.operator().balance(&backend.client).await, 5);
    assert_eq!(backend.get("/api/v1/nationalid-ovse/events").await.ok()["total"], 0);
    assert_eq!(backend.get("/api/v1/user/webhook").await.ok()["data"], json!([]));
    assert_eq!(browser.get("/portal").await.status, 200, "still signed in");
}

#[tokio::test]
async fn a_trial_debits_one_credit_even_if_its_form_is_sent_ten_times() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(3).await;
    let browser = Browser::signed_in(&node, &backend).await;
    let form = browser.get("/portal/trial").await.text;
    let (token, form_id) = (hidden_field(&form, CSRF_FIELD), hidden_field(&form, "once"));
    let fields = [&TRIAL as &[(&str, &str)], &[(CSRF_FIELD, &token), ("once", &form_id)]].concat();
    let answers = join_all((0..10).map(|_| browser.post("/portal/trial", &fields))).await;
    let locations: Vec<_> =
        answers.iter().filter(|answer| answer.status == 303).map(|answer| answer.header("location").unwrap()).collect();
    assert!(!locations.is_empty() && locations.iter().all(|path| path == &locations[0]), "{locations:?}");
    assert_eq!(node.operator().balance(&backend.client).await, 2);

    let txn = locations[0].strip_prefix("/portal/transactions/").unwrap();
    assert!(backend.is_pending(txn).await, "a trial is an ordinary transaction");
    let statement = node.operator().statement(&backend.client).await;
    let debit = statement.last().unwrap();
    assert_eq!((&debit["kind"], &debit["amount"], &debit["reference"]), (&json!("debit"), &json!(1), &json!(txn)));

    let without_claims: Vec<_> = TRIAL.into_iter().filter(|(name, _)| *name != "claims").collect();
    assert_eq!(browser.send("/portal/trial", &without_claims).await.status, 400, "no claim is selected");
    assert_eq!(node.operator().balance(&backend.client).await, 2);
    browser.trial().await;
    browser.trial().await;
    let refused = browser.send("/portal/trial", &TRIAL).await;
    assert_eq!(refused.status, 402);
    assert!(refused.text.contains("<b>0</b> left"), "{}", refused.text);
}

#[tokio::test]
async fn a_trial_shows_the_claims_and_the_exact_response_of_a_poll() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let browser = Browser::signed_in(&node, &backend).await;
    let trial = browser.trial().await;
    assert_eq!(element_text(&trial.page, "body"), backend.result(&trial.opened.txn).await.text);
    node.identity_app().approve(&trial.opened, "asha").await;
    let page = browser.send(&format!("{}/details", trial.path), &[]).await.text;
    assert!(page.contains("<h1>Verified</h1>") && page.contains("<bdi>Asha Rao</bdi>"), "{page}");
    assert_eq!(element_text(&page, "body"), backend.result(&trial.opened.txn).await.text);
}

#[tokio::test]
async fn a_revoked_key_ends_its_sessions_and_no_others() {
    let node = TestNode::start().await;
    let (backend, operator) = (node.backend_with_credits(1).await, node.operator());
    let (key_id, key) = operator.issue_key(&backend.client, &json!({})).await;
    let remaining = Browser::signed_in(&node, &backend).await;
    let ended = Browser::signed_in(&node, &backend.with_credentials(&key, &backend.app)).await;
    let token = ended.csrf_token().await;
    operator.delete(&format!("/admin/v1/keys/{key_id}")).await.ok();
    eventually("the end of the session", TIMEOUT, || async {
        ended.is_redirected_to_sign_in("/portal").await.then_some(())
    })
    .await;
    let fields = [&TRIAL as &[(&str, &str)], &[(CSRF_FIELD, &token)]].concat();
    let refused = ended.post("/portal/trial", &fields).await;
    assert_eq!(
        (refused.status, refused.header("location").map(|to| to.starts_with("/portal/sign-in"))),
        (303, Some(true))
    );
    assert_eq!(operator.balance(&backend.client).await, 1);
    assert_eq!(remaining.get("/portal").await.status, 200, "the session of the other key continues");
}

#[tokio::test]
async fn data_of_another_client_is_neither_shown_nor_changed() {
    let node = TestNode::start().await;
    let (backend, other) = (node.backend_with_credits(2).await, node.backend_with_credits(2).await);
    let (browser, stranger) = (Browser::signed_in(&node, &backend).await, Browser::signed_in(&node, &other).await);
    let trial = browser.trial().await;
    let event = [("name", "Open day"), ("claims", "name"), ("max_guests", "5"), ("language", "english")];
    let end = proposed_end(&browser).await;
    let created = browser.send("/portal/events", &[&event as &[(&str, &str)], &[("expires_at", &end)]].concat()).await;
    let event =
        created.header("location").unwrap_or_else(|| panic!("{}", created.text)).split('?').next().unwrap().to_owned();
    assert_eq!(browser.get(&event).await.status, 200);

    for path in [
        &trial.path,
        &event,
        &format!("{event}/live"),
        &format!("{event}/settings"),
        &format!("{event}/poster.svg"),
        &format!("{event}/qr.png"),
    ] {
        let refused = stranger.get(path).await;
        assert_eq!(refused.status, 404, "{path}");
        assert!(!refused.text.contains(&trial.opened.txn) && !refused.text.contains("Open day"), "{path}");
    }
    let unknown = stranger.get("/portal/transactions/00000000-0000-4000-8000-000000000000").await;
    assert_eq!(
        stranger.get(&trial.path).await.text,
        unknown.text,
        "the page does not reveal that the transaction exists"
    );
    let settings = format!("{event}/settings");
    assert_eq!(stranger.send(&settings, &[("is_active", "false")]).await.status, 404);
    assert!(browser.get(&settings).await.text.contains("value=\"false\""), "the event was not disabled");
    assert!(!stranger.get("/portal/credits").await.text.contains(&trial.opened.txn));
    assert!(!stranger.get("/portal/events").await.text.contains("Open day"));
}

/// Returns the end proposed by the form for a new event.
async fn proposed_end(browser: &Browser) -> String {
    let page = browser.get("/portal/events/new").await.text;
    let (_, rest) = page.rsplit_once("type=\"datetime-local\" value=\"").expect("an end");
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test]
async fn an_event_is_created_with_organiser_purpose_and_time_zone() {
    let node = TestNode::start().await;
    let backend = node.backend_with_credits(1).await;
    let browser = Browser::signed_in(&node, &backend).await;
    assert!(
        browser.get("/portal/events/new").await.text.contains("value=\"Asia/Kolkata\""),
        "the time zone of the settings is proposed"
    );
    let end = proposed_end(&browser).await;
    // The day of the end, in the API's format.
    let start = format!("{}T00:00:00.000Z", &end[..10]);
    let required_fields =
        [("name", "Open day"), ("claims", "name"), ("max_guests", "5"), ("language", "english"), ("expires_at", &end)];
    let refused = browser
        .send("/portal/events", &[&required_fields as &[(&str, &str)], &[("time_zone", "Nowhere/At all")]].concat())
        .await;
    assert!(refused.status == 400 && refused.text.contains("Time zone must"), "{}", refused.text);
    let optional_fields = [
        ("organiser", "A & B College"),
        ("purpose", "Entry to the campus"),
        ("place", "Hall B"),
        ("starts_at", &start),
        ("time_zone", "Asia/Kathmandu"),
    ];
    let created =
        browser.send("/portal/events", &[&required_fields as &[(&str, &str)], &optional_fields].concat()).await;
    assert_eq!(created.status, 303, "{}", created.text);
    let event = &backend.get("/api/v1/nationalid-ovse/events").await.ok()["events"][0];
    for (field, value) in optional_fields {
        assert_eq!(event[field], value);
    }
    let with_empty_field = browser
        .send(
            "/portal/events",
            &[&required_fields as &[(&str, &str)], &[("organiser", ""), ("time_zone", "Asia/Kolkata")]].concat(),
        )
        .await;
    assert_eq!(with_empty_field.status, 303, "empty fields are left out: {}", with_empty_field.text);
}

#[tokio::test]
async fn the_guest_workbook_of_an_event_is_available_only_to_its_app() {
    let node = TestNode::start().await;
    let (backend, identity_app) = (node.backend_with_credits(2).await, node.identity_app());
    let (browser, stranger) = (
        Browser::signed_in(&node, &backend).await,
        Browser::signed_in(&node, &node.backend_with_credits(1).await).await,
    );
    let event = TestEvent::open(&node, &backend, &terms(5)).await;
    identity_app.approve(&event.scan().await, "asha").await;
    let page = format!("/portal/events/{}", event.id);
    let workbook_path = format!("{page}/guests.xlsx");
    assert!(browser.get(&page).await.text.contains(&format!("href=\"{workbook_path}\"")));
    let answer = browser.request(Method::GET, &workbook_path).send().await.unwrap();
    let attachment = format!("attachment; filename=\"guests-{}.xlsx\"", event.id);
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["content-disposition"].to_str().unwrap()),
        (200, &*attachment)
    );
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let workbook = answer.bytes().await.unwrap();
    assert!(workbook.starts_with(b"PK\x03\x04"), "a ZIP archive of {} bytes", workbook.len());
    assert_eq!(stranger.get(&workbook_path).await.status, 404);
}
