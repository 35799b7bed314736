//! `/portal/account`: the sessions of a user, with buttons that end them, and the switch to another app of the client.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Data;
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::ids::{AppId, UserId};
use sakshi_service::{Service, ServiceError};
use sakshi_store::{SessionDigest, SessionHolder, SessionRecord};

use crate::error::PortalError;
use crate::form::SessionForm;
use crate::layout::{Layout, page, redirect};
use crate::portal_user::PortalUser;
use crate::roles::describe_rights;
use crate::when::When;

/// A session of the user.
struct Row {
    id: String,
    opened_at: When,
    network: String,
    browser: String,
    is_current: bool,
}

#[derive(Template)]
#[template(path = "account.html")]
struct Page {
    layout: Layout,
    name: String,
    email: String,
    role: &'static str,
    rows: Vec<Row>,
}

/// Returns the user of a session, with the epoch of the user's credentials, which changes with the password. The holder
/// of an API key is refused.
fn require_user(user: &PortalUser) -> Result<(UserId, i64), ServiceError> {
    match user.session.holder() {
        SessionHolder::User { id, epoch } => Ok((id.clone(), *epoch)),
        SessionHolder::Key(_) => Err(ServiceError::NotFound("page")),
    }
}

/// Returns the user's sessions that are still valid: a new password ends earlier sessions.
async fn list_sessions(user: &PortalUser, service: &Service) -> Result<Vec<SessionRecord>, PortalError> {
    let (id, epoch) = require_user(user)?;
    let is_current_epoch = |session: &SessionRecord| match &session.holder {
        SessionHolder::User { epoch: session_epoch, .. } => *session_epoch == epoch,
        SessionHolder::Key(_) => false,
    };
    Ok(service.store.list_sessions(id).await?.into_iter().filter(is_current_epoch).collect())
}

/// Shows the sessions.
///
/// # Errors
/// 404 for the holder of an API key, who has no account; 503 while the store is unavailable.
pub(crate) async fn show(user: PortalUser, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let (id, _) = require_user(&user)?;
    let account = service.store.load_user(id).await?.ok_or(ServiceError::NotFound("user"))?;
    let current = user.session.digest();
    let row = |session: SessionRecord| Row {
        id: URL_SAFE_NO_PAD.encode(session.digest.0),
        opened_at: When::minute(session.opened_at),
        network: session.network,
        browser: session.browser,
        is_current: session.digest == current,
    };
    let template = Page {
        rows: list_sessions(&user, &service).await?.into_iter().map(row).collect(),
        layout: user.plain_layout(&service),
        name: account.name.as_str().to_owned(),
        email: account.email.as_str().to_owned(),
        role: describe_rights(account.role),
    };
    Ok(page(StatusCode::OK, &template))
}

/// Ends the session that the form names, or all sessions of the user.
///
/// # Errors
/// 404 for the holder of an API key, who has no account; 503 while the store is unavailable.
pub(crate) async fn end(submitted: SessionForm, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, form } = submitted;
    let (id, _) = require_user(&user)?;
    if form.has("end", "all") {
        service.store.end_sessions(id).await?;
    } else {
        let digest =
            URL_SAFE_NO_PAD.decode(form.value("end")).ok().and_then(|bytes| bytes.try_into().ok()).map(SessionDigest);
        let sessions = list_sessions(&user, &service).await?;
        let session =
            sessions.iter().find(|session| Some(session.digest) == digest).ok_or(ServiceError::NotFound("session"))?;
        service.store.end_session(session.digest).await?;
    }
    user.log(&service, Action::SessionEnded, Vec::new()).await?;
    Ok(redirect("/portal/account"))
}

/// Switches to another app of the client.
///
/// # Errors
/// 404 for an app of another client, and for the holder of an API key, who cannot switch; 503 while the store is
/// unavailable.
pub(crate) async fn switch(submitted: SessionForm, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, form } = submitted;
    require_user(&user)?;
    let id: AppId = form.value("app").parse().map_err(|_| ServiceError::NotFound("app"))?;
    let app = service
        .store
        .load_app(id)
        .await?
        .filter(|app| app.client_id == user.caller.client)
        .ok_or(ServiceError::NotFound("app"))?;
    service.store.switch_session(user.session.digest(), app.app_id.clone()).await?;
    user.log(&service, Action::AppSwitched, vec![Subject::App(app.app_id)]).await?;
    Ok(redirect("/portal"))
}
