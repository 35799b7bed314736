//! Sign-in to the console, the length of a session, and requests without a session.

use std::time::Duration;

use sakshi_console::ROUTES;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::OperatorId;
use sakshi_operator::{FailedLogins, InternalDeps};
use sakshi_service::operator_token::OperatorToken;

use super::{Browser, CONSOLE_ORIGIN, audit_log, listener};
use crate::store_fixture::{StoreFixture, TOKEN};

const MINUTE: Duration = Duration::from_secs(60);

#[actix_rt::test]
async fn pages_without_a_session_redirect_to_sign_in_and_forms_do_nothing() {
    let service = listener(StoreFixture::new().internal()).await;
    let browser = Browser::new(&service);
    let is_public = |path: &str| {
        path == "/console/sign-in" || path.starts_with("/console/assets/") || path.starts_with("/console/oidc/")
    };
    let protected: Vec<_> = ROUTES.iter().filter(|row| !is_public(row.path)).collect();
    assert!(protected.len() > 30);
    for cookie in [None, Some("sakshi_console=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned())] {
        *browser.cookie.borrow_mut() = cookie;
        for row in &protected {
            let answer =
                if row.method == "GET" { browser.get(row.path).await } else { browser.post(row.path, &[]).await };
            assert!(
                answer.redirects_to("/console/sign-in") && answer.html.is_empty(),
                "{} {}: {}",
                row.method,
                row.path,
                answer.status
            );
        }
    }
}

#[actix_rt::test]
async fn a_sign_in_token_appears_in_no_page_or_cookie() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let browser = Browser::new(&service);
    let page = browser.get("/console/sign-in").await;
    let csp = page.header("content-security-policy").unwrap();
    assert!(csp.starts_with("default-src 'none'") && !csp.contains("unsafe"), "{csp}");
    let answer = browser.post("/console/sign-in", &[("token", &format!(" {TOKEN} "))]).await;
    let cookie = answer.cookie.clone().unwrap();
    assert!(
        ["HttpOnly", "SameSite=Strict", "Path=/console"].iter().all(|attribute| cookie.contains(attribute)),
        "{cookie}"
    );
    assert!(!cookie.contains("Max-Age") && !cookie.contains("Secure") && !cookie.contains(TOKEN));
    assert!(!browser.page("/console").await.contains(TOKEN));
    let https_browser = Browser::new(&service);
    let request =
        actix_web::test::TestRequest::post().uri("/console/sign-in").insert_header(("x-forwarded-proto", "https"));
    let request = request
        .insert_header(("content-type", "application/x-www-form-urlencoded"))
        .set_payload(format!("token={TOKEN}"));
    assert!(https_browser.call(request).await.cookie.unwrap().ends_with("; Secure"));
    let entry = audit_log(&fixture).await.pop().unwrap();
    assert_eq!((&entry["operation"], &entry["operator"]), (&"signIn".into(), &"settings".into()));
}

#[actix_rt::test]
async fn a_wrong_token_is_refused_counted_and_limited() {
    let fixture = StoreFixture::new();
    let service = listener(InternalDeps { failed_logins: FailedLogins::per_minute(2), ..fixture.internal() }).await;
    let browser = Browser::new(&service);
    let unknown = OperatorToken::issue().unwrap();
    for token in ["guess", unknown.reveal()] {
        let answer = browser.post("/console/sign-in", &[("token", token)]).await;
        assert_eq!((answer.status, &answer.cookie), (401, &None));
        assert!(answer.html.contains("wrong, revoked or expired") && !answer.html.contains(token));
    }
    let answer = browser.post("/console/sign-in", &[("token", "guess")]).await;
    assert!(answer.status == 429 && answer.html.contains("Too many attempts"), "{}", answer.html);
    Browser::signed_in(&service).await;
}

#[actix_rt::test]
async fn a_form_of_another_site_or_of_another_session_is_refused() {
    let service = listener(StoreFixture::new().internal()).await;
    let (browser, other) = (Browser::signed_in(&service).await, Browser::signed_in(&service).await);
    let foreign_token = other.csrf_token().await;
    for (origin, form_token) in [
        ("https://evil.example", browser.csrf_token().await),
        (CONSOLE_ORIGIN, foreign_token),
        (CONSOLE_ORIGIN, String::new()),
    ] {
        let answer = browser.post_from(origin, "/console/sign-out", &[("form_word", &form_token)]).await;
        assert_eq!(answer.status, 403, "{origin} {form_token}");
        assert!(answer.html.contains("This form was not accepted"), "{}", answer.html);
    }
    assert_eq!(
        Browser::new(&service).post_from("https://evil.example", "/console/sign-in", &[("token", TOKEN)]).await.status,
        403
    );
    browser.page("/console").await;
}

#[actix_rt::test]
async fn a_session_ends_after_30_idle_minutes_or_8_hours() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (idle, active) = (Browser::signed_in(&service).await, Browser::signed_in(&service).await);
    fixture.clock.advance(29 * MINUTE);
    active.page("/console").await;
    fixture.clock.advance(MINUTE);
    assert!(idle.get("/console").await.location.ends_with("?ended=1"));
    for _ in 0..22 {
        fixture.clock.advance(20 * MINUTE);
        active.page("/console").await;
    }
    fixture.clock.advance(9 * MINUTE);
    active.page("/console").await;
    fixture.clock.advance(MINUTE);
    assert!(active.get("/console").await.redirects_to("/console/sign-in"), "eight hours have passed");
}

#[actix_rt::test]
async fn a_revoked_or_expired_operator_loses_every_session_at_once() {
    let fixture = StoreFixture::new();
    let service = listener(fixture.internal()).await;
    let (browser, id) = Browser::with_role(&service, "support").await;
    assert!(browser.page("/console").await.contains("Asha support"));
    fixture.store.revoke_operator(id.parse::<OperatorId>().unwrap(), fixture.clock.now()).await.unwrap();
    assert!(browser.get("/console").await.location.ends_with("?ended=1"));
    // Another token in the settings ends the sessions of the old one.
    let owner = Browser::signed_in(&service).await;
    let cookie = owner.cookie.borrow().clone();
    let deps_with_new_token = InternalDeps {
        admin_token: "another-admin-token-of-more-than-32-characters".to_owned().into(),
        ..fixture.internal()
    };
    let service = listener(deps_with_new_token).await;
    let old_browser = Browser::new(&service);
    *old_browser.cookie.borrow_mut() = cookie;
    assert!(old_browser.get("/console").await.redirects_to("/console/sign-in"));
}

#[actix_rt::test]
async fn signing_out_ends_the_session_itself() {
    let service = listener(StoreFixture::new().internal()).await;
    let (browser, other) = (Browser::signed_in(&service).await, Browser::signed_in(&service).await);
    let cookie = browser.cookie.borrow().clone();
    let answer = browser.send("/console/sign-out", &[]).await;
    assert!(answer.redirects_to("/console/sign-in") && answer.cookie.unwrap().contains("Max-Age=0"));
    *browser.cookie.borrow_mut() = cookie;
    assert!(browser.get("/console").await.redirects_to("/console/sign-in"), "although the cookie is sent");
    other.page("/console").await;
}

#[actix_rt::test]
async fn errors_are_pages_in_the_console_and_json_in_the_api() {
    let service = listener(StoreFixture::new().internal()).await;
    let browser = Browser::signed_in(&service).await;
    for path in
        ["/console/nothing", "/console/clients/cl_none", "/console/transactions/no-id", "/console/keys/key_none"]
    {
        let answer = browser.get(path).await;
        assert!(answer.status == 404 && answer.html.contains("There is nothing here"), "{path}: {}", answer.html);
    }
    assert_eq!(browser.get("/console/").await.location, "/console");
    let answer = browser.get("/console/clients?colour=red").await;
    assert!(answer.status == 400 && answer.html.contains("This cannot be done"), "{}", answer.html);
    let answer = browser.get("/admin/v1/clients").await;
    assert!(answer.status == 401 && answer.html.starts_with('{'), "a session does not open the API: {}", answer.html);
    let answer = browser.get("/console/sign-out").await;
    assert!(answer.status == 405 || answer.status == 404, "{}", answer.status);
}
