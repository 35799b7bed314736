//! Forms: their effects, and how they are refused.

use crate::pages_fixture::{PagesFixture, text};
use actix_web::test::TestRequest;
use sakshi_domain::limits::DOORS_MAX;
use serde_json::Value;

use super::Browser;

const TRIAL: &[(&str, &str)] =
    &[("claims", "name"), ("claims", "dob"), ("channel", "qr"), ("language", "hindi"), ("face_auth", "true")];
const EVENT: &[(&str, &str)] =
    &[("name", "Open <day>"), ("claims", "name"), ("max_guests", "5"), ("expires_at", "2023-12-01T10:00")];

/// Returns the body that the API of verifications returns to the first client.
async fn get_from_api(fixture: &PagesFixture, path: &str) -> String {
    text(fixture.get_as_client(&format!("/api/v1/nationalid-ovse{path}")).await).await
}

#[actix_rt::test]
async fn a_form_of_another_site_or_session_is_refused_without_effect() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let other_browser = Browser::signed_in(&fixture).await;
    let (token, foreign_token) = (browser.csrf_token().await, other_browser.csrf_token().await);
    assert_ne!(token, foreign_token);
    for (origin, form_token) in [
        (super::PORTAL_ORIGIN, ""),
        (super::PORTAL_ORIGIN, foreign_token.as_str()),
        (super::PORTAL_ORIGIN, &token[1..]),
        ("https://evil.example", token.as_str()),
        ("null", token.as_str()),
    ] {
        for (path, pairs) in [("/portal/trial", TRIAL), ("/portal/events", EVENT), ("/portal/sign-out", &[])] {
            let pairs: Vec<_> = pairs.iter().copied().chain([("form_word", form_token)]).collect();
            let answer = browser.post_from(origin, path, &pairs).await;
            assert_eq!(answer.status, 403, "{origin} {path}");
            assert!(answer.html.contains("This form was not accepted"), "{path}");
        }
    }
    let json =
        TestRequest::post().uri("/portal/trial").insert_header(("origin", super::PORTAL_ORIGIN)).set_payload("{}");
    assert_eq!(browser.call(json.insert_header(("content-type", "application/json"))).await.status, 415);
    assert_eq!(browser.balance().await, 1_000);
    assert_eq!(browser.get("/portal").await.status, 200, "the session continues");
    let stranger = Browser::new(&fixture);
    let pairs = [("key", fixture.first.key.reveal()), ("app_id", fixture.first.app.as_str())];
    assert_eq!(stranger.post_from("https://evil.example", "/portal/sign-in", &pairs).await.status, 403);
}

#[actix_rt::test]
async fn a_trial_opens_a_transaction_of_the_api_for_one_credit() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let once_token = browser.get("/portal/trial").await.hidden_field("once");
    let pairs: Vec<_> = TRIAL.iter().copied().chain([("once", once_token.as_str())]).collect();
    let first = browser.send("/portal/trial", &pairs).await;
    let repeated = browser.send("/portal/trial", &pairs).await;
    assert_eq!((first.status, repeated.status), (303, 303));
    assert_eq!(first.location, repeated.location, "two clicks are one transaction");
    assert_eq!(browser.balance().await, 999);

    let page = browser.get(&first.location).await;
    let id = first.location.rsplit('/').next().unwrap();
    assert_eq!(
        page.element_text("body"),
        get_from_api(&fixture, &format!("/result/{id}")).await,
        "a poll returns these bytes"
    );
    assert!(page.html.contains(&format!("href=\"/v/{id}\"")) && page.html.contains("Scan it with a phone"));
    let command = page.element_text("curl-1");
    assert!(command.contains(r#"-d '{"channel":"qr","claims":["name","dob"],"language":"hindi"}'"#), "{command}");
    assert!(command.contains("$KEY") && command.contains("$APP"));

    let changed: Vec<_> = pairs
        .iter()
        .map(|(name, value)| if *name == "language" { (*name, "tamil") } else { (*name, *value) })
        .collect();
    let reused = browser.send("/portal/trial", &changed).await;
    assert_eq!(reused.status, 422);
    assert!(reused.html.contains("sent before with other values"));
    assert_ne!(reused.hidden_field("once"), once_token);
}

#[actix_rt::test]
async fn a_form_keeps_its_key_after_an_error_of_the_service() {
    let mut fixture = PagesFixture::new().await;
    fixture.refuse_actor_requests().await;
    let browser = Browser::signed_in(&fixture).await;
    let once_token = browser.get("/portal/trial").await.hidden_field("once");
    let pairs: Vec<_> = TRIAL.iter().copied().chain([("once", once_token.as_str())]).collect();
    let unavailable = browser.send("/portal/trial", &pairs).await;
    assert_eq!(unavailable.status, 503, "{}", unavailable.html);
    assert_eq!(unavailable.hidden_field("once"), once_token, "the request may have been carried out");
    let invalid = browser.send("/portal/trial", &[("once", once_token.as_str())]).await;
    assert_eq!(invalid.status, 400);
    assert_ne!(invalid.hidden_field("once"), once_token);
}

#[actix_rt::test]
async fn a_finished_transaction_shows_the_bytes_of_the_api() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let passed = fixture.open(|_| {}).await;
    fixture.verify(&passed).await;
    let declined = fixture.open(|_| {}).await;
    fixture.fail(&declined, "the user said no", "301").await;
    for (pending, heading) in [(&passed, "<h1>Verified</h1>"), (&declined, "<h1>Not verified</h1>")] {
        let path = format!("/portal/transactions/{}", pending.id);
        let page = browser.get(&path).await;
        assert!(page.html.contains(heading));
        let page =
            if page.html.contains("id=\"show\"") { browser.send(&format!("{path}/details"), &[]).await } else { page };
        let polled = get_from_api(&fixture, &format!("/result/{}", pending.id)).await;
        assert!(serde_json::from_str::<Value>(&polled).unwrap()["data"]["pending"] == false);
        assert_eq!(page.element_text("body"), polled);
    }
    let expired = fixture.open(|_| {}).await;
    fixture.clock.advance(crate::pages_fixture::WINDOW);
    let page = browser.get(&format!("/portal/transactions/{}", expired.id)).await;
    assert!(page.html.contains("<h1>Expired</h1>"), "{}", page.status);
}

#[actix_rt::test]
async fn invalid_fields_are_explained_beside_them_and_cost_nothing() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let invalid = [
        ("claims", "name"),
        ("claims", "shoe_size"),
        ("channel", "app"),
        ("app_id", "com.example.app"),
        ("webhook_url", "http://10.0.0.1/"),
    ];
    let answer = browser.send("/portal/trial", &invalid).await;
    assert_eq!(answer.status, 400);
    for words in [
        "Choice of details is not a known claim",
        "Certificate’s SHA-256 is required together with Android package.",
        "Webhook URL must be an https URL",
        "nothing was debited",
    ] {
        assert!(answer.html.contains(words), "{words}");
    }
    assert!(answer.html.contains("value=\"com.example.app\"") && answer.html.contains("id=\"webhook_url-problem\""));
    assert!(answer.html.contains("aria-describedby=\"webhook_url-hint webhook_url-problem\""));
    assert_eq!(browser.balance().await, 1_000);
    let nothing = browser.send("/portal/trial", &[]).await;
    assert!(nothing.status == 400 && nothing.html.contains("is required"));
}

#[actix_rt::test]
async fn a_refused_form_shows_the_error_in_its_title_and_links_to_fields() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    for (path, pairs, title, fields) in [
        ("/portal/trial", &[("app_id", "com.example.app")][..], "Try a verification", &["claims", "channel"][..]),
        (
            "/portal/events",
            &[("name", " "), ("max_guests", "0"), ("claims", "name")][..],
            "New event",
            &["max_guests", "expires_at"][..],
        ),
        (
            "/portal/webhooks",
            &[("apiType", "ESign"), ("webhookUrl", "ftp://x")][..],
            "Webhooks",
            &["webhookUrl-ESign"][..],
        ),
    ] {
        let refused = browser.send(path, pairs).await;
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.html.contains(&format!("<title>Error: {title}")), "{path}: {}", refused.html);
        assert!(refused.html.contains("role=\"alert\" tabindex=\"-1\" autofocus"), "{path}");
        for field in fields {
            assert!(refused.html.contains(&format!("<a href=\"#{field}\">")), "{path}: {field}: {}", refused.html);
            assert!(refused.html.contains(&format!("id=\"{field}\"")), "{path}: {field}");
        }
    }
    let stranger = Browser::new(&fixture).post("/portal/sign-in", &[("key", "sk_none"), ("app_id", "app_none")]).await;
    assert!(
        stranger.html.contains("<title>Error: Sign in") && stranger.html.contains("autofocus"),
        "{}",
        stranger.html
    );
    assert!(browser.get("/portal/trial").await.html.contains("<title>Try a verification"));
}

#[actix_rt::test]
async fn an_event_is_created_changed_and_closed_with_an_escaped_name() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let created = browser.send("/portal/events", EVENT).await;
    assert_eq!(created.status, 303, "{}", created.html);
    let path = created.location.split('?').next().unwrap();
    let id = path.rsplit('/').next().unwrap();
    let load_event =
        || async { serde_json::from_str::<Value>(&get_from_api(&fixture, &format!("/events/{id}")).await).unwrap() };
    assert_eq!(load_event().await["expires_at"], "2023-12-01T10:00:00.000Z");
    let page = browser.get(path).await;
    assert!(page.html.contains("Open &#60;day&#62;") && !page.html.contains("<day>"));

    let settings = format!("{path}/settings");
    for (field, value, key, expected) in [
        ("on_duplicate", "refuse", "on_duplicate", "refuse".into()),
        ("starts_at", "2023-11-20T09:30", "starts_at", "2023-11-20T09:30:00.000Z".into()),
        ("starts_at", "", "starts_at", Value::Null),
        ("place", "Hall 3", "place", "Hall 3".into()),
        ("max_guests", "50", "max_guests", Value::from(50)),
        ("expires_at", "2024-01-01T00:00", "expires_at", "2024-01-01T00:00:00.000Z".into()),
        ("webhook_url", "https://client.example/hook", "webhook_url", "https://client.example/hook".into()),
        ("webhook_url", "", "webhook_url", Value::Null),
        ("name", "Closed day", "name", "Closed day".into()),
        ("is_active", "false", "status", "disabled".into()),
        ("is_active", "true", "status", "active".into()),
    ] {
        let answer = browser.send(&settings, &[(field, value)]).await;
        assert_eq!(answer.location, format!("{settings}?done=saved"), "{field}: {}", answer.html);
        assert_eq!(load_event().await[key], expected, "{field}={value}");
    }
    let page = browser.get(&settings).await;
    assert!(
        page.html.contains("value=\"2024-01-01T00:00\"") && page.html.contains("value=\"Closed day\""),
        "{}",
        page.html
    );
    let refused = browser.send(&settings, &[("max_guests", "0")]).await;
    assert!(refused.status == 400 && refused.html.contains("max_guests-problem"));
    assert!(browser.get("/portal/events").await.html.contains("Closed day"));
    for file in ["poster", "poster.svg", "qr.svg"] {
        let portal_file = browser.get(&format!("{path}/{file}")).await;
        assert_eq!(portal_file.html, get_from_api(&fixture, &format!("/events/{id}/{file}")).await, "{file}");
    }
}

/// Creates [`EVENT`] and returns the path of its page.
async fn create_event(browser: &Browser<'_>) -> String {
    let created = browser.send("/portal/events", EVENT).await;
    assert_eq!(created.status, 303, "{}", created.html);
    created.location.split('?').next().unwrap().to_owned()
}

#[actix_rt::test]
async fn a_refused_door_keeps_the_values_of_the_settings() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let path = create_event(&browser).await;
    let (doors, token) = (format!("{path}/doors"), browser.csrf_token().await);
    for _ in 0..DOORS_MAX {
        assert_eq!(browser.post(&doors, &[("gate", ""), ("form_word", &token)]).await.status, 303);
    }
    let refused = browser.send(&doors, &[("gate", "North")]).await;
    assert_eq!(refused.status, 409, "{}", refused.html);
    let (settings, doors) = refused.html.split_once("id=\"doors\"").unwrap();
    assert!(settings.contains("<title>Error: Settings") && !settings.contains("role=\"alert\""), "{settings}");
    assert!(
        doors.contains("role=\"alert\"") && doors.contains("at most 50 doors") && doors.contains("value=\"North\""),
        "{doors}"
    );
    for value in ["Open &#60;day&#62;", "5", "2023-12-01T10:00"] {
        assert!(settings.contains(&format!("value=\"{value}\"")), "{value}: {settings}");
    }
}

#[actix_rt::test]
async fn a_gate_name_that_is_too_long_is_refused_at_its_field() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let path = create_event(&browser).await;
    let (doors, settings, too_long) = (format!("{path}/doors"), format!("{path}/settings"), "x".repeat(201));
    let refused = browser.send(&doors, &[("gate", &too_long)]).await;
    assert_eq!(refused.status, 400, "{}", refused.html);
    let value = format!("value=\"{too_long}\"");
    for part in ["id=\"gate-problem\"", "<a href=\"#gate\">Gate must be 1 to 200 characters", value.as_str()] {
        assert!(refused.html.contains(part), "{part}: {}", refused.html);
    }
    assert!(refused.html.contains("value=\"Open &#60;day&#62;\""), "{}", refused.html);
    assert!(!browser.get(&settings).await.html.contains("<dt>Gate</dt>"), "no door was opened");
    let opened = browser.send(&doors, &[("gate", &too_long[1..])]).await;
    assert_eq!(opened.location, format!("{settings}?done=opened"), "{}", opened.html);
    assert!(browser.get(&settings).await.html.contains(&format!("<bdi>{}</bdi>", &too_long[1..])));
}

#[actix_rt::test]
async fn a_form_opened_before_another_change_overwrites_nothing() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let path = create_event(&browser).await;
    let (settings, id) = (format!("{path}/settings"), path.rsplit('/').next().unwrap());
    let saved = format!("{settings}?done=saved");
    let old_tag = browser.get(&settings).await.hidden_field("if_match");
    assert_eq!(browser.send(&settings, &[("place", "Hall 3"), ("if_match", &old_tag)]).await.location, saved);

    let stale = browser.send(&settings, &[("name", "Other day"), ("place", ""), ("if_match", &old_tag)]).await;
    assert_eq!(stale.status, 412, "{}", stale.html);
    assert!(stale.html.contains("Somebody else has changed the event."), "{}", stale.html);
    assert!(stale.html.contains("value=\"Hall 3\"") && !stale.html.contains("Other day"), "{}", stale.html);
    assert_eq!(browser.send(&settings, &[("name", "Other day"), ("if_match", "")]).await.status, 412, "an empty tag");
    let event: Value = serde_json::from_str(&get_from_api(&fixture, &format!("/events/{id}")).await).unwrap();
    assert_eq!((event["name"].as_str(), event["place"].as_str()), (Some("Open <day>"), Some("Hall 3")));

    let invalid = browser.send(&settings, &[("max_guests", "0"), ("if_match", &old_tag)]).await;
    assert_eq!((invalid.status, invalid.hidden_field("if_match")), (400, old_tag), "a corrected form keeps its tag");
    let new_tag = stale.hidden_field("if_match");
    assert_eq!(browser.send(&settings, &[("place", ""), ("if_match", &new_tag)]).await.location, saved);
}

#[actix_rt::test]
async fn a_webhook_url_is_set_refused_and_removed() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let load_webhook_urls = || async { text(fixture.get_as_client("/api/v1/user/webhook").await).await };
    let form = [("apiType", "ESign"), ("webhookUrl", "https://client.example/sign")];
    assert_eq!(browser.send("/portal/webhooks", &form).await.location, "/portal/webhooks?done=1");
    assert!(load_webhook_urls().await.contains("https://client.example/sign"));
    assert!(browser.get("/portal/webhooks").await.html.contains("value=\"https://client.example/sign\""));
    let refused = browser.send("/portal/webhooks", &[("apiType", "ESign"), ("webhookUrl", "ftp://x")]).await;
    assert!(refused.status == 400 && refused.html.contains("id=\"webhookUrl-ESign-problem\""));
    let unknown = browser.send("/portal/webhooks", &[("apiType", "OVSE"), ("webhookUrl", "https://x.example/")]).await;
    assert!(unknown.status == 400 && unknown.html.contains("must be one of ESign"));
    let removed =
        browser.send("/portal/webhooks", &[("apiType", "ESign"), ("webhookUrl", "half typed"), ("remove", "1")]).await;
    assert_eq!(removed.location, "/portal/webhooks?done=1");
    assert_eq!(load_webhook_urls().await, r#"{"success":true,"data":[]}"#);
}
