//! Sign-in to the portal, and the length of a session.

use std::sync::Arc;
use std::time::Duration;

use sakshi::public::ROUTES;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::AppId;
use sakshi_domain::tenancy::App;
use sakshi_portal::once::{LINK_LIFETIME, create_link};
use sakshi_service::api_key::ApiKey;
use sakshi_web::routing::Audience;

use super::Browser;
use crate::pages_fixture::PagesFixture;

const MINUTE: Duration = Duration::from_secs(60);

#[actix_rt::test]
async fn pages_without_a_session_redirect_to_sign_in_and_forms_do_nothing() {
    let fixture = PagesFixture::new().await;
    let mut browser = Browser::new(&fixture);
    let portal = ROUTES
        .into_iter()
        .flatten()
        .filter(|row| row.audience == Audience::Developers && row.path.starts_with("/portal"));
    let protected: Vec<_> =
        portal.filter(|row| !["/portal/sign-in", "/portal/invite/{link}"].contains(&row.path)).collect();
    assert!(protected.len() > 15);
    for cookie in [None, Some("sakshi_portal=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned())] {
        browser.cookie = cookie;
        for row in &protected {
            let answer =
                if row.method == "GET" { browser.get(row.path).await } else { browser.post(row.path, &[]).await };
            assert!(
                answer.redirects_to("/portal/sign-in") && answer.html.is_empty(),
                "{} {}: {}",
                row.method,
                row.path,
                answer.status
            );
        }
    }
}

#[actix_rt::test]
async fn a_sign_in_key_appears_in_no_page_or_cookie() {
    let fixture = PagesFixture::new().await;
    let mut browser = Browser::new(&fixture);
    let key = fixture.first.key.reveal();
    let answer = browser.sign_in(key, fixture.first.app.as_str()).await;
    let cookie = answer.cookie.clone().unwrap();
    for attribute in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/portal"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Max-Age") && !cookie.contains(&key[3..]));
    let page = browser.get("/portal").await;
    assert_eq!(page.status, 200);
    assert!(page.html.contains("Sandbox app") && page.html.contains("Try a verification"));
    for path in [
        "/portal",
        "/portal/events",
        "/portal/events/new",
        "/portal/checks",
        "/portal/webhooks",
        "/portal/credits",
        "/portal/status",
        "/portal/events/none",
    ] {
        let page = browser.get(path).await;
        let secret = browser.cookie.as_ref().unwrap().split_once('=').unwrap().1;
        assert!(!page.html.contains(&key[3..]) && !page.html.contains(secret), "{path}");
    }
}

#[actix_rt::test]
async fn all_invalid_credentials_get_the_same_page_without_them() {
    let fixture = PagesFixture::new().await;
    let (key, app) = (fixture.first.key.reveal().to_owned(), fixture.first.app.as_str().to_owned());
    let (unknown, _) = ApiKey::issue().unwrap();
    let mut pages = Vec::new();
    for (key, app) in
        [(unknown.reveal(), &*app), (&key, AppId::generate().as_str()), (&key[1..], &app), ("", ""), (&app, &key)]
    {
        let mut browser = Browser::new(&fixture);
        let answer = browser.sign_in(key, app).await;
        assert_eq!((answer.status, &answer.cookie), (401, &None));
        assert!(key.is_empty() || !answer.html.contains(key));
        assert!(
            !app.starts_with("sk_") || !answer.html.contains(app),
            "a key entered as the app id is not shown either"
        );
        pages.push(answer.html.replace(&format!("value=\"{app}\""), "value=\"\""));
    }
    pages.dedup();
    assert_eq!(pages.len(), 1, "every response is the same");
}

#[actix_rt::test]
async fn sign_in_to_an_app_of_another_client_is_refused() {
    let fixture = PagesFixture::new().await;
    let store = &fixture.shared.service.store;
    let foreign =
        App { app_id: AppId::generate(), client_id: sakshi_domain::ids::ClientId::generate(), ..fixture.app.clone() };
    let client = sakshi_domain::tenancy::Client::new(foreign.client_id.clone(), "Other".into(), fixture.clock.now());
    store.create_client(client).await.unwrap();
    assert!(store.create_app(foreign.clone()).await.unwrap());
    let answer = Browser::new(&fixture).sign_in(fixture.first.key.reveal(), foreign.app_id.as_str()).await;
    assert_eq!(answer.status, 401);
}

#[actix_rt::test]
async fn signing_in_again_gives_a_new_session_and_ends_the_old_one() {
    let fixture = PagesFixture::new().await;
    let mut browser = Browser::signed_in(&fixture).await;
    let old_cookie = browser.cookie.clone();
    browser.sign_in(fixture.first.key.reveal(), fixture.first.app.as_str()).await;
    assert_ne!(browser.cookie, old_cookie);
    assert_eq!(browser.get("/portal").await.status, 200);
    browser.cookie = old_cookie;
    assert!(browser.get("/portal").await.redirects_to("/portal/sign-in"));
}

#[actix_rt::test]
async fn signing_out_ends_the_session_itself() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    let other_session = Browser::signed_in(&fixture).await;
    let answer = browser.send("/portal/sign-out", &[]).await;
    assert!(answer.redirects_to("/portal/sign-in") && answer.cookie.unwrap().contains("Max-Age=0"));
    assert!(browser.get("/portal").await.redirects_to("/portal/sign-in"), "although the cookie is sent");
    assert_eq!(other_session.get("/portal").await.status, 200, "another session of the key continues");
}

#[actix_rt::test]
async fn a_session_ends_after_30_idle_minutes_or_8_hours() {
    let fixture = PagesFixture::new().await;
    let idle = Browser::signed_in(&fixture).await;
    let active = Browser::signed_in(&fixture).await;
    fixture.clock.advance(29 * MINUTE);
    assert_eq!(active.get("/portal").await.status, 200);
    fixture.clock.advance(MINUTE);
    assert!(idle.get("/portal").await.location.ends_with("?ended=1"));
    for _ in 0..22 {
        fixture.clock.advance(20 * MINUTE);
        assert_eq!(active.get("/portal").await.status, 200);
    }
    fixture.clock.advance(9 * MINUTE);
    assert_eq!(active.get("/portal").await.status, 200, "a minute before its end");
    fixture.clock.advance(MINUTE);
    assert!(active.get("/portal").await.redirects_to("/portal/sign-in"), "eight hours have passed");
}

#[actix_rt::test]
async fn sign_in_attempts_are_rate_limited() {
    let fixture = PagesFixture::with_settings(&[("limits.sign_ins_per_minute_per_address", "2")]).await;
    let mut browser = Browser::new(&fixture);
    for _ in 0..2 {
        assert_eq!(browser.sign_in("guess", "guess").await.status, 401);
    }
    let refused = browser.sign_in(fixture.first.key.reveal(), fixture.first.app.as_str()).await;
    assert_eq!((refused.status, &refused.cookie), (429, &None));
    assert!(refused.html.contains("Too many attempts"));
}

/// Returns the path of a link for the first client.
async fn fresh_link(fixture: &PagesFixture) -> String {
    let (store, key) = (&fixture.shared.service.store, fixture.first.key.digest());
    create_link(store, fixture.clock.now(), key, fixture.first.app.clone()).await.unwrap().unwrap()
}

#[actix_rt::test]
async fn a_sandbox_link_signs_in_once_and_viewing_does_not_spend_it() {
    let fixture = PagesFixture::new().await;
    let path = fresh_link(&fixture).await;
    let mut browser = Browser::new(&fixture);
    for _ in 0..2 {
        let page = browser.get(&path).await;
        assert!(page.status == 200 && page.cookie.is_none() && page.html.contains("Open the portal"), "{}", page.html);
    }
    assert_eq!(browser.post_from("https://evil.example", &path, &[]).await.status, 403, "a page of another site");
    let signed_in = browser.post(&path, &[]).await;
    assert_eq!((signed_in.status, signed_in.location.as_str()), (303, "/portal"));
    browser.cookie = signed_in.cookie.as_ref().and_then(|cookie| cookie.split(';').next()).map(str::to_owned);
    assert!(browser.get("/portal").await.html.contains("Sandbox app"));
    for answer in [Browser::new(&fixture).get(&path).await, Browser::new(&fixture).post(&path, &[]).await] {
        assert!(answer.location == "/portal/sign-in?once=1" && answer.cookie.is_none(), "{}", answer.status);
    }
    assert!(Browser::new(&fixture).get("/portal/sign-in?once=1").await.html.contains("This link was used before"));
}

#[actix_rt::test]
async fn a_link_ends_after_minutes_or_with_its_key() {
    let fixture = PagesFixture::new().await;
    let path = fresh_link(&fixture).await;
    let token = path.rsplit('/').next().unwrap();
    let browser = Browser { cookie: Some(format!("sakshi_portal={token}")), ..Browser::new(&fixture) };
    assert!(browser.get("/portal").await.redirects_to("/portal/sign-in"), "the token of a link is no session");
    fixture.clock.advance(LINK_LIFETIME);
    assert_eq!(browser.post(&path, &[]).await.location, "/portal/sign-in?once=1");
    let path = fresh_link(&fixture).await;
    let store = &fixture.shared.service.store;
    let key = store.list_keys(fixture.first.client.clone()).await.unwrap()[0].key_id.clone();
    store.retire_key(key, sakshi_store::KeyEnd::Expires(fixture.clock.now())).await.unwrap().unwrap();
    assert_eq!(browser.post(&path, &[]).await.location, "/portal/sign-in?once=1", "the key was revoked");
}

#[actix_rt::test]
async fn links_do_not_sign_in_outside_the_sandbox() {
    let mut fixture = PagesFixture::new().await;
    let path = fresh_link(&fixture).await;
    Arc::get_mut(&mut fixture.shared.service.authority).unwrap().sandbox = false;
    let browser = Browser::new(&fixture);
    for answer in [browser.get(&path).await, browser.post(&path, &[]).await] {
        assert!(answer.status == 404 && answer.cookie.is_none(), "{}", answer.status);
    }
}
