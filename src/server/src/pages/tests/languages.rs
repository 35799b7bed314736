//! Which language a page speaks: that of its transaction or event, else the browser's, else English.

use actix_web::test::TestRequest;
use sakshi_domain::claims::Claim;
use sakshi_domain::language::Language;

use crate::pages::scene::{ANDROID, DESKTOP, Scene, redirecting_to, text};

fn language(name: &str) -> Language {
    Language::parse(name).unwrap()
}

/// The page as a browser gets it that asks for a language.
async fn page(scene: &Scene, request: TestRequest, wanted: &str) -> String {
    text(scene.ask(request.insert_header(("accept-language", wanted)).insert_header(("accept", "text/html"))).await).await
}

/// The page of one request too many; on a slow machine the next one may be in time again.
async fn refused(scene: &Scene, request: impl Fn() -> TestRequest, wanted: &str) -> String {
    loop {
        let request = request().insert_header(("accept-language", wanted)).insert_header(("accept", "text/html"));
        let response = scene.ask(request).await;
        if response.status() == 429 {
            return text(response).await;
        }
    }
}

fn speaks(html: &str, tag: &str, direction: &str, words: &str) {
    assert!(html.contains(&format!("<html lang=\"{tag}\" dir=\"{direction}\">")) && html.contains(words), "{tag}: {html}");
}

#[actix_web::test]
async fn a_verify_page_speaks_the_language_of_its_transaction_whatever_the_browser_asks_for() {
    let scene = Scene::new().await;
    for (name, tag, direction, heading, claim) in [
        ("hindi", "hi", "ltr", "अपनी पहचान की पुष्टि करें", "<li>जन्म तिथि</li>"),
        ("urdu", "ur", "rtl", "اپنی شناخت کی تصدیق کریں", "<li>تاریخِ پیدائش</li>"),
    ] {
        let pending = scene
            .open(|terms| {
                terms.language = language(name);
                terms.claims = [Claim::Dob].into_iter().collect();
            })
            .await;
        let html = page(&scene, TestRequest::get().uri(&format!("/v/{}", pending.id)), "en").await;
        speaks(&html, tag, direction, heading);
        assert!(html.contains(claim), "{html}");
    }
}

#[actix_web::test]
async fn names_addresses_and_times_keep_their_own_order_among_words_that_run_from_the_right() {
    let scene = Scene::new().await;
    let pending = scene
        .open(|terms| {
            redirecting_to("https://shop.example/")(terms);
            terms.language = language("urdu");
        })
        .await;
    let path = format!("/v/{}", pending.id);
    let (_, html) = scene.page(&path, DESKTOP).await;
    for kept in ["<bdi>Sandbox app</bdi>", "id=\"left\" dir=\"ltr\">15:00</b>", "dir=\"ltr\">22:28 UTC</time> تک", "<span dir=\"ltr\">"] {
        assert!(html.contains(kept), "{kept}: {html}");
    }
    scene.verify(&pending).await;
    let (_, html) = scene.page(&path, ANDROID).await;
    assert!(html.contains("<bdi dir=\"ltr\">shop.example</bdi> پر جائیں</span></a>"), "{html}");

    let event = scene.event(|terms| terms.language = language("urdu")).await;
    let (_, html) = scene.page(&format!("/e/{}", event.id), ANDROID).await;
    assert!(html.contains("<bdi>Open day &#38; tour</bdi>") && html.contains("dir=\"auto\">14 نومبر 2023، "), "{html}");
}

#[actix_web::test]
async fn a_refusal_at_an_event_speaks_the_language_of_the_event() {
    let scene = Scene::set(&[("limits.event_starts_per_second_per_address", "1")]).await;
    let closed = scene
        .event(|terms| {
            terms.language = language("urdu");
            terms.is_active = false;
        })
        .await;
    let html = page(&scene, TestRequest::get().uri(&format!("/e/{}", closed.id)), "hi").await;
    speaks(&html, "ur", "rtl", "<h1>یہ تقریب بند ہے</h1>");

    let event = scene.event(|terms| terms.language = language("hindi")).await;
    let start = format!("/e/{}/start", event.id);
    let html = refused(&scene, || TestRequest::post().uri(&start), "ur").await;
    speaks(&html, "hi", "ltr", "<h1>कृपया थोड़ी प्रतीक्षा करें</h1>");
}

#[actix_web::test]
async fn where_nothing_is_known_the_browsers_languages_decide_and_english_is_the_last() {
    let scene = Scene::set(&[("limits.pages_per_second_per_address", "1")]).await;
    let unknown = || TestRequest::get().uri("/v/none");
    speaks(&page(&scene, unknown(), "ur-PK,en;q=0.8").await, "ur", "rtl", "<h1>یہ لنک کام نہیں کرتا</h1>");
    for (wanted, tag, direction, heading) in [
        ("ur", "ur", "rtl", "براہِ کرم تھوڑا انتظار کریں"),
        ("de, hi;q=0.5", "hi", "ltr", "कृपया थोड़ी प्रतीक्षा करें"),
        ("de", "en", "ltr", "One moment, please"),
    ] {
        for path in ["/v/none", "/e/none", "/e/none/kiosk"] {
            let html = refused(&scene, || TestRequest::get().uri(path), wanted).await;
            speaks(&html, tag, direction, &format!("<h1>{heading}</h1>"));
        }
    }
    let response = scene.ask(unknown()).await;
    assert_eq!(response.headers().get("vary").unwrap(), "accept, accept-language, user-agent");
}

#[actix_web::test]
async fn a_kiosk_is_told_its_state_in_the_language_of_the_event() {
    let scene = Scene::new().await;
    let event = scene.event(|terms| terms.language = language("hindi")).await;
    let html = page(&scene, TestRequest::get().uri(&format!("/e/{}/kiosk?places=1", event.id)), "en").await;
    speaks(&html, "hi", "ltr", "शेष स्थान <b id=\"places\">10</b>");
    assert!(html.contains("<bdi id=\"name\">Open day &#38; tour</bdi>") && html.contains("अतिथियों के लिए खुला है"), "{html}");
}
