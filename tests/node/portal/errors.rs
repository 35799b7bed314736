//! Error pages for browsers, and JSON errors for programs.

use actix_web::test::TestRequest;

use super::Browser;
use crate::pages_fixture::{PagesFixture, text};

const HTML: (&str, &str) = ("accept", "text/html,application/xhtml+xml,*/*;q=0.8");

#[actix_rt::test]
async fn missing_pages_are_html_for_browsers_and_json_for_programs() {
    let fixture = PagesFixture::new().await;
    for path in ["/nothere", "/docs/nothere", "/docs/guides/none", "/assets/none.css", "/portal2"] {
        let page = fixture.call(TestRequest::get().uri(path).insert_header(HTML)).await;
        assert_eq!(page.status(), 404, "{path}");
        assert!(
            page.headers().get("content-security-policy").is_some() && page.headers().get("x-request-id").is_some(),
            "{path}"
        );
        let html = text(page).await;
        assert!(
            html.contains("<h1>There is nothing here</h1>") && html.contains("class=\"badge\">Sandbox"),
            "{path}: {html}"
        );
        assert!(html.contains("<a href=\"/portal/events\">Events</a>"), "{path}");
        let body = text(fixture.call(TestRequest::get().uri(path)).await).await;
        assert!(body.starts_with("{\"success\":false"), "{path}: {body}");
    }
    let refused = fixture.call(TestRequest::delete().uri("/docs").insert_header(HTML)).await;
    assert_eq!(
        (refused.status().as_u16(), refused.headers().get("allow").unwrap().to_str().unwrap()),
        (405, "GET, HEAD")
    );
    assert!(text(refused).await.contains("This address is not a page."));
    // Libraries may accept HTML by default.
    for path in ["/api/v1/none", "/cb/none/x", "/.well-known/none"] {
        let body = text(fixture.call(TestRequest::get().uri(path).insert_header(HTML)).await).await;
        assert!(body.starts_with("{\"success\":false"), "{path}: {body}");
    }
}

#[actix_rt::test]
async fn a_rate_limited_document_is_a_page_with_retry_after() {
    let fixture = PagesFixture::with_settings(&[("limits.pages_per_second_per_address", "1")]).await;
    let call = || fixture.call(TestRequest::get().uri("/docs/errors").insert_header(HTML));
    let mut refused = call().await;
    for _ in 0..1_000 {
        if refused.status() != 200 {
            break;
        }
        refused = call().await;
    }
    assert_eq!(
        (refused.status().as_u16(), refused.headers().get("retry-after").unwrap().to_str().unwrap()),
        (429, "1")
    );
    assert!(text(refused).await.contains("<h1>Please wait a moment</h1>"));
}

#[actix_rt::test]
async fn errors_on_pages_of_residents_are_in_their_language() {
    let fixture = PagesFixture::new().await;
    for path in ["/v/x/y", "/e/x/y"] {
        let request = TestRequest::get().uri(path).insert_header(HTML).insert_header(("accept-language", "hi"));
        let page = fixture.call(request).await;
        assert_eq!(page.status(), 404, "{path}");
        let html = text(page).await;
        assert!(html.contains("<html lang=\"hi\"") && !html.contains("/portal"), "{path}: {html}");
    }
}

#[actix_rt::test]
async fn an_error_page_shows_the_signed_in_user_and_the_sign_out_button() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    for path in ["/portal/nothing", "/portal/events/none", "/portal/transactions/none"] {
        let page = browser.get(path).await;
        assert_eq!(page.status, 404, "{path}");
        for part in [
            "class=\"badge\">Sandbox",
            "Sign out</button>",
            "<b>Sandbox client</b>",
            "Sandbox app",
            "There is nothing here",
        ] {
            assert!(page.html.contains(part), "{path}: {part}: {}", page.html);
        }
    }
    let foreign = browser.post("/portal/trial", &[]).await;
    assert!(foreign.status == 403 && foreign.html.contains("Sign out</button>"), "{}", foreign.html);
}

#[actix_rt::test]
async fn documents_have_the_navigation_of_the_portal() {
    let fixture = PagesFixture::new().await;
    for path in ["/docs", "/docs/errors", "/docs/guides/web", "/docs/claims", "/docs/reference/events"] {
        let html = text(fixture.call(TestRequest::get().uri(path).insert_header(HTML)).await).await;
        assert!(html.contains("<a href=\"/portal/verifications\">Verifications</a>"), "{path}");
    }
    let guides = fixture.call(TestRequest::get().uri("/docs/guides").insert_header(HTML)).await;
    assert_eq!((guides.status().as_u16(), guides.headers().get("location").unwrap().to_str().unwrap()), (308, "/docs"));
}
