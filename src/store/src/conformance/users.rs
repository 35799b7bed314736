//! Users of clients: invitations, sign-in with single-use codes, and removal.
#![allow(missing_docs)] // The name of each function states the property that it checks.

use std::time::Duration;

use futures_util::future::join_all;
use sakshi_domain::erasure::ErasureSubject;
use sakshi_domain::ids::{AppId, ClientId, UserId};
use sakshi_domain::user::{User, UserPatch, UserRole};

use super::TestStore;
use super::fixture::{build_app, client_with};
use super::sessions::build_session;
use crate::{Credential, InviteDigest, InviteOutcome, SessionHolder, SessionRecord};

/// The time step of the code that accepts an invitation.
const FIRST_STEP: i64 = 98;
const HOUR: Duration = Duration::from_secs(3_600);

/// Builds a user, to be invited.
pub(crate) fn build_user(test: &impl TestStore, client: &ClientId, email: &str) -> User {
    User {
        user_id: UserId::generate(),
        client_id: client.clone(),
        name: "Planted Person".parse().unwrap(),
        email: email.parse().unwrap(),
        role: UserRole::Organise,
        created_at: test.now(),
        invited_until: Some(test.now() + HOUR),
        accepted_at: None,
        signed_in_at: None,
        disabled_at: None,
    }
}

/// Returns the sign-in data that a user sets when accepting an invitation: password hash, TOTP secret, recovery codes.
pub(crate) fn credential() -> Credential {
    Credential { salt: [1; 16], iterations: 2, hash: [3; 32], totp: [4; 20], recovery: vec![[5; 32], [6; 32]] }
}

/// Invites a user who accepts the invitation. A number identifies the link in the invitation.
pub(crate) async fn join_user(test: &impl TestStore, client: &ClientId, email: &str, link: u8) -> User {
    let (invited, link) = (build_user(test, client, email), InviteDigest([link; 32]));
    assert_eq!(test.store().invite_user(invited, link, test.now() + HOUR).await, Ok(InviteOutcome::Invited));
    test.store().accept_invite(link, credential(), FIRST_STEP).await.unwrap().unwrap()
}

/// Builds a session of a user in an epoch, which every disabling, reset or removal of sessions raises.
fn build_user_session(test: &impl TestStore, number: u8, user: &User, epoch: i64) -> SessionRecord {
    SessionRecord { holder: SessionHolder::User { id: user.user_id.clone(), epoch }, ..build_session(test, number) }
}

pub(crate) async fn an_invitation_link_works_once_until_it_expires(test: &impl TestStore) {
    let (store, client) = (test.store(), client_with(test, 0).await);
    let (invited_user, late) =
        (build_user(test, &client, "planted-one@example.com"), build_user(test, &client, "planted-late@example.com"));
    for (invited, link) in [(&invited_user, 1), (&late, 2)] {
        for _ in 0..2 {
            let outcome = store.invite_user(invited.clone(), InviteDigest([link; 32]), test.now() + HOUR).await;
            assert_eq!(outcome, Ok(InviteOutcome::Invited));
        }
    }
    assert_eq!(store.list_users(client.clone()).await.unwrap().len(), 2);
    assert_eq!(store.find_invite(InviteDigest([1; 32])).await, Ok(Some(invited_user.clone())));
    assert_eq!(store.find_invite(InviteDigest([3; 32])).await, Ok(None));
    assert_eq!(store.find_signing_in(invited_user.email.clone()).await, Ok(None), "an invited user cannot sign in yet");
    let tries = join_all((0..4).map(|_| store.accept_invite(InviteDigest([1; 32]), credential(), FIRST_STEP))).await;
    assert_eq!(tries.into_iter().filter(|user| matches!(user, Ok(Some(_)))).count(), 1);
    assert_eq!(store.find_invite(InviteDigest([1; 32])).await, Ok(None));
    let found = store.find_signing_in(invited_user.email.clone()).await.unwrap().unwrap();
    assert_eq!((found.user.user_id, found.credential, found.epoch), (invited_user.user_id, credential(), 0));
    test.advance(HOUR);
    assert_eq!(store.find_invite(InviteDigest([2; 32])).await, Ok(None));
    assert_eq!(store.accept_invite(InviteDigest([2; 32]), credential(), FIRST_STEP).await, Ok(None));
}

pub(crate) async fn an_email_address_has_one_user_and_a_user_needs_a_client(test: &impl TestStore) {
    let (store, client, other) = (test.store(), client_with(test, 0).await, client_with(test, 0).await);
    let first = join_user(test, &client, "planted-one@example.com", 1).await;
    test.advance(HOUR);
    let second = build_user(test, &other, first.email.as_str());
    assert_eq!(
        store.invite_user(second.clone(), InviteDigest([2; 32]), test.now() + HOUR).await,
        Ok(InviteOutcome::EmailTaken)
    );
    assert_eq!(store.find_invite(InviteDigest([2; 32])).await, Ok(None));
    assert_eq!(store.remove_user(first.user_id).await, Ok(true));
    assert_eq!(store.invite_user(second, InviteDigest([2; 32]), test.now() + HOUR).await, Ok(InviteOutcome::Invited));
    let user_without_client = build_user(test, &ClientId::generate(), "planted-two@example.com");
    assert_eq!(
        store.invite_user(user_without_client, InviteDigest([3; 32]), test.now() + HOUR).await,
        Ok(InviteOutcome::NotFound)
    );
}

pub(crate) async fn each_code_works_once_in_a_race(test: &impl TestStore) {
    let (store, client) = (test.store(), client_with(test, 0).await);
    let id = join_user(test, &client, "planted-one@example.com", 1).await.user_id;
    assert_eq!(store.use_code(id.clone(), 0, FIRST_STEP).await, Ok(false), "the code of the invitation");
    let uses = join_all((0..8).map(|_| store.use_code(id.clone(), 0, 100))).await;
    assert_eq!(uses.into_iter().filter(|used| *used == Ok(true)).count(), 1);
    assert_eq!(store.use_code(id.clone(), 0, 99).await, Ok(false), "an earlier time step");
    assert_eq!(store.use_code(id.clone(), 1, 101).await, Ok(false), "a code of another epoch");
    assert_eq!(store.use_code(id.clone(), 0, 101).await, Ok(true));
    let uses = join_all((0..8).map(|_| store.use_recovery_code(id.clone(), 0, [5; 32]))).await;
    assert_eq!(uses.into_iter().filter(|used| *used == Ok(true)).count(), 1);
    assert_eq!(store.use_recovery_code(id.clone(), 0, [7; 32]).await, Ok(false));
    assert_eq!(store.use_recovery_code(id.clone(), 0, [6; 32]).await, Ok(true));
    assert!(store.load_user(id).await.unwrap().unwrap().signed_in_at.is_some());
}

pub(crate) async fn a_disabled_or_reset_user_cannot_sign_in(test: &impl TestStore) {
    let (store, client) = (test.store(), client_with(test, 0).await);
    let user = join_user(test, &client, "planted-one@example.com", 1).await;
    let (id, patch) =
        (user.user_id.clone(), |disabled| UserPatch { disabled: Some(disabled), role: Some(UserRole::Admin) });
    let disabled = store.patch_user(id.clone(), patch(true), test.now()).await.unwrap().unwrap();
    assert_eq!((disabled.disabled_at, disabled.role), (Some(test.now()), UserRole::Admin));
    assert_eq!(store.find_signing_in(user.email.clone()).await, Ok(None));
    assert_eq!(store.use_code(id.clone(), 0, 100).await, Ok(false));
    store.patch_user(id.clone(), patch(false), test.now()).await.unwrap().unwrap();
    assert_eq!(
        store.find_signing_in(user.email.clone()).await.unwrap().unwrap().epoch,
        1,
        "disabling raised the epoch"
    );
    let reset = store.reset_user(id.clone(), InviteDigest([2; 32]), test.now() + HOUR).await.unwrap().unwrap();
    assert_eq!((reset.accepted_at, reset.invited_until), (None, Some(test.now() + HOUR)));
    assert_eq!(store.find_signing_in(user.email.clone()).await, Ok(None));
    store.accept_invite(InviteDigest([2; 32]), credential(), FIRST_STEP).await.unwrap().unwrap();
    assert_eq!(store.find_signing_in(user.email).await.unwrap().unwrap().epoch, 2);
    assert_eq!(store.reset_user(UserId::generate(), InviteDigest([3; 32]), test.now() + HOUR).await, Ok(None));
    assert_eq!(store.patch_user(UserId::generate(), patch(true), test.now()).await, Ok(None));
}

pub(crate) async fn the_sessions_of_a_user_are_listed_switched_and_ended(test: &impl TestStore) {
    let (store, client) = (test.store(), client_with(test, 0).await);
    let user = join_user(test, &client, "planted-one@example.com", 1).await;
    let sessions: Vec<_> = (1..=3).map(|number| build_user_session(test, number, &user, 0)).collect();
    for opened in &sessions {
        store.open_session(opened.clone()).await.unwrap();
    }
    store.open_session(build_session(test, 4)).await.unwrap();
    let mut listed = store.list_sessions(user.user_id.clone()).await.unwrap();
    listed.sort_by_key(|session| session.digest.0);
    assert_eq!(listed, sessions);
    let app = AppId::generate();
    let switched = store.switch_session(sessions[0].digest, app.clone()).await.unwrap().unwrap();
    assert_eq!(switched, SessionRecord { app, ..sessions[0].clone() });
    assert_eq!(store.load_session(switched.digest).await, Ok(Some(switched.clone())));
    store.end_session(sessions[1].digest).await.unwrap();
    assert_eq!(store.list_sessions(user.user_id.clone()).await.unwrap().len(), 2);
    assert_eq!(store.switch_session(sessions[1].digest, AppId::generate()).await, Ok(None));
    store.end_sessions(user.user_id.clone()).await.unwrap();
    assert_eq!(store.list_sessions(user.user_id).await, Ok(vec![]));
    assert_eq!(store.load_session(switched.digest).await, Ok(None));
    assert_eq!(store.find_signing_in(user.email).await.unwrap().unwrap().epoch, 1);
    assert!(store.load_session(build_session(test, 4).digest).await.unwrap().is_some(), "a session of another holder");
}

pub(crate) async fn a_user_is_found_together_with_the_client_and_the_requested_app(test: &impl TestStore) {
    let (store, client) = (test.store(), client_with(test, 0).await);
    let (user, app) = (join_user(test, &client, "planted-one@example.com", 1).await, build_app(test, &client));
    store.create_app(app.clone()).await.unwrap();
    let grant = store.find_user(user.user_id.clone(), app.app_id.clone()).await.unwrap().unwrap();
    assert_eq!(
        (grant.user.user_id, grant.client.client_id, grant.app, grant.epoch),
        (user.user_id.clone(), client, Some(app), 0)
    );
    assert_eq!(store.find_user(user.user_id, AppId::generate()).await.unwrap().unwrap().app, None);
    assert_eq!(store.find_user(UserId::generate(), AppId::generate()).await, Ok(None));
}

pub(crate) async fn erasing_a_client_erases_its_users(test: &impl TestStore) {
    let (store, client, other) = (test.store(), client_with(test, 0).await, client_with(test, 0).await);
    let (erased_user, other_user) = (
        join_user(test, &client, "planted-one@example.com", 1).await,
        join_user(test, &other, "planted-two@example.com", 2).await,
    );
    let invited = build_user(test, &client, "planted-three@example.com");
    store.invite_user(invited.clone(), InviteDigest([3; 32]), test.now() + HOUR).await.unwrap();
    store.open_session(build_user_session(test, 1, &erased_user, 0)).await.unwrap();
    let erased = store.erase(ErasureSubject::Client(client.clone())).await.unwrap();
    assert_eq!(erased.users, 2);
    assert_eq!(store.list_users(client).await, Ok(vec![]));
    assert_eq!(store.load_user(erased_user.user_id).await, Ok(None));
    assert_eq!(
        (store.find_signing_in(erased_user.email).await, store.find_invite(InviteDigest([3; 32])).await),
        (Ok(None), Ok(None))
    );
    assert_eq!(store.load_session(build_session(test, 1).digest).await, Ok(None));
    assert!(store.find_signing_in(other_user.email).await.unwrap().is_some());
}
