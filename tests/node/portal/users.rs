//! Sign-in of a user: from the invitation to the end of the session.

use std::time::Duration;

use sakshi_domain::client_log::Action;
use sakshi_domain::clock::Clock as _;
use sakshi_domain::ids::{AppId, ClientId, UserId};
use sakshi_domain::tenancy::{App, Client, ClientPatch};
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{User, UserPatch, UserRole};
use sakshi_service::client_log::list;
use sakshi_service::one_time_code::{Secret, code_at, recovery_digest};
use sakshi_service::passwords::hash;
use sakshi_service::users::{Invitation, NewUser, invite};
use sakshi_store::{Credential, InviteDigest, InviteOutcome, Store};

use super::{Answer, Browser};
use crate::pages_fixture::PagesFixture;

/// Password of every user.
pub(super) const PASSWORD: &str = "mango tree on the hill";
/// Secret of every user's one-time codes.
const SECRET: Secret = *b"12345678901234567890";
/// Recovery code of every user.
const RECOVERY: &str = "abcde-fghij";
/// Time for which a one-time code is shown.
const STEP: Duration = Duration::from_secs(30);

/// Creates a user of the first client, whose password is hashed in one round.
pub(super) async fn create_user(fixture: &PagesFixture, email: &str, role: UserRole) -> User {
    let (store, now) = (&fixture.shared.service.store, fixture.clock.now());
    let user = User {
        user_id: UserId::generate(),
        client_id: fixture.first.client.clone(),
        name: format!("Person {role}").parse().unwrap(),
        email: email.parse().unwrap(),
        role,
        created_at: now,
        invited_until: None,
        accepted_at: None,
        signed_in_at: None,
        disabled_at: None,
    };
    let link = InviteDigest(sakshi_service::api_key::sha256(&[email.as_bytes()]));
    assert_eq!(store.invite_user(user.clone(), link, now + STEP).await, Ok(InviteOutcome::Invited));
    let recovery = vec![recovery_digest(&user.user_id, RECOVERY)];
    let credential =
        Credential { salt: [1; 16], iterations: 1, hash: hash(PASSWORD, &[1; 16], 1), totp: SECRET, recovery };
    store.accept_invite(link, credential, 0).await.unwrap().unwrap()
}

/// Returns the one-time code of a time, or of a number of steps after it.
fn totp_code(now: Timestamp, steps: i64) -> String {
    code_at(&SECRET, now.millis() / 30_000 + steps)
}

impl Browser<'_> {
    /// Signs in as a user; keeps the cookies of the response.
    pub(super) async fn sign_in_as(&mut self, email: &str, password: &str, code: &str) -> Answer {
        let answer = self.post("/portal/sign-in", &[("email", email), ("password", password), ("code", code)]).await;
        let cookie_pair = |name: &str| {
            let cookies = answer.headers.iter().filter(|(known, _)| known == "set-cookie");
            let mut pairs = cookies.filter_map(|(_, cookie)| cookie.split(';').next());
            pairs.find(|pair| pair.starts_with(name)).map(str::to_owned)
        };
        self.cookie = cookie_pair("sakshi_portal=").or_else(|| self.cookie.take());
        self.known_browser = cookie_pair("sakshi_browser=").or_else(|| self.known_browser.take());
        answer
    }

    /// Signs in with the unused code of the next step.
    pub(super) async fn sign_in_with_next_code(&mut self, user: &User) -> Answer {
        self.fixture.clock.advance(STEP);
        let code = totp_code(self.fixture.clock.now(), 0);
        self.sign_in_as(user.email.as_str(), PASSWORD, &code).await
    }
}

/// Returns a browser signed in as a user with this role.
pub(super) async fn signed_in_as(fixture: &PagesFixture, role: UserRole) -> Browser<'_> {
    let mut browser = Browser::new(fixture);
    let user = create_user(fixture, &format!("{role}@example.com"), role).await;
    let answer = browser.sign_in_with_next_code(&user).await;
    assert_eq!((answer.status, answer.location.as_str()), (303, "/portal"), "{}", answer.html);
    browser
}

/// Returns the actions in the client's log, newest first.
pub(super) async fn logged_actions(fixture: &PagesFixture) -> Vec<Action> {
    let log = list(&fixture.shared.service, fixture.first.client.clone(), Default::default(), None, 100).await.unwrap();
    log.entries.into_iter().map(|entry| entry.action).collect()
}

fn store(fixture: &PagesFixture) -> &Store {
    &fixture.shared.service.store
}

#[actix_rt::test]
async fn an_invited_person_chooses_a_password_scans_a_code_and_signs_in() {
    let fixture = PagesFixture::new().await;
    let service = &fixture.shared.service;
    let (name, email) = ("Asha Rao".parse().unwrap(), "asha@example.com".parse().unwrap());
    let new_user = NewUser { client: fixture.first.client.clone(), name, email, role: UserRole::View };
    let Invitation { url, .. } =
        invite(&service.store, &*service.clock, &service.authority.public_base, new_user).await.unwrap();
    let path = url.strip_prefix("https://v.example").unwrap().to_owned();
    let mut browser = Browser::new(&fixture);
    let page = browser.get(&path).await;
    assert_eq!(page.status, 200, "{}", page.html);
    assert!(page.html.contains("Asha Rao") && page.html.contains("asha@example.com") && page.html.contains("<svg"));
    let (sealed, secret_text) = (page.hidden_field("setup"), page.element_text("secret"));
    assert_ne!(browser.get(&path).await.element_text("secret"), secret_text, "every view of the page has a new secret");
    let secret = decode_secret(&secret_text);
    let valid_code = code_at(&secret, fixture.clock.now().millis() / 30_000);
    for (password, code) in [
        ("short", &*valid_code),
        ("password1234", &valid_code),
        ("asha@example.com", &valid_code),
        (PASSWORD, "000000"),
        (PASSWORD, ""),
    ] {
        let refused = browser.post(&path, &[("setup", &sealed), ("password", password), ("code", code)]).await;
        assert_eq!(refused.status, 400, "{password} {code}: {}", refused.html);
        assert_eq!(refused.element_text("secret"), secret_text, "the scanned secret stays valid");
        assert!(!refused.html.contains(password) || password == "asha@example.com" || password.is_empty());
    }
    let accepted = browser.post(&path, &[("setup", &sealed), ("password", PASSWORD), ("code", &valid_code)]).await;
    assert_eq!(accepted.status, 200, "{}", accepted.html);
    let codes: Vec<String> =
        accepted.html.split("<li><code>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned()).collect();
    assert_eq!(codes.len(), 10);
    for answer in [
        browser.get(&path).await,
        browser.post(&path, &[("setup", &sealed), ("password", PASSWORD), ("code", &valid_code)]).await,
    ] {
        assert_eq!(answer.status, 404, "the link works once");
    }
    let again = browser.sign_in_as("asha@example.com", PASSWORD, &valid_code).await;
    assert_eq!(again.status, 401, "the code of the invitation works once");
    let next_code = code_at(&secret, fixture.clock.now().millis() / 30_000 + 1);
    let answer = browser.sign_in_as(" Asha@Example.com ", PASSWORD, &next_code).await;
    assert_eq!((answer.status, answer.location.as_str()), (303, "/portal"), "{}", answer.html);
    let page = browser.get("/portal/events").await;
    assert!(
        page.html.contains("Asha Rao</bdi> (view)") && !page.html.contains("signed in with an API key"),
        "{}",
        page.html
    );
    assert_eq!(browser.sign_in_as("asha@example.com", "wrong password!", &codes[0]).await.status, 401);
    assert_eq!(
        browser.sign_in_as("asha@example.com", PASSWORD, &codes[0]).await.status,
        303,
        "a wrong password does not use up the code"
    );
    assert_eq!(browser.sign_in_as("asha@example.com", PASSWORD, &codes[0]).await.status, 401, "the code was used");
    assert_eq!(logged_actions(&fixture).await, [Action::RecoveryCodeUsed, Action::SignedIn, Action::InviteAccepted]);
}

/// Returns the bytes of a secret in a page's spelling (Base32).
fn decode_secret(text: &str) -> Secret {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits =
        text.bytes().filter(|byte| *byte != b' ').map(|byte| alphabet.iter().position(|known| *known == byte).unwrap());
    let bits: String = bits.map(|value| format!("{value:05b}")).collect();
    let bytes: Vec<u8> = bits
        .as_bytes()
        .chunks(8)
        .map(|byte| u8::from_str_radix(std::str::from_utf8(byte).unwrap(), 2).unwrap())
        .collect();
    bytes.try_into().unwrap()
}

#[actix_rt::test]
async fn every_failed_sign_in_gets_the_same_page() {
    let fixture = PagesFixture::new().await;
    let (known, disabled) = (
        create_user(&fixture, "known@example.com", UserRole::View).await,
        create_user(&fixture, "gone@example.com", UserRole::View).await,
    );
    store(&fixture)
        .patch_user(disabled.user_id, UserPatch { disabled: Some(true), role: None }, fixture.clock.now())
        .await
        .unwrap();
    let valid_code = totp_code(fixture.clock.now(), 0);
    let mut pages = Vec::new();
    for (email, password, code) in [
        ("known@example.com", "another password", &*valid_code),
        ("known@example.com", PASSWORD, "000000"),
        ("known@example.com", PASSWORD, "abcde-fghik"),
        ("known@example.com", PASSWORD, ""),
        ("known@example.com", "", &valid_code),
        ("nobody@example.com", PASSWORD, &valid_code),
        ("gone@example.com", PASSWORD, &valid_code),
        ("no address", PASSWORD, &valid_code),
        ("", "", ""),
    ] {
        let answer = Browser::new(&fixture).sign_in_as(email, password, code).await;
        assert_eq!((answer.status, &answer.cookie), (401, &None), "{email}");
        assert!(password.is_empty() || !answer.html.contains(password));
        pages.push(answer.html.replace(&format!("value=\"{email}\""), "value=\"\""));
    }
    pages.dedup();
    // In the sandbox the form that was not used is collapsed.
    assert!(pages.len() <= 2, "{}", pages.len());
    assert_eq!(Browser::new(&fixture).sign_in_as(known.email.as_str(), PASSWORD, &valid_code).await.status, 303);
}

#[actix_rt::test]
async fn a_code_signs_in_once_within_a_step_of_its_time() {
    let fixture = PagesFixture::new().await;
    let user = create_user(&fixture, "known@example.com", UserRole::View).await;
    for (steps, status) in [(-2, 401), (2, 401), (-1, 303), (-1, 401), (0, 303), (-1, 401), (1, 303), (0, 401)] {
        let code = totp_code(fixture.clock.now(), steps);
        let answer = Browser::new(&fixture).sign_in_as(user.email.as_str(), PASSWORD, &code).await;
        assert_eq!(answer.status, status, "{steps} steps from now");
    }
}

#[actix_rt::test]
async fn password_guessing_does_not_lock_out_known_browsers() {
    let mut fixture = PagesFixture::new().await;
    fixture.shared.rates.sign_ins_of_accounts = sakshi_web::rate_limit::RateLimit::per_hour("sign_ins", 3);
    fixture.shared.rates.sign_ins_of_browsers = sakshi_web::rate_limit::RateLimit::per_hour("sign_ins", 3);
    let user = create_user(&fixture, "known@example.com", UserRole::View).await;
    let mut known = Browser::new(&fixture);
    assert_eq!(known.sign_in_with_next_code(&user).await.status, 303);
    let mut stranger = Browser::new(&fixture);
    for status in [401, 401, 429, 429] {
        assert_eq!(stranger.sign_in_as("Known@example.com", "another password", "000000").await.status, status);
    }
    stranger.known_browser = known.known_browser.as_ref().map(|cookie| cookie.replace('.', "x."));
    assert_eq!(
        stranger.sign_in_as("known@example.com", "another password", "000000").await.status,
        429,
        "a forged cookie"
    );
    assert_eq!(
        stranger.sign_in_as("other@example.com", "another password", "000000").await.status,
        401,
        "another account"
    );
    assert_eq!(known.sign_in_with_next_code(&user).await.status, 303);
    for status in [401, 401, 401, 429] {
        assert_eq!(known.sign_in_as("known@example.com", "another password", "000000").await.status, status);
    }
}

#[actix_rt::test]
async fn sessions_are_listed_and_ended_singly_or_together() {
    let fixture = PagesFixture::new().await;
    let user = create_user(&fixture, "known@example.com", UserRole::View).await;
    let mut browsers = [Browser::new(&fixture), Browser::new(&fixture), Browser::new(&fixture)];
    for browser in &mut browsers {
        assert_eq!(browser.sign_in_with_next_code(&user).await.status, 303);
    }
    let [one, two, three] = browsers;
    let page = one.get("/portal/account").await;
    assert_eq!(page.html.matches("203.0.113.0/24</td>").count(), 3, "{}", page.html);
    let id = page.html.split("name=\"end\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(one.send("/portal/account", &[("end", &id)]).await.status, 303);
    let mut remaining_sessions = 0;
    for browser in [&one, &two, &three] {
        remaining_sessions += u8::from(browser.get("/portal").await.status == 200);
    }
    assert_eq!(remaining_sessions, 2);
    assert_eq!(one.send("/portal/account", &[("end", "AAAA")]).await.status, 404);
    one.send("/portal/account", &[("end", "all")]).await;
    for browser in [&one, &two, &three] {
        assert!(browser.get("/portal").await.redirects_to("/portal/sign-in"));
    }
    assert_eq!(logged_actions(&fixture).await[..2], [Action::SessionEnded, Action::SessionEnded]);
}

#[actix_rt::test]
async fn a_disabled_user_loses_every_session_and_a_new_role_applies_at_once() {
    let fixture = PagesFixture::new().await;
    let user = create_user(&fixture, "known@example.com", UserRole::View).await;
    let mut browser = Browser::new(&fixture);
    browser.sign_in_with_next_code(&user).await;
    assert_eq!(browser.get("/portal/keys").await.status, 403);
    let change = |patch| store(&fixture).patch_user(user.user_id.clone(), patch, fixture.clock.now());
    change(UserPatch { role: Some(UserRole::Admin), disabled: None }).await.unwrap();
    assert_eq!(browser.get("/portal/keys").await.status, 200);
    change(UserPatch { role: None, disabled: Some(true) }).await.unwrap();
    assert!(browser.get("/portal/keys").await.redirects_to("/portal/sign-in"));
    change(UserPatch { role: None, disabled: Some(false) }).await.unwrap();
    assert!(browser.get("/portal/keys").await.redirects_to("/portal/sign-in"), "the old session stays ended");
    assert_eq!(browser.sign_in_with_next_code(&user).await.status, 303);
    let suspended = ClientPatch { suspended: Some(true), ..ClientPatch::default() };
    store(&fixture).patch_client(user.client_id.clone(), suspended, fixture.clock.now()).await.unwrap();
    assert!(browser.get("/portal").await.redirects_to("/portal/sign-in"));
    assert_eq!(browser.sign_in_with_next_code(&user).await.status, 401);
}

#[actix_rt::test]
async fn a_user_switches_only_among_apps_of_the_client() {
    let fixture = PagesFixture::new().await;
    let (store, now) = (store(&fixture), fixture.clock.now());
    let browser = signed_in_as(&fixture, UserRole::View).await;
    assert!(!browser.get("/portal/events").await.html.contains("switch-app"), "there is one app");
    let second = App { app_id: AppId::generate(), name: "Second app".into(), ..fixture.app.clone() };
    assert!(store.create_app(second.clone()).await.unwrap());
    let other_client = ClientId::generate();
    store.create_client(Client::new(other_client.clone(), "Other".into(), now)).await.unwrap();
    let foreign = App { app_id: AppId::generate(), client_id: other_client, ..fixture.app.clone() };
    assert!(store.create_app(foreign.clone()).await.unwrap());
    assert!(browser.get("/portal/events").await.html.contains("switch-app"));
    assert_eq!(browser.send("/portal/app", &[("app", foreign.app_id.as_str())]).await.status, 404);
    assert_eq!(browser.send("/portal/app", &[("app", second.app_id.as_str())]).await.location, "/portal");
    let page = browser.get("/portal/events").await;
    assert!(page.html.contains("<bdi>Second app</bdi>"), "{}", page.html);
    let key_browser = Browser::signed_in(&fixture).await;
    assert!(!key_browser.get("/portal/events").await.html.contains("switch-app"));
    assert_eq!(
        key_browser.send("/portal/app", &[("app", second.app_id.as_str())]).await.status,
        404,
        "a session by key has a fixed app"
    );
}
