//! `/portal/sign-in` and `/portal/sign-out`. A user signs in with password and code, or with an API key and an app id.
//!
//! Password and code are in one form, so that an attacker cannot confirm one without the other.

use std::rc::Rc;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use askama::Template;
use sakshi_domain::client_log::{Action, Actor};
use sakshi_domain::user::User;
use sakshi_service::api_key::{ApiKey, PREFIX};
use sakshi_service::authentication::KeyGate;
use sakshi_service::users::{self, SignedIn};
use sakshi_service::{Service, ServiceError};
use sakshi_store::SessionHolder;
use sakshi_web::authenticated::refuse_other_address;
use sakshi_web::error::ApiError;
use sakshi_web::html::with_cookie;
use sakshi_web::rate_limit::RateLimits;

use super::error::PortalError;
use super::field::Field;
use super::form::{Form, PublicForm, SessionForm};
use super::layout::{Layout, page, redirect};
use super::session::COOKIE;
use super::team::entry::{NewSession, browser_cookie, client_host, count_attempt, is_secure, open_session};

/// Seconds until another attempt, unless the error states a time.
const RETRY_S_DEFAULT: u64 = 60;

/// The sign-in page.
#[derive(Template)]
#[template(path = "sign_in.html")]
struct Page<'a> {
    layout: Layout,
    /// Notice above the form.
    notice: Option<&'static str>,
    /// Error of the last attempt.
    trouble: Option<String>,
    /// True if the form for keys is in use.
    by_key: bool,
    email: Field<'a>,
    password: Field<'a>,
    code: Field<'a>,
    app_id: Field<'a>,
    key: Field<'a>,
}

/// The submitted values that the form shows again: never a password or a key, even in the wrong field.
#[derive(Default)]
struct SignInFields {
    by_key: bool,
    email: String,
    app_id: String,
}

impl<'a> Page<'a> {
    fn new(service: &Service, fields: &'a SignInFields, notice: Option<&'static str>, trouble: Option<String>) -> Self {
        let app_id = if fields.app_id.contains(PREFIX) { "" } else { &fields.app_id };
        Self {
            layout: Layout::signed_out(service.rules.profile),
            notice,
            trouble,
            by_key: fields.by_key || (service.authority.sandbox && fields.email.is_empty()),
            email: Field::new("email", "E-mail", "email", fields.email.as_str(), None)
                .required()
                .autocomplete("username"),
            password: Field::new("password", "Password", "password", "", None)
                .required()
                .autocomplete("current-password"),
            code: Field::new("code", "Code", "text", "", None)
                .hint("The six digits that your app shows now, or a recovery code.")
                .required()
                .autocomplete("one-time-code"),
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
    page(StatusCode::OK, &Page::new(&service, &SignInFields::default(), notice, None))
}

/// Signs in. The response to a failure does not say which value was wrong.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn sign_in(
    submitted: PublicForm,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, PortalError> {
    let PublicForm(form) = submitted;
    let mut fields = SignInFields::default();
    let outcome = match form {
        Ok(mut form) => {
            fields = SignInFields {
                by_key: form.submitted("key").is_some(),
                email: form.take("email").unwrap_or_default(),
                app_id: form.take("app_id").unwrap_or_default().trim().to_owned(),
            };
            if fields.by_key {
                sign_in_with_key(&request, &service, &form, &fields).await
            } else {
                sign_in_with_password(&request, &service, &rates, &form, &fields).await
            }
        }
        Err(error) => Err(error),
    };
    match outcome {
        Ok(cookies) => Ok(cookies.iter().fold(redirect("/portal"), |response, cookie| with_cookie(response, cookie))),
        Err(
            error @ (ApiError::Service(ServiceError::Unauthorized)
            | ApiError::AddressNotAllowed
            | ApiError::RateLimited { .. }),
        ) => {
            let words = match error {
                ApiError::AddressNotAllowed => error.message(),
                ApiError::Service(ServiceError::Unauthorized) if fields.by_key => {
                    "This key and app id do not match, or the key is no longer valid.".to_owned()
                }
                ApiError::Service(ServiceError::Unauthorized) => {
                    "E-mail, password and code do not belong together, or the code was used. Try again with the next \
                        code."
                        .to_owned()
                }
                _ => format!(
                    "Too many attempts. Try again in {} seconds.",
                    error.retry_after().unwrap_or(RETRY_S_DEFAULT)
                ),
            };
            Ok(page(error.status_code(), &Page::new(&service, &fields, None, Some(words))))
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a session for the holder of an API key, and returns its cookie.
async fn sign_in_with_key(
    request: &HttpRequest,
    service: &Service,
    form: &Form,
    fields: &SignInFields,
) -> Result<Vec<String>, ApiError> {
    let (key, app) = (form.value("key").trim(), fields.app_id.as_str());
    let gate = request.app_data::<Rc<KeyGate>>().ok_or_else(|| ApiError::internal("the portal is not configured"))?;
    let caller = gate.admit(key, app).await?;
    refuse_other_address(request, &caller)?;
    let client = service.store.load_client(caller.client.clone()).await?.ok_or(ServiceError::Unauthorized)?;
    if !client.portal_key_sign_in {
        return Err(ServiceError::Unauthorized.into());
    }
    let holder = SessionHolder::Key(ApiKey::parse(key).ok_or(ServiceError::Unauthorized)?.digest());
    let (client, app, actor, action) =
        (caller.client.clone(), caller.app.app_id.clone(), caller.actor.clone(), Action::SignedIn);
    Ok(vec![open_session(request, service, NewSession { holder, client, app, actor, action }).await?])
}

/// Opens a session for a user, in the first app of the client, and returns its cookie and that of the browser.
async fn sign_in_with_password(
    request: &HttpRequest,
    service: &Service,
    rates: &RateLimits,
    form: &Form,
    fields: &SignInFields,
) -> Result<Vec<String>, ApiError> {
    count_attempt(request, service, rates, &fields.email)?;
    let address = client_host(request).ok_or_else(|| ApiError::internal("the portal is not configured"))?;
    let credentials =
        users::SignIn { email: &fields.email, password: form.value("password"), code: form.value("code") };
    let SignedIn { user, epoch, by_recovery_code } = users::sign_in(service, address, credentials).await?;
    let User { user_id: id, client_id: client, name, .. } = user;
    let app =
        service.store.list_apps(client.clone()).await?.into_iter().next().ok_or(ServiceError::Unauthorized)?.app_id;
    let holder = SessionHolder::User { id: id.clone(), epoch };
    // Refuses users of a suspended client.
    let gate = request.app_data::<Rc<KeyGate>>().ok_or_else(|| ApiError::internal("the portal is not configured"))?;
    gate.admit_holder(&holder, &app).await?;
    let action = if by_recovery_code { Action::RecoveryCodeUsed } else { Action::SignedIn };
    let cookie =
        open_session(request, service, NewSession { holder, client, app, actor: Actor::User { id, name }, action })
            .await?;
    Ok([cookie].into_iter().chain(browser_cookie(service, &fields.email)).collect())
}

/// Signs out.
///
/// # Errors
/// 403 for a form of another page, 503 while the store is unavailable.
pub(crate) async fn sign_out(submitted: SessionForm, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, .. } = submitted;
    service.store.end_session(user.session.digest()).await?;
    user.log(&service, Action::SignedOut, Vec::new()).await?;
    tracing::info!(app.id = %user.caller.app.app_id, "portal session ended");
    Ok(with_cookie(redirect("/portal/sign-in?out=1"), &COOKIE.removal(is_secure(&service))))
}
