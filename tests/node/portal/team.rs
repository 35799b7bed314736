//! The team: invitations, roles and removal of users by an admin of the client, and the log of it.

use std::time::Duration;

use sakshi_domain::client_log::Action;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::ClientId;
use sakshi_domain::tenancy::Client;
use sakshi_domain::user::{User, UserRole};
use sakshi_service::users::{NewUser, invite};

use super::Browser;
use super::users::{create_user, logged_actions, signed_in_as};
use crate::pages_fixture::PagesFixture;

async fn find_user(fixture: &PagesFixture, email: &str) -> Option<User> {
    let users = fixture.shared.service.store.list_users(fixture.first.client.clone()).await.unwrap();
    users.into_iter().find(|user| user.email.as_str() == email)
}

#[actix_rt::test]
async fn an_admin_invites_a_person_by_a_link_that_is_shown_once() {
    let fixture = PagesFixture::new().await;
    let admin = signed_in_as(&fixture, UserRole::Admin).await;
    let form = [("name", "Ravi Kumar"), ("email", "Ravi@example.com"), ("role", "organise")];
    let answer = admin.send("/portal/team", &form).await;
    assert_eq!(answer.status, 200, "{}", answer.html);
    let link = answer.element_text("invite-link");
    assert!(link.starts_with("https://v.example/portal/invite/"), "{link}");
    assert_eq!(Browser::new(&fixture).get(link.strip_prefix("https://v.example").unwrap()).await.status, 200);
    let page = admin.get("/portal/team").await;
    assert!(page.html.contains("ravi@example.com") && !page.html.contains(&link));
    let ravi = find_user(&fixture, "ravi@example.com").await.unwrap();
    assert_eq!((ravi.role, ravi.accepted_at), (UserRole::Organise, None));
    let repeated = admin.send("/portal/team", &form).await;
    assert_eq!(repeated.status, 409);
    assert!(repeated.html.contains("Another user has this e-mail address."), "{}", repeated.html);
    for (field, value) in [("name", " "), ("email", "ravi"), ("role", "owner")] {
        let form: Vec<_> =
            form.iter().map(|(name, valid)| (*name, if *name == field { value } else { valid })).collect();
        assert_eq!(admin.send("/portal/team", &form).await.status, 400, "{field}");
    }
    fixture.clock.advance(Duration::from_secs(72 * 3_600));
    assert_eq!(
        Browser::new(&fixture).get(link.strip_prefix("https://v.example").unwrap()).await.status,
        404,
        "after 72 hours"
    );
    assert_eq!(logged_actions(&fixture).await, [Action::UserInvited, Action::SignedIn]);
}

#[actix_rt::test]
async fn an_admin_manages_other_users_but_not_the_own_user() {
    let fixture = PagesFixture::new().await;
    let admin = signed_in_as(&fixture, UserRole::Admin).await;
    let other = create_user(&fixture, "other@example.com", UserRole::View).await;
    let mut other_browser = Browser::new(&fixture);
    other_browser.sign_in_with_next_code(&other).await;
    let path = format!("/portal/team/{}", other.user_id);
    assert_eq!(
        admin.send(&path, &[("action", "role"), ("role", "organise")]).await.location,
        "/portal/team?done=changed"
    );
    assert_eq!(other_browser.get("/portal/webhooks").await.status, 200);
    assert_eq!(admin.send(&path, &[("action", "disable")]).await.status, 303);
    assert!(other_browser.get("/portal").await.redirects_to("/portal/sign-in"));
    admin.send(&path, &[("action", "enable")]).await;
    assert_eq!(other_browser.sign_in_with_next_code(&other).await.status, 303);
    let reset = admin.send(&path, &[("action", "reset")]).await;
    assert!(reset.element_text("invite-link").starts_with("https://"), "{}", reset.html);
    assert!(other_browser.get("/portal").await.redirects_to("/portal/sign-in"));
    assert_eq!(other_browser.sign_in_with_next_code(&other).await.status, 401, "the password was reset");
    assert_eq!(admin.send(&path, &[("action", "remove")]).await.location, "/portal/team?done=removed");
    assert_eq!(find_user(&fixture, "other@example.com").await, None);
    assert_eq!(admin.send(&path, &[("action", "enable")]).await.status, 404);
    let admin_user = find_user(&fixture, "admin@example.com").await.unwrap();
    for action in ["role", "disable", "reset", "remove"] {
        let refused =
            admin.send(&format!("/portal/team/{}", admin_user.user_id), &[("action", action), ("role", "view")]).await;
        assert_eq!(refused.status, 400, "{action}");
    }
    assert!(find_user(&fixture, "admin@example.com").await.unwrap().is_active());
    let log = logged_actions(&fixture).await;
    let changes = [
        Action::UserRemoved,
        Action::UserReset,
        Action::SignedIn,
        Action::UserEnabled,
        Action::UserDisabled,
        Action::RoleChanged,
    ];
    assert_eq!(log[..6], changes);
}

#[actix_rt::test]
async fn an_admin_cannot_change_users_of_another_client() {
    let fixture = PagesFixture::new().await;
    let service = &fixture.shared.service;
    let admin = signed_in_as(&fixture, UserRole::Admin).await;
    let client = ClientId::generate();
    service.store.create_client(Client::new(client.clone(), "Other".into(), fixture.clock.now())).await.unwrap();
    let (name, email) = ("Foreign".parse().unwrap(), "foreign@example.com".parse().unwrap());
    let foreign = invite(&service.store, &*service.clock, "", NewUser { client, name, email, role: UserRole::View })
        .await
        .unwrap();
    for action in ["role", "disable", "reset", "remove"] {
        let answer =
            admin.send(&format!("/portal/team/{}", foreign.user_id), &[("action", action), ("role", "admin")]).await;
        assert_eq!(answer.status, 404, "{action}");
    }
    let untouched = service.store.load_user(foreign.user_id).await.unwrap().unwrap();
    assert_eq!((untouched.role, untouched.disabled_at), (UserRole::View, None));
    assert!(!admin.get("/portal/team").await.html.contains("foreign@example.com"));
}

#[actix_rt::test]
async fn switching_off_sign_in_with_keys_ends_their_sessions() {
    let fixture = PagesFixture::new().await;
    let admin = signed_in_as(&fixture, UserRole::Admin).await;
    let mut key_browser = Browser::signed_in(&fixture).await;
    let (key, app) = (fixture.first.key.reveal().to_owned(), fixture.first.app.as_str().to_owned());
    admin.send("/portal/team/sign-in", &[("allow", "false")]).await;
    assert!(key_browser.get("/portal").await.redirects_to("/portal/sign-in"));
    assert_eq!(key_browser.sign_in(&key, &app).await.status, 401);
    assert_eq!(
        fixture.get_as_client("/api/v1/nationalid-ovse/events").await.status(),
        200,
        "the API still accepts the key"
    );
    assert_eq!(admin.get("/portal").await.status, 200);
    admin.send("/portal/team/sign-in", &[("allow", "true")]).await;
    assert_eq!(key_browser.sign_in(&key, &app).await.status, 303);
    assert_eq!(logged_actions(&fixture).await[1..3], [Action::KeySignInAllowed, Action::KeySignInRefused]);
}

#[actix_rt::test]
async fn the_log_is_shown_and_filtered_by_person_and_action() {
    let fixture = PagesFixture::new().await;
    let admin = signed_in_as(&fixture, UserRole::Admin).await;
    let viewer = signed_in_as(&fixture, UserRole::View).await;
    admin.send("/portal/team", &[("name", "Ravi"), ("email", "ravi@example.com"), ("role", "view")]).await;
    let page = viewer.get("/portal/log").await;
    assert!(page.html.contains("Person admin</bdi>") && page.html.contains("Person view</bdi>"), "{}", page.html);
    assert!(page.html.contains("Invited a user: <bdi>Ravi</bdi>"), "{}", page.html);
    let page = viewer.get("/portal/log?action=user_invited").await;
    assert_eq!(page.html.matches("<th scope=\"row\"").count(), 1);
    let viewer_user = find_user(&fixture, "view@example.com").await.unwrap();
    let page = viewer.get(&format!("/portal/log?who={}", viewer_user.user_id)).await;
    assert!(
        page.html.matches("<th scope=\"row\"").count() == 1 && !page.html.contains("Invited a user:"),
        "{}",
        page.html
    );
    for malformed in ["before=x", "before=1.x", "before=-9999999999999999999.1", "action=none", "who=none"] {
        assert_eq!(viewer.get(&format!("/portal/log?{malformed}")).await.status, 200, "{malformed}");
    }
}
