//! Opening a session, of a user or a key; and the cookie of a browser that has signed in before.
//!
//! Attempts at an account are counted per hour. A browser that has signed in before carries a cookie and has attempts
//! of its own. So strangers who try passwords lock no earlier user out.

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

use super::sight::{browser, network};
use crate::session::{COOKIE as SESSION, IDLE, LIFETIME};

const NAME: &str = "sakshi_browser";
const MARK_BYTES: usize = 16;
/// Seconds for which a browser is recognised.
const REMEMBERED_S: u32 = 180 * 24 * 3_600;

/// A session to be opened.
pub(crate) struct Opening {
    pub(crate) holder: SessionHolder,
    pub(crate) client: ClientId,
    pub(crate) app: AppId,
    pub(crate) actor: Actor,
    pub(crate) action: Action,
}

/// Opens a session under a fresh id, ends the browser's previous one, and returns the cookie.
pub(crate) async fn open(request: &HttpRequest, service: &Service, opening: Opening) -> Result<String, ApiError> {
    let Opening { holder, client, app, actor, action } = opening;
    if let Some(before) = SESSION.of(request) {
        service.store.end_session(before.digest()).await?;
    }
    let id = SESSION.mint().ok_or_else(|| ApiError::internal("the system has no randomness"))?;
    let now = service.clock.now();
    append(service, &client, actor, action, Vec::new(), request_id(request)).await?;
    tracing::info!(app.id = %app, "portal session opened");
    let session = SessionRecord {
        digest: id.digest(),
        holder,
        app,
        opened_at: now,
        network: host(request).map(network).unwrap_or_default(),
        browser: browser(request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default()),
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

/// Returns the address behind a request.
pub(crate) fn host(request: &HttpRequest) -> Option<IpAddr> {
    request.app_data::<Data<RateLimits>>().map(|rates| rates.host(request))
}

/// Counts an attempt at the account with an e-mail address, as it was entered.
///
/// # Errors
/// Too many attempts.
pub(crate) fn count(request: &HttpRequest, service: &Service, rates: &RateLimits, email: &str) -> Result<(), ApiError> {
    let account = account_of(email);
    match known_mark(request, service, &account) {
        Some(mark) => rates.sign_ins_of_browsers.take(&sha256(&[&account, mark.as_bytes()])),
        None => rates.sign_ins_of_accounts.take(&account),
    }
}

/// Returns the cookie of a browser that has signed in to the account with this address.
pub(crate) fn remember(service: &Service, email: &str) -> Option<String> {
    let mut mark = [0; MARK_BYTES];
    rand::fill(&mut mark).ok()?;
    let mark = URL_SAFE_NO_PAD.encode(mark);
    let proof = service.authority.callbacks.capabilities().make(Purpose::Browser, &subject(&account_of(email), &mark));
    let secure = if is_secure(service) { "; Secure" } else { "" };
    Some(format!(
        "{NAME}={mark}.{proof}; Path=/portal/sign-in; Max-Age={REMEMBERED_S}; HttpOnly; SameSite=Strict{secure}"
    ))
}

fn account_of(email: &str) -> [u8; 32] {
    sha256(&[b"sakshi account", email.trim().to_lowercase().as_bytes()])
}

fn subject(account: &[u8], mark: &str) -> Vec<u8> {
    [account, mark.as_bytes()].concat()
}

/// Returns the mark of a browser that has signed in to this account before.
fn known_mark(request: &HttpRequest, service: &Service, account: &[u8]) -> Option<String> {
    let values = request.headers().get_all(COOKIE).filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == NAME)?;
    let (mark, proof) = value.split_once('.')?;
    let is_genuine =
        service.authority.callbacks.capabilities().is_genuine(Purpose::Browser, &subject(account, mark), proof);
    is_genuine.then(|| mark.to_owned())
}
