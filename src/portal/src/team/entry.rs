//! The start of a session, and the cookie of a browser that has signed in before.
//!
//! Attempts at an account are limited per hour. A browser that has signed in before carries a cookie and has a separate
//! limit. So strangers who guess passwords cannot lock out the account's user.

use std::net::IpAddr;

use actix_web::HttpRequest;
use actix_web::http::header::{COOKIE, USER_AGENT};
use actix_web::web::Data;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_authority::capability::Purpose;
use sakshi_domain::client_log::{Action, Actor};
use sakshi_domain::ids::{AppId, ClientId};
use sakshi_service::Service;
use sakshi_service::api_key::sha256;
use sakshi_service::client_log::append;
use sakshi_store::{SessionHolder, SessionRecord};
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

use super::session_origin::{describe_browser, network_of};
use crate::session::{COOKIE as SESSION_COOKIE, IDLE, LIFETIME};

/// Cookie of a browser that has signed in before: a random mark, and the proof that this service issued it.
const COOKIE_NAME: &str = "sakshi_browser";
/// Length of the random mark.
const MARK_BYTES: usize = 16;
/// Seconds for which a browser is recognised.
const REMEMBERED_S: u32 = 180 * 24 * 3_600;

/// The data for a new session.
pub(crate) struct NewSession {
    /// The user, or the API key, that the session acts for.
    pub(crate) holder: SessionHolder,
    pub(crate) client: ClientId,
    pub(crate) app: AppId,
    /// Actor and action of the sign-in, for the log of the client.
    pub(crate) actor: Actor,
    pub(crate) action: Action,
}

/// Opens a session under a fresh id, ends the browser's previous session, and returns the cookie.
pub(crate) async fn open_session(
    request: &HttpRequest,
    service: &Service,
    session: NewSession,
) -> Result<String, ApiError> {
    let NewSession { holder, client, app, actor, action } = session;
    if let Some(previous) = SESSION_COOKIE.session_id(request) {
        service.store.end_session(previous.digest()).await?;
    }
    let id = SESSION_COOKIE.mint().ok_or_else(|| ApiError::internal("the system has no randomness"))?;
    let now = service.clock.now();
    append(service, &client, actor, action, Vec::new(), request_id(request)).await?;
    tracing::info!(app.id = %app, "portal session opened");
    let session = SessionRecord {
        digest: id.digest(),
        holder,
        app,
        opened_at: now,
        network: client_host(request).map(network_of).unwrap_or_default(),
        browser: describe_browser(
            request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default(),
        ),
        idle_until: now + IDLE,
        ends_at: now + LIFETIME,
    };
    service.store.open_session(session).await?;
    Ok(id.cookie(is_secure(service)))
}

/// Returns true if browsers reach the service by https.
pub(crate) fn is_secure(service: &Service) -> bool {
    service.authority.public_base.starts_with("https:")
}

/// Returns the IP address of the caller.
pub(crate) fn client_host(request: &HttpRequest) -> Option<IpAddr> {
    request.app_data::<Data<RateLimits>>().map(|rates| rates.host(request))
}

/// Counts an attempt to sign in to an account, per browser if the browser has signed in to it before.
///
/// # Errors
/// 429 after too many attempts.
pub(crate) fn count_attempt(
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
    email: &str,
) -> Result<(), ApiError> {
    let account = account_digest(email);
    match known_mark(request, service, &account) {
        Some(mark) => rates.sign_ins_of_browsers.take(&sha256(&[&account, mark.as_bytes()])),
        None => rates.sign_ins_of_accounts.take(&account),
    }
}

/// Returns the cookie for a browser that has signed in to the account with an e-mail address.
pub(crate) fn browser_cookie(service: &Service, email: &str) -> Option<String> {
    let mut mark = [0; MARK_BYTES];
    rand::fill(&mut mark).ok()?;
    let mark = URL_SAFE_NO_PAD.encode(mark);
    let proof = service
        .authority
        .callbacks
        .capabilities()
        .make(Purpose::Browser, &proof_subject(&account_digest(email), &mark));
    let secure = if is_secure(service) { "; Secure" } else { "" };
    Some(format!(
        "{COOKIE_NAME}={mark}.{proof}; Path=/portal/sign-in; Max-Age={REMEMBERED_S}; HttpOnly; SameSite=Strict{secure}"
    ))
}

/// Returns the digest of an e-mail address, in place of the address in limits and proofs.
fn account_digest(email: &str) -> [u8; 32] {
    sha256(&[b"sakshi account", email.trim().to_lowercase().as_bytes()])
}

/// Returns the bytes that a browser's proof authenticates: the account, and the mark of the browser.
fn proof_subject(account: &[u8], mark: &str) -> Vec<u8> {
    [account, mark.as_bytes()].concat()
}

/// Returns the mark in the cookie of a browser that has signed in to the account before.
fn known_mark(request: &HttpRequest, service: &Service, account: &[u8]) -> Option<String> {
    let values = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == COOKIE_NAME)?;
    let (mark, proof) = value.split_once('.')?;
    let is_genuine =
        service.authority.callbacks.capabilities().is_genuine(Purpose::Browser, &proof_subject(account, mark), proof);
    is_genuine.then(|| mark.to_owned())
}
