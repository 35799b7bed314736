//! Pages of a pending transaction (specification, OVSE rules 1 to 3).

use actix_web::http::Method;
use actix_web::test::TestRequest;
use sakshi_authority::intent::decode_unverified;
use sakshi_authority::qr::decode_qr_payload;
use sakshi_domain::claims::{Claim, ClaimSet};

use crate::pages_fixture::{ANDROID, DESKTOP, IPHONE, PagesFixture};

/// Returns the URL of the first link with this beginning, with HTML escapes undone.
fn link(html: &str, beginning: &str) -> String {
    let from =
        html.find(&format!("href=\"{beginning}")).unwrap_or_else(|| panic!("no link to {beginning} in {html}")) + 6;
    html[from..].split('"').next().unwrap().replace("&#38;", "&")
}

#[actix_rt::test]
async fn a_phone_gets_one_link_that_passes_a_fresh_intent_to_the_identity_app() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let path = format!("/v/{}", pending.id);

    let (status, html) = fixture.page(&path, ANDROID).await;
    let intent_uri = link(&html, "intent:");
    let request = intent_uri.split("S.request=").nth(1).unwrap().split(';').next().unwrap();
    assert_eq!(status, 200);
    assert_eq!(decode_unverified(request).unwrap().txn, pending.id.to_string());
    assert!(
        intent_uri
            .contains(&format!("S.browser_fallback_url=https%3A%2F%2Fv.example%2Fv%2F{}%3Fhelp%3D1;end", pending.id))
    );

    let (_, html) = fixture.page(&path, IPHONE).await;
    let request = link(&html, "idauthority://verify?req=");
    let request = request.split("req=").nth(1).unwrap();
    assert_eq!(decode_unverified(request).unwrap().txn, pending.id.to_string());
    assert!(!html.contains("intent:#Intent") && !html.contains("id=\"app-code\""));
    assert!(html.find("id=\"page-code\"") > html.find("on another phone"), "for the app on another phone");
}

#[actix_rt::test]
async fn a_desktop_gets_both_codes_and_links_for_this_device() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let (_, html) = fixture.page(&format!("/v/{}", pending.id), DESKTOP).await;
    for id in ["page-code", "app-code"] {
        assert!(html.contains(&format!("id=\"{id}\"><svg")), "{id}");
    }
    assert_eq!(html.matches("role=\"img\" aria-label=\"QR code").count(), 2);
    assert!(link(&html, "intent:").starts_with("intent:#Intent;") && link(&html, "idauthority:").contains("?req="));
    let payload =
        fixture.shared.service.authority.qr_payload(link(&html, "idauthority:").split("req=").nth(1).unwrap());
    assert_eq!(decode_unverified(&decode_qr_payload(&payload).unwrap()).unwrap().txn, pending.id.to_string());
}

#[actix_rt::test]
async fn the_page_shows_the_client_and_the_requested_claims_in_words() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|terms| terms.claims = Claim::ALL.into_iter().collect::<ClaimSet>()).await;
    let (_, html) = fixture.page(&format!("/v/{}", pending.id), ANDROID).await;
    assert!(html.contains(
        "Requested by <strong><bdi>Sandbox client</bdi></strong><span class=\"of-app\"><bdi>Sandbox app</bdi>"
    ));
    assert_eq!(html.matches("<li>").count(), 30 + 17, "every claim, and a link to each language");
    assert!(html.contains("<li>Whether you are 18 or older\n") && html.contains("scans your face"));
    assert_eq!(html.matches("<h1").count(), 1);
    let (before, rest) = html.split_once("id=\"page-code\">").unwrap();
    let without_code = before.len() + rest.split_once("</svg>").unwrap().1.len();
    let files = fixture.page("/assets/page.css", "").await.1.len() + fixture.page("/assets/page.js", "").await.1.len();
    assert!(without_code + files < 30_000, "{without_code} and {files}");

    let without_face = fixture.open(|terms| terms.face_auth = false).await;
    let (_, html) = fixture.page(&format!("/v/{}", without_face.id), ANDROID).await;
    assert!(!html.contains("scans your face"));
}

#[actix_rt::test]
async fn the_remaining_time_follows_the_servers_clock() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    fixture.clock.advance(std::time::Duration::from_millis(90_500));
    let (_, html) = fixture.page(&format!("/v/{}", pending.id), ANDROID).await;
    assert!(html.contains("data-remaining=\"810\""), "{html}");
    assert!(html.contains("Expires in <b role=\"timer\" id=\"left\" dir=\"ltr\">13:30</b>"), "{html}");
}

#[actix_rt::test]
async fn the_page_reloads_every_five_seconds_without_javascript() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let (_, html) = fixture.page(&format!("/v/{}", pending.id), ANDROID).await;
    assert!(html.contains("<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>"));
}

#[actix_rt::test]
async fn the_fallback_page_explains_a_missing_app_and_keeps_the_link() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let (status, html) = fixture.page(&format!("/v/{}?help=1", pending.id), ANDROID).await;
    assert_eq!(status, 200);
    assert!(html.contains("If the identity app did not open") && html.contains("href=\"intent:"));
}

#[actix_rt::test]
async fn the_sandbox_button_appears_only_in_the_sandbox() {
    let mut fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let path = format!("/v/{}", pending.id);
    let (_, html) = fixture.page(&path, ANDROID).await;
    let request = link(&html, "/sandbox/app?req=");
    assert_eq!(decode_unverified(request.split("req=").nth(1).unwrap()).unwrap().txn, pending.id.to_string());

    std::sync::Arc::get_mut(&mut fixture.shared.service.authority).unwrap().sandbox = false;
    let (_, html) = fixture.page(&path, ANDROID).await;
    assert!(!html.to_lowercase().contains("sandbox identity") && !html.contains("/sandbox/"));
}

#[actix_rt::test]
async fn an_intent_that_ends_before_its_transaction_is_renewed() {
    let fixture = PagesFixture::with_settings(&[("authority.intent_lifetime_s", "120")]).await;
    let pending = fixture.open(|_| {}).await;
    let path = format!("/v/{}", pending.id);
    let (_, html) = fixture.page(&path, ANDROID).await;
    assert!(html.contains("data-stale=\"90\""), "the page renews it 30 s before its end: {html}");

    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let (_, html) = fixture.page(&format!("/v/{}", pending.id), ANDROID).await;
    assert!(!html.contains("data-stale"), "{html}");
}

#[actix_rt::test]
async fn every_page_has_the_strict_headers() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    for path in [format!("/v/{}", pending.id), "/v/nothing".to_owned()] {
        for method in [Method::GET, Method::HEAD] {
            let response = fixture.call(TestRequest::default().method(method).uri(&path)).await;
            let header = |name: &str| {
                response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
            };
            assert_eq!(
                header("content-security-policy"),
                "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; \
                 base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
            );
            assert_eq!(header("referrer-policy"), "no-referrer");
            assert_eq!(header("cache-control"), "no-store");
            assert_eq!(header("x-robots-tag"), "noindex");
            assert_eq!(header("x-content-type-options"), "nosniff");
            assert_eq!(header("content-type"), "text/html; charset=utf-8");
        }
    }
}

#[actix_rt::test]
async fn nothing_in_a_page_is_inline_or_from_elsewhere() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let (_, html) = fixture.page(&format!("/v/{}", pending.id), DESKTOP).await;
    for forbidden in [" style=", "<style", " onclick", "<script>", "src=\"http", "href=\"http"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    assert!(html.contains("<html lang=\"en\" dir=\"ltr\">"));
}
