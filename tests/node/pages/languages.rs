//! The language of a page: that of the transaction or event, else the browser's, else English.

use actix_web::test::TestRequest;
use sakshi_domain::claims::Claim;
use sakshi_domain::language::Language;

use crate::pages_fixture::{ANDROID, DESKTOP, PagesFixture, redirecting_to, text};

fn language(name: &str) -> Language {
    Language::parse(name).unwrap()
}

/// Returns the page for a browser with this `Accept-Language`.
async fn page_for(fixture: &PagesFixture, request: TestRequest, accept_language: &str) -> String {
    text(
        fixture
            .call(request.insert_header(("accept-language", accept_language)).insert_header(("accept", "text/html")))
            .await,
    )
    .await
}

/// Returns the page of a 429.
async fn rate_limited_page(fixture: &PagesFixture, request: impl Fn() -> TestRequest, accept_language: &str) -> String {
    let request =
        || request().insert_header(("accept-language", accept_language)).insert_header(("accept", "text/html"));
    text(fixture.call_until_limited(request).await).await
}

/// Asserts that a page is in this language and direction, and has this text.
fn assert_language(html: &str, tag: &str, direction: &str, text: &str) {
    assert!(
        html.contains(&format!("<html lang=\"{tag}\" dir=\"{direction}\">")) && html.contains(text),
        "{tag}: {html}"
    );
}

#[actix_rt::test]
async fn a_verify_page_is_in_the_language_of_its_transaction() {
    let fixture = PagesFixture::new().await;
    for (name, tag, direction, heading, claim) in [
        ("hindi", "hi", "ltr", "अपनी पहचान की पुष्टि करें", "<li>जन्म तिथि\n"),
        ("urdu", "ur", "rtl", "اپنی شناخت کی تصدیق کریں", "<li>تاریخِ پیدائش\n"),
    ] {
        let pending = fixture
            .open(|terms| {
                terms.language = language(name);
                terms.claims = [Claim::Dob].into_iter().collect();
            })
            .await;
        let html = page_for(&fixture, TestRequest::get().uri(&format!("/v/{}", pending.id)), "en").await;
        assert_language(&html, tag, direction, heading);
        assert!(html.contains(claim), "{html}");
    }
}

#[actix_rt::test]
async fn names_addresses_and_times_keep_their_direction_in_right_to_left_text() {
    let fixture = PagesFixture::new().await;
    let pending = fixture
        .open(|terms| {
            redirecting_to("https://shop.example/")(terms);
            terms.language = language("urdu");
        })
        .await;
    let path = format!("/v/{}", pending.id);
    let (_, html) = fixture.page(&path, DESKTOP).await;
    for part in [
        "<bdi>Sandbox app</bdi>",
        "id=\"left\" dir=\"ltr\">15:00</b>",
        "باقی وقت <b role=\"timer\"",
        "<span dir=\"ltr\">",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    fixture.verify(&pending).await;
    let (_, html) = fixture.page(&path, ANDROID).await;
    assert!(html.contains("<bdi dir=\"ltr\">shop.example</bdi> پر جائیں</span></a>"), "{html}");

    let event = fixture.create_event(|terms| terms.language = language("urdu")).await;
    let (_, html) = fixture.page(&format!("/e/{}", event.id), ANDROID).await;
    assert!(html.contains("<bdi>Open day &#38; tour</bdi>") && html.contains("dir=\"auto\">15 نومبر 2023، "), "{html}");
}

#[actix_rt::test]
async fn a_refusal_at_an_event_is_in_the_language_of_the_event() {
    let fixture = PagesFixture::with_settings(&[("limits.event_starts_per_second_per_address", "1")]).await;
    let closed = fixture
        .create_event(|terms| {
            terms.language = language("urdu");
            terms.is_active = false;
        })
        .await;
    let html = page_for(&fixture, TestRequest::get().uri(&format!("/e/{}", closed.id)), "hi").await;
    assert_language(&html, "ur", "rtl", "<h1>اندراج بند ہو گیا ہے</h1>");

    let event = fixture.create_event(|terms| terms.language = language("hindi")).await;
    let start = format!("/e/{}/start", event.id);
    let html = rate_limited_page(&fixture, || TestRequest::post().uri(&start), "ur").await;
    assert_language(&html, "hi", "ltr", "<h1>बहुत अधिक प्रयास</h1>");
    let html = rate_limited_page(&fixture, || TestRequest::post().uri(&format!("{start}?lang=ta")), "ur").await;
    assert_language(&html, "ta", "ltr", &format!("href=\"/e/{}?lang=ta\"", event.id));
}

#[actix_rt::test]
async fn unknown_links_use_the_browsers_language_or_english() {
    let fixture = PagesFixture::with_settings(&[("limits.pages_per_second_per_address", "1")]).await;
    let unknown = || TestRequest::get().uri("/v/none");
    assert_language(
        &page_for(&fixture, unknown(), "ur-PK,en;q=0.8").await,
        "ur",
        "rtl",
        "<h1>یہ لنک کام نہیں کرتا</h1>",
    );
    for (accept_language, tag, direction, heading) in [
        ("ur", "ur", "rtl", "بہت زیادہ کوششیں"),
        ("de, hi;q=0.5", "hi", "ltr", "बहुत अधिक प्रयास"),
        ("de", "en", "ltr", "Too many attempts"),
    ] {
        for path in ["/v/none", "/e/none", "/e/none/kiosk"] {
            let html = rate_limited_page(&fixture, || TestRequest::get().uri(path), accept_language).await;
            assert_language(&html, tag, direction, &format!("<h1>{heading}</h1>"));
        }
    }
    let response = fixture.call(unknown()).await;
    assert_eq!(response.headers().get("vary").unwrap(), "accept, accept-language, user-agent");
}

#[actix_rt::test]
async fn a_kiosk_shows_its_state_in_the_language_of_the_event() {
    let fixture = PagesFixture::new().await;
    let event = fixture.create_event(|terms| terms.language = language("hindi")).await;
    let html = page_for(
        &fixture,
        TestRequest::get().uri(&format!("/e/{}/kiosk?{}&places=1", event.id, fixture.kiosk_key(&event))),
        "en",
    )
    .await;
    assert_language(&html, "hi", "ltr", "बची हुई जगहें <b id=\"places\">10</b>");
    assert!(
        html.contains("<bdi id=\"name\">Open day &#38; tour</bdi>") && html.contains("अतिथियों के लिए खुला है"),
        "{html}"
    );
}

#[actix_rt::test]
async fn a_chosen_language_is_kept_on_all_links() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|terms| terms.language = language("hindi")).await;
    let path = format!("/v/{}", pending.id);
    let (_, html) = fixture.page(&path, ANDROID).await;
    assert_language(&html, "hi", "ltr", "<a href=\"?lang=ur\" lang=\"ur\">اردو</a>");
    assert!(html.contains("<a href=\"?lang=hi\" lang=\"hi\" aria-current=\"true\">"));
    let (_, html) = fixture.page(&format!("{path}?lang=ur"), ANDROID).await;
    assert_language(&html, "ur", "rtl", &format!("data-live=\"{path}\" data-page=\"{path}?lang=ur\""));
    assert!(
        html.contains(&format!("v%2F{}%3Fhelp%3D1%26lang%3Dur;end", pending.id)),
        "the app's return link keeps the language: {html}"
    );

    let event = fixture.create_event(|_| {}).await;
    let (_, html) = fixture.page(&format!("/e/{}?lang=ta", event.id), ANDROID).await;
    assert_language(&html, "ta", "ltr", &format!("action=\"/e/{}/start?lang=ta\"", event.id));
    let started = fixture.call(TestRequest::post().uri(&format!("/e/{}/start?lang=ta", event.id))).await;
    let location = started.headers().get("location").unwrap().to_str().unwrap().to_owned();
    assert!(location.starts_with("/v/") && location.ends_with("?lang=ta"), "{location}");
    let key = fixture.kiosk_key(&event);
    let (_, html) = fixture.page(&format!("/e/{}/kiosk?{key}&places=1&lang=ta", event.id), ANDROID).await;
    assert_language(
        &html,
        "ta",
        "ltr",
        &format!("data-stream=\"/e/{}/kiosk/events?{key}&#38;places=1&#38;lang=ta\"", event.id),
    );
    let (_, html) = fixture.page("/v/none?lang=nonsense", ANDROID).await;
    assert_language(&html, "en", "ltr", "<h1>This link does not work</h1>");
}
