//! `/portal/sign-in` and `/portal/sign-out`: from a key and an app id to a session, and back.

use std::rc::Rc;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use askama::Template;
use sakshi_domain::tenancy::KeyDigest;
use sakshi_service::api_key::{ApiKey, PREFIX};
use sakshi_service::authentication::{Caller, KeyGate};
use sakshi_service::{Service, ServiceError};
use sakshi_store::SessionRecord;
use sakshi_web::authenticated::refuse_elsewhere;
use sakshi_web::error::ApiError;
use sakshi_web::html::with_cookie;

use super::error::PortalError;
use super::field::Field;
use super::form::{Posted, Submitted};
use super::layout::{Layout, page, redirect};
use super::session::{COOKIE, IDLE, LIFETIME};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Page<'a> {
    layout: Layout,
    /// What stands above the form.
    notice: Option<&'static str>,
    trouble: Option<String>,
    app_id: Field<'a>,
    key: Field<'a>,
}

impl<'a> Page<'a> {
    /// The key is never among what is shown again, in whichever field it came.
    fn new(service: &Service, app_id: &'a str, notice: Option<&'static str>, trouble: Option<String>) -> Self {
        let app_id = if app_id.contains(PREFIX) { "" } else { app_id };
        Self {
            layout: Layout::signed_out(service.authority.sandbox),
            notice,
            trouble,
            app_id: Field::new("app_id", "App id", "text", app_id, None)
                .hint("What you send as X-API-APP-ID; it begins with app_.")
                .required(),
            key: Field::new("key", "API key", "password", "", None)
                .hint("What you send as X-API-KEY; it begins with sk_. It is not kept here.")
                .required(),
        }
    }
}

/// Shows the form.
pub(crate) async fn show(request: HttpRequest, service: Data<Service>) -> HttpResponse {
    let notice = match request.query_string() {
        "ended=1" => Some("Your session has ended. Sign in again to go on."),
        "once=1" => Some("This link was used before, or it is too old. Sign in with your key and app id."),
        "out=1" => Some("You are signed out."),
        _ => None,
    };
    page(StatusCode::OK, &Page::new(&service, "", notice, None))
}

/// Signs in. Whatever was not good, the answer is one and the same.
///
/// # Errors
/// Errors that are not about the form.
pub(crate) async fn enter(posted: Posted, request: HttpRequest, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let Posted(form) = posted;
    let mut app = String::new();
    let entered = match form {
        Ok(mut form) => {
            app = form.take("app_id").unwrap_or_default();
            entered(&request, &service, form.take("key").unwrap_or_default().trim(), app.trim()).await
        }
        Err(error) => Err(error),
    };
    match entered {
        Ok(cookie) => Ok(with_cookie(redirect("/portal"), &cookie)),
        Err(error @ (ApiError::Service(ServiceError::Unauthorized) | ApiError::AddressNotAllowed | ApiError::RateLimited { .. })) => {
            let words = match error {
                ApiError::AddressNotAllowed => error.message(),
                ApiError::Service(ServiceError::Unauthorized) => {
                    "This key and app id do not match, or the key is no longer valid.".to_owned()
                }
                _ => format!("Too many attempts. Try again in {} seconds.", error.retry_after().unwrap_or(60)),
            };
            Ok(page(error.status_code(), &Page::new(&service, app.trim(), None, Some(words))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Checks key and app, and opens a session under a fresh id; the cookie for it.
async fn entered(request: &HttpRequest, service: &Service, key: &str, app: &str) -> Result<String, ApiError> {
    let gate = request.app_data::<Rc<KeyGate>>().ok_or_else(|| ApiError::internal("the portal is not configured"))?;
    let caller = gate.admit(key, app).await?;
    refuse_elsewhere(request, &caller)?;
    let key = ApiKey::parse(key).ok_or(ServiceError::Unauthorized)?.digest();
    opened(request, service, key, &caller).await
}

/// Opens a session for a caller whose key was checked, and ends the one that the browser had; the cookie for it.
pub(super) async fn opened(request: &HttpRequest, service: &Service, key: KeyDigest, caller: &Caller) -> Result<String, ApiError> {
    if let Some(before) = COOKIE.of(request) {
        service.store.end_session(before.digest()).await?;
    }
    let id = COOKIE.mint().ok_or_else(|| ApiError::internal("the system has no randomness"))?;
    let now = service.clock.now();
    let app = caller.app.app_id.clone();
    service.store.open_session(SessionRecord { digest: id.digest(), key, app, idle_until: now + IDLE, ends_at: now + LIFETIME }).await?;
    tracing::info!(app.id = %caller.app.app_id, key.id = %caller.key_id, "portal session opened");
    Ok(id.cookie(is_secure(service)))
}

/// Signs out.
///
/// # Errors
/// A form of another page, or a store that is away.
pub(crate) async fn leave(submitted: Submitted, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let Submitted { user, .. } = submitted;
    service.store.end_session(user.session.digest()).await?;
    tracing::info!(app.id = %user.caller.app.app_id, "portal session ended");
    Ok(with_cookie(redirect("/portal/sign-in?out=1"), &COOKIE.none(is_secure(&service))))
}

fn is_secure(service: &Service) -> bool {
    service.authority.public_base.starts_with("https:")
}
