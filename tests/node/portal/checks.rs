//! The page of checks, which have an immediate result.

use sakshi_kit::upstream::Upstream;
use serde_json::{Value, json};

use super::Browser;
use crate::pages_fixture::PagesFixture;

#[actix_rt::test]
async fn a_check_page_shows_the_response_of_the_api_and_explains_errors() {
    let upstream = Upstream::start().await;
    let url = upstream.url("gst");
    let fixture = PagesFixture::with_settings(&[("upstreams.gst_url", &url)]).await;
    let browser = Browser::signed_in(&fixture).await;
    let page = browser.get("/portal/checks").await;
    assert_eq!(page.hidden_field("gstin\" type=\"text"), "27ABCPE1234F1ZB", "the sandbox knows the example");

    let mut form = vec![("kind", "gst"), ("gstin", "27aapfu0939f1zv"), ("consent_text", "I agree."), ("consent", "Y")];
    let response = browser.send("/portal/checks", &form).await;
    let body: Value = serde_json::from_str(&response.element_text("body")).unwrap();
    assert_eq!(
        (response.status, &body["data"]["gstin"], &body["data"]["status"]),
        (200, &json!("27AAPFU0939F1ZV"), &json!("valid"))
    );
    let command = response.element_text("curl-1");
    assert!(command.contains("/api/v1/gst/verify' ") && command.contains(r#""gstin":"27aapfu0939f1zv""#), "{command}");
    assert_eq!(upstream.last_order().body, json!({"gstin": "27AAPFU0939F1ZV", "consent_text": "I agree."}));

    form.pop();
    let refused = browser.send("/portal/checks", &form).await;
    assert_eq!(refused.status, 400);
    assert!(
        refused.html.contains("<a href=\"#consent-gst\">Tick that the person has agreed.</a>")
            && refused.html.contains("27aapfu0939f1zv"),
        "{}",
        refused.html
    );
    form.extend([("consent", "Y")]);
    form[1].1 = "27AAPFU0939F1ZW";
    let malformed = browser.send("/portal/checks", &form).await;
    assert!(
        malformed.status == 422 && malformed.html.contains("GSTIN must be 15 characters: state code"),
        "{}",
        malformed.html
    );
    assert_eq!(browser.send("/portal/checks", &[("kind", "passport")]).await.status, 404);
    assert_eq!(upstream.orders().len(), 1);
    assert_eq!(browser.balance().await, 1_000, "it costs no credit");
}
