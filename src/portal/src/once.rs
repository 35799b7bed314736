//! `/portal/once/{token}`: a single-use sign-in link of a sandbox, valid for minutes. The demo prints it, so that
//! nobody needs to copy a key.
//!
//! The page has a button, because programs that preview links request the page too. The store has only the digest of
//! the token.

use std::rc::Rc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_domain::client_log::Action;
use sakshi_domain::ids::AppId;
use sakshi_domain::profile::Profile;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_domain::time::Timestamp;
use sakshi_service::api_key::sha256;
use sakshi_service::authentication::KeyGate;
use sakshi_service::{Service, ServiceError};
use sakshi_store::{SessionDigest, SessionHolder, SessionRecord, Store, StoreError};
use sakshi_web::error::ApiError;
use sakshi_web::html::with_cookie;
use sakshi_web::rate_limit::RateLimits;

use super::error::PortalError;
use super::form::PublicForm;
use super::layout::{Layout, page, redirect};
use super::team::entry::{NewSession, open_session};

/// Lifetime of a link.
pub const LINK_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Sign-in page with the notice that the link was used or has expired.
const SPENT_LINK_PAGE: &str = "/portal/sign-in?once=1";

/// The page with the button that signs in.
#[derive(Template)]
#[template(path = "once.html")]
struct Page<'a> {
    layout: Layout,
    token: &'a str,
}

/// Creates a link that signs in with `key` for `app`, and returns its path. Returns `None` if the system has no
/// randomness.
///
/// # Errors
/// Any error of the store.
pub async fn create_link(
    store: &Store,
    now: Timestamp,
    key: KeyDigest,
    app: AppId,
) -> Result<Option<String>, StoreError> {
    let mut bytes = [0; 32];
    if rand::fill(&mut bytes).is_err() {
        return Ok(None);
    }
    let (token, until) = (URL_SAFE_NO_PAD.encode(bytes), now + LINK_LIFETIME);
    let session = SessionRecord {
        digest: link_digest(&token),
        holder: SessionHolder::Key(key),
        app,
        opened_at: now,
        network: String::new(),
        browser: String::new(),
        idle_until: until,
        ends_at: until,
    };
    store.open_session(session).await?;
    Ok(Some(format!("/portal/once/{token}")))
}

/// Returns the digest of a link's token. It differs from the digest of a session, so the token does not work as a
/// cookie.
fn link_digest(token: &str) -> SessionDigest {
    SessionDigest(sha256(&[b"sakshi portal link", token.as_bytes()]))
}

/// Shows the button of a valid link.
///
/// # Errors
/// 404 outside a sandbox, 429 when one address sends too many requests, 503 while the store is unavailable.
pub(crate) async fn show(
    token: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, PortalError> {
    require_sandbox(&service)?;
    rates.pages.take(&rates.client_address(&request))?;
    if service.store.load_session(link_digest(&token)).await?.is_none() {
        return Ok(redirect(SPENT_LINK_PAGE));
    }
    Ok(page(StatusCode::OK, &Page { layout: Layout::signed_out(Profile::Sandbox), token: &token }))
}

/// Signs in with a link that works once.
///
/// # Errors
/// 404 outside a sandbox, 403 for a form of another site, 503 while the store is unavailable.
pub(crate) async fn sign_in(
    PublicForm(form): PublicForm,
    token: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    require_sandbox(&service)?;
    form?;
    let gate = request.app_data::<Rc<KeyGate>>().ok_or_else(|| ApiError::internal("the portal is not configured"))?;
    let Some(SessionRecord { holder, app, .. }) = service.store.take_session(link_digest(&token)).await? else {
        return Ok(redirect(SPENT_LINK_PAGE));
    };
    match gate.admit_holder(&holder, &app).await {
        Ok(caller) => {
            let (client, actor) = (caller.client.clone(), caller.actor.clone());
            let session = NewSession { holder, client, app, actor, action: Action::SignedIn };
            Ok(with_cookie(redirect("/portal"), &open_session(&request, &service, session).await?))
        }
        Err(ServiceError::Unauthorized) => Ok(redirect(SPENT_LINK_PAGE)),
        Err(error) => Err(error.into()),
    }
}

/// Responds with 404 outside a sandbox.
fn require_sandbox(service: &Service) -> Result<(), PortalError> {
    if service.authority.sandbox { Ok(()) } else { Err(ServiceError::NotFound("page").into()) }
}
