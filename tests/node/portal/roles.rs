//! Roles: every route of the portal, with every role and with an API key.

use actix_web::http::Method;
use sakshi::public::ROUTES;
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_domain::user::UserRole;
use sakshi_portal::roles::required_role;
use sakshi_web::routing::{Audience, Row};

use super::users::signed_in_as;
use super::{Answer, Browser};
use crate::pages_fixture::PagesFixture;

/// Routes that only read but need more than the role `view`.
const READS_FOR_ORGANISERS: &[&str] =
    &["/portal/checks", "/portal/events/new", "/portal/events/{eventId}/settings", "/portal/trial", "/portal/webhooks"];
/// Routes that change something and are open to every role.
const CHANGES_FOR_EVERY_ROLE: &[&str] =
    &["/portal/account", "/portal/app", "/portal/sign-out", "/portal/transactions/{txnId}/details"];

/// Returns the routes of the portal that need a session.
fn routes() -> impl Iterator<Item = &'static Row> {
    let portal = ROUTES
        .into_iter()
        .flatten()
        .filter(|row| row.audience == Audience::Developers && row.path.starts_with("/portal"));
    portal.filter(|row| !["/portal/sign-in", "/portal/invite/{link}", "/portal/once/{token}"].contains(&row.path))
}

/// Returns the role that a route should require.
fn expected_role(row: &Row) -> UserRole {
    let is_read = row.method == "GET";
    match row.path {
        path if path.starts_with("/portal/team") || path.starts_with("/portal/keys") => UserRole::Admin,
        path if is_read && READS_FOR_ORGANISERS.contains(&path) => UserRole::Organise,
        path if is_read || CHANGES_FOR_EVERY_ROLE.contains(&path) => UserRole::View,
        _ => UserRole::Organise,
    }
}

/// Returns a path of a route, with unknown ids.
fn example_path(row: &Row) -> String {
    let ids = [
        ("{txnId}", "none"),
        ("{eventId}", "none"),
        ("{userId}", "none"),
        ("{keyId}", "none"),
        ("{flowId}", "none"),
        ("{page:.*}", "none"),
    ];
    ids.iter().fold(row.path.to_owned(), |path, (name, id)| path.replace(name, id))
}

/// Requests a route, with a form whose token is wrong.
async fn request_route(browser: &Browser<'_>, row: &Row) -> Answer {
    if row.method == "GET" {
        browser.get(&example_path(row)).await
    } else {
        browser.post(&example_path(row), &[("form_word", "wrong")]).await
    }
}

/// Returns true if the role was refused.
fn is_refused(answer: &Answer) -> bool {
    answer.status == 403 && answer.html.contains("Your role does not allow this")
}

#[actix_rt::test]
async fn each_role_reaches_exactly_its_routes() {
    let fixture = PagesFixture::new().await;
    for role in [UserRole::View, UserRole::Organise, UserRole::Admin] {
        let browser = signed_in_as(&fixture, role).await;
        for row in routes() {
            assert_eq!(
                required_role(&row.method.parse::<Method>().unwrap(), row.path),
                expected_role(row),
                "{} {}",
                row.method,
                row.path
            );
            let answer = request_route(&browser, row).await;
            assert_eq!(
                is_refused(&answer),
                role < expected_role(row),
                "{role} {} {}: {}",
                row.method,
                row.path,
                answer.status
            );
            assert!(!answer.redirects_to("/portal/sign-in"), "{role} {} {}", row.method, row.path);
            let hint = format!("needs the role “{}”", expected_role(row));
            assert_eq!(answer.html.contains(&hint), role < expected_role(row), "{}", answer.html);
        }
    }
}

#[actix_rt::test]
async fn an_api_key_may_organise_but_reaches_neither_keys_nor_users() {
    let fixture = PagesFixture::new().await;
    let browser = Browser::signed_in(&fixture).await;
    for row in routes() {
        let answer = request_route(&browser, row).await;
        assert_eq!(
            is_refused(&answer),
            expected_role(row) == UserRole::Admin,
            "{} {}: {}",
            row.method,
            row.path,
            answer.status
        );
    }
    let page = browser.get("/portal/events").await;
    assert!(page.html.contains("You are signed in with an API key, the secret of your backend."), "{}", page.html);
    assert!(!page.html.contains("href=\"/portal/team\"") && page.html.contains("href=\"/portal/log\""));
}

#[actix_rt::test]
async fn only_organisers_see_the_whole_url_of_a_webhook() {
    let fixture = PagesFixture::new().await;
    let url = HttpUrl::parse("https://client.example/hook?token=secret", Schemes::HttpsOnly).unwrap();
    let pending = fixture.open(|terms| terms.webhook_url = Some(url)).await;
    for (role, sees_url) in [(UserRole::View, false), (UserRole::Organise, true)] {
        let browser = signed_in_as(&fixture, role).await;
        let page = browser.get(&format!("/portal/transactions/{}", pending.id)).await;
        assert!(page.status == 200 && page.html.contains("https://client.example"), "{role}: {}", page.html);
        assert_eq!(page.html.contains("token=secret"), sees_url, "{role}");
    }
}
