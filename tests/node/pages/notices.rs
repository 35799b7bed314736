//! Pages of ended and missing transactions, and of an overloaded service.

use actix_web::test::TestRequest;

use crate::pages_fixture::{ANDROID, PagesFixture, WINDOW, redirecting_to, text};

#[actix_rt::test]
async fn a_verified_person_sees_the_success_and_no_claim() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(redirecting_to("https://shop.example/back?order=7&step=2")).await;
    let path = format!("/v/{}", pending.id);
    let (_, waiting) = fixture.page(&path, ANDROID).await;
    assert!(
        waiting.contains("Not now: Back to <bdi dir=\"ltr\">shop.example</bdi>") && !waiting.contains("data-follow"),
        "{waiting}"
    );

    fixture.verify(&pending).await;
    let (status, html) = fixture.page(&path, ANDROID).await;
    assert_eq!(status, 200);
    assert!(
        html.contains("<h1>You are verified</h1>")
            && html.contains("Continue to <bdi dir=\"ltr\">shop.example</bdi></span></a>")
    );
    assert!(
        html.contains("href=\"https://shop.example/back?order=7&#38;step=2\" rel=\"noreferrer\" data-follow"),
        "{html}"
    );
    assert!(!html.contains("Asha") && !html.contains("http-equiv"));
    assert!(html.contains("<h2>What you shared</h2>\n<ul>\n<li>Full name"), "{html}");
}

#[actix_rt::test]
async fn a_page_without_a_redirect_url_may_be_closed() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    fixture.verify(&pending).await;
    let (_, html) = fixture.page(&format!("/v/{}", pending.id), ANDROID).await;
    assert!(html.contains("You can close this page.") && !html.contains("class=\"button"));
}

#[actix_rt::test]
async fn an_unverified_person_reads_the_reason_in_plain_words() {
    let fixture = PagesFixture::new().await;
    for (code, words, tip) in [
        ("301", "You declined the request", "declined by mistake"),
        ("302", "a live person", "in good light"),
        ("303", "stopped in the identity app", "until the check is finished"),
        ("304", "did not match the photo", "in good light"),
        ("305", "biometrics are locked", "Unlock them in the identity app"),
        ("306", "face scan is not available", "Wait a few minutes"),
        ("307", "could not reach its service", "shows the right time"),
        ("999", "could not complete the check", "shows the right time"),
    ] {
        let pending = fixture.open(|_| {}).await;
        fixture.fail(&pending, "<b>call +1 555 0100</b>", code).await;
        let (status, html) = fixture.page(&format!("/v/{}", pending.id), ANDROID).await;
        assert_eq!(status, 200);
        let heading = if code == "301" { "You declined" } else { "You were not verified" };
        assert!(html.contains(&format!("<h1>{heading}</h1>")) && html.contains(words), "{code}: {html}");
        assert_eq!(
            html.contains("notice quiet"),
            code == "301",
            "a refusal by the person does not look like an error: {html}"
        );
        assert!(!html.contains("555 0100"), "the text of the app is not shown");
        assert!(html.contains(tip), "{code}: {tip}: {html}");
        assert_eq!(html.contains("in good light"), matches!(code, "302" | "304"), "{code}");
        assert!(html.contains("Nothing was shared with the service that asked."), "{html}");
        assert!(
            html.contains("<li>Ask the service that sent you for a new link.") && !html.contains("go back there"),
            "{html}"
        );
    }
}

#[actix_rt::test]
async fn every_outcome_names_the_client_and_its_app_and_only_a_success_continues() {
    let fixture = PagesFixture::new().await;
    let (passed, declined, expired) = (
        fixture.open(redirecting_to("https://shop.example/")).await,
        fixture.open(redirecting_to("https://shop.example/")).await,
        fixture.open(redirecting_to("https://shop.example/")).await,
    );
    let (_, waiting) = fixture.page(&format!("/v/{}", expired.id), ANDROID).await;
    fixture.verify(&passed).await;
    fixture.fail(&declined, "User Reject", "301").await;
    let mut pages = vec![(waiting, "")];
    for (pending, link) in [(&passed, "Continue to <bdi"), (&declined, "Back to <bdi"), (&expired, "Back to <bdi")] {
        if pending.id == expired.id {
            fixture.clock.advance(WINDOW);
        }
        pages.push((fixture.page(&format!("/v/{}", pending.id), ANDROID).await.1, link));
    }
    for (html, link) in pages {
        let requester = "Requested by <strong><bdi>Sandbox client</bdi></strong><span class=\"of-app\"><bdi>Sandbox \
            app</bdi></span>";
        assert!(html.contains(requester) && html.contains(link), "{html}");
    }
}

#[actix_rt::test]
async fn an_expired_transaction_gets_a_410_that_says_how_to_go_on() {
    let fixture = PagesFixture::new().await;
    let pending = fixture.open(redirecting_to("https://shop.example/")).await;
    fixture.clock.advance(WINDOW);
    let (status, html) = fixture.page(&format!("/v/{}", pending.id), ANDROID).await;
    assert_eq!(status, 410);
    assert!(html.contains("This request has expired") && html.contains("Back to <bdi dir=\"ltr\">shop.example"));
    assert!(
        html.contains("<li>Install and set up the identity app") && html.contains("<li>To try again, go back there"),
        "{html}"
    );
    let full_id = pending.id.to_string();
    let short_id = full_id.rsplit('-').next().unwrap();
    assert!(
        html.contains(&format!("<bdi dir=\"ltr\">{short_id}</bdi></summary><span dir=\"ltr\">{full_id}</span>")),
        "{html}"
    );
    assert!(!html.contains("data-follow") && !html.contains("intent:"));
}

#[actix_rt::test]
async fn an_unknown_or_malformed_link_gets_a_404_page() {
    let fixture = PagesFixture::new().await;
    for id in [
        "3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11",
        "3f0f6c0e",
        "%3Cscript%3E",
        "3f0f6c0e9a3e4c558d2a0b8c5e0e7f11",
        "%FF%FE",
    ] {
        let (status, html) = fixture.page(&format!("/v/{id}"), ANDROID).await;
        assert_eq!(status, 404, "{id}");
        assert!(html.contains("<h1>This link does not work</h1>") && !html.contains("<script>"), "{id}: {html}");
    }
}

#[actix_rt::test]
async fn a_rate_limited_page_says_when_to_retry() {
    let fixture = PagesFixture::with_settings(&[("limits.pages_per_second_per_address", "1")]).await;
    let path = "/v/3f0f6c0e-9a3e-4c55-8d2a-0b8c5e0e7f11";
    assert_eq!(fixture.page(path, ANDROID).await.0, 404);
    let response = fixture.call_until_limited(|| TestRequest::get().uri(path)).await;
    assert_eq!(response.headers().get("retry-after").unwrap(), "1");
    let html = text(response).await;
    assert!(html.contains("<h1>Too many attempts</h1>") && html.contains("data-retry=\"1\""));
    assert!(html.contains("<noscript><meta http-equiv=\"refresh\" content=\"1\"></noscript>"));
}

#[actix_rt::test]
async fn an_overloaded_node_returns_a_503_page_with_retry_after() {
    let mut fixture = PagesFixture::new().await;
    let pending = fixture.open(|_| {}).await;
    let path = format!("/v/{}", pending.id);
    fixture.refuse_actor_requests().await;
    let response = fixture.call(TestRequest::get().uri(&path)).await;
    assert_eq!(response.status(), 503);
    assert!(response.headers().contains_key("retry-after"));
    assert!(text(response).await.contains("One moment, please"));
}
