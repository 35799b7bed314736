//! The keys of the client in the portal: issued, rotated and revoked by an admin.

use sakshi_domain::client_log::Action;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::{ClientId, KeyId};
use sakshi_domain::tenancy::Client;
use sakshi_domain::user::UserRole;
use sakshi_service::keys::issue;
use sakshi_wire::operator::keys::IssueKeyRequest;

use super::users::{logged_actions, signed_in_as};
use crate::pages_fixture::PagesFixture;

#[actix_rt::test]
async fn an_admin_issues_a_key_that_is_shown_once_and_works() {
    let fixture = PagesFixture::new().await;
    let admin = signed_in_as(&fixture, UserRole::Admin).await;
    let networks = "203.0.113.0/24, 2001:db8::/32";
    let form =
        [("label", "kiosk"), ("environments", "sandbox"), ("networks", networks), ("expires_at", "2024-12-31T18:30")];
    let answer = admin.send("/portal/keys", &form).await;
    assert_eq!(answer.status, 200, "{}", answer.html);
    let text = answer.element_text("key-text");
    let page = admin.get("/portal/keys").await;
    assert!(
        !page.html.contains(&text)
            && page.html.contains("<bdi>kiosk</bdi>")
            && page.html.contains("203.0.113.0/24, 2001:db8::/32")
    );
    assert!(page.html.contains("Never") && page.html.contains("2024-12-31 18:30 UTC"), "{}", page.html);
    let mut browser = super::Browser::new(&fixture);
    assert_eq!(browser.sign_in(&text, fixture.first.app.as_str()).await.status, 303);
    let page = admin.get("/portal/keys").await;
    assert!(
        page.html.contains(&fixture.clock.now().to_string()[..16].replace('T', " ")),
        "the time of the last use: {}",
        page.html
    );
    for (field, value) in [("networks", "nowhere"), ("expires_at", "2020-01-01T00:00"), ("environments", "moon")] {
        let answer = admin.send("/portal/keys", &[(field, value)]).await;
        assert_eq!(answer.status, 400, "{field}");
    }
    assert_eq!(logged_actions(&fixture).await[1], Action::KeyIssued);
}

#[actix_rt::test]
async fn a_key_is_rotated_with_an_overlap_and_revoked() {
    let fixture = PagesFixture::new().await;
    let admin = signed_in_as(&fixture, UserRole::Admin).await;
    let store = &fixture.shared.service.store;
    let old_key = store.list_keys(fixture.first.client.clone()).await.unwrap().remove(0);
    let path = format!("/portal/keys/{}", old_key.key_id);
    let answer = admin.send(&path, &[("action", "rotate"), ("overlap_s", "3600")]).await;
    assert_eq!(answer.status, 200, "{}", answer.html);
    let mut browser = super::Browser::new(&fixture);
    for key in [fixture.first.key.reveal(), &answer.element_text("key-text")] {
        assert_eq!(browser.sign_in(key, fixture.first.app.as_str()).await.status, 303, "both work");
    }
    fixture.clock.advance(std::time::Duration::from_secs(3_600));
    assert_eq!(browser.sign_in(fixture.first.key.reveal(), fixture.first.app.as_str()).await.status, 401);
    let admin = sign_in_again(&fixture).await;
    assert_eq!(admin.send(&path, &[("action", "rotate"), ("overlap_s", "soon")]).await.status, 400);
    assert_eq!(admin.send(&path, &[("action", "rotate"), ("overlap_s", "0")]).await.status, 409, "it has ended");
    let new_key = store.list_keys(fixture.first.client.clone()).await.unwrap().remove(1);
    let revoked = admin.send(&format!("/portal/keys/{}", new_key.key_id), &[("action", "revoke")]).await;
    assert_eq!(revoked.location, "/portal/keys?done=revoked");
    assert!(browser.get("/portal").await.redirects_to("/portal/sign-in"));
    let log = logged_actions(&fixture).await;
    assert!(log[0] == Action::KeyRevoked && log.contains(&Action::KeyRotated), "{log:?}");
}

/// Returns a browser in which the only user of the client is signed in.
async fn sign_in_again(fixture: &PagesFixture) -> super::Browser<'_> {
    let users = fixture.shared.service.store.list_users(fixture.first.client.clone()).await.unwrap();
    let mut browser = super::Browser::new(fixture);
    assert_eq!(browser.sign_in_with_next_code(&users[0]).await.status, 303);
    browser
}

#[actix_rt::test]
async fn an_admin_cannot_change_keys_of_another_client() {
    let fixture = PagesFixture::new().await;
    let (admin, service) = (signed_in_as(&fixture, UserRole::Admin).await, &fixture.shared.service);
    let client = ClientId::generate();
    service.store.create_client(Client::new(client.clone(), "Other".into(), fixture.clock.now())).await.unwrap();
    let owner = (client.clone(), KeyId::generate());
    let foreign = issue(&service.store, &*service.clock, owner, IssueKeyRequest::default()).await.unwrap();
    for (id, action) in [(&foreign.key_id, "revoke"), (&foreign.key_id, "rotate"), (&KeyId::generate(), "revoke")] {
        assert_eq!(admin.send(&format!("/portal/keys/{id}"), &[("action", action)]).await.status, 404);
    }
    let keys = service.store.list_keys(client).await.unwrap();
    assert!(keys.len() == 1 && keys[0].revoked_at.is_none() && keys[0].expires_at.is_none());
}
