//! `/console/oidc/…`: sign-in at the identity provider, and its logouts.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_operator::{InternalDeps, console_api};
use sakshi_service::ServiceError;
use sakshi_web::error::ApiError;
use sakshi_web::html::{form_page, private, redirect, with_cookie};
use sakshi_web::query::Query;
use sakshi_web::session::{LIFETIME, SameSite, SessionCookie, SessionId};
use serde_json::json;

use crate::Console;
use crate::error::ConsoleError;
use crate::layout::Layout;
use crate::oidc::{Provider, ProviderError, SignInAttempt};
use crate::sign_in::{self, is_secure};
use crate::submitted::PublicForm;

/// Cookie of a sign-in in progress. The browser returns by a link of the provider, which `SameSite=Strict` would not
/// allow.
static ATTEMPT_COOKIE: SessionCookie = SessionCookie {
    name: "sakshi_console_begun",
    path: "/console/oidc",
    site: "console begun",
    same_site: SameSite::Lax,
};

impl SignInAttempt {
    fn from_session(id: &SessionId) -> Self {
        Self {
            state: id.derive_secret("state"),
            nonce: id.derive_secret("nonce"),
            verifier: id.derive_secret("verifier"),
        }
    }
}

fn provider(console: &Console) -> Result<&Provider, ConsoleError> {
    Ok(console.provider.as_ref().ok_or(ServiceError::NotFound("page"))?)
}

/// Sends the browser to the provider.
///
/// # Errors
/// There is no provider.
pub(crate) async fn start(request: HttpRequest, console: Data<Console>) -> Result<HttpResponse, ConsoleError> {
    let provider = provider(&console)?;
    let id = ATTEMPT_COOKIE.mint().ok_or_else(|| ApiError::internal("the system has no randomness"))?;
    let attempt = SignInAttempt::from_session(&id);
    let challenge = sakshi_web::session::sha256_base64url(&attempt.verifier);
    match provider.authorization_url(&attempt, &challenge).await {
        Ok(url) => Ok(with_cookie(redirect(url.as_str()), &id.cookie(is_secure(&request, &console)))),
        Err(error) => Ok(provider_error_page(&request, &error)),
    }
}

/// Logs an error of the provider, and builds the sign-in page with a notice.
fn provider_error_page(request: &HttpRequest, error: &ProviderError) -> HttpResponse {
    tracing::warn!(%error, "nobody was signed in at the identity provider");
    sign_in::error_page(
        request,
        StatusCode::BAD_GATEWAY,
        "The identity provider cannot be used now. The reason is in the log.".to_owned(),
    )
}

/// The page after the sign-in. It continues to the console by itself, because a browser does not send the session's
/// cookie when it follows a link of the provider.
#[derive(Template)]
#[template(path = "signed_in.html")]
struct SignedIn {
    layout: Layout,
}

/// Completes the sign-in when the browser returns from the provider.
///
/// # Errors
/// There is no provider, or the store is unavailable.
pub(crate) async fn return_from_provider(
    request: HttpRequest,
    api: Data<InternalDeps>,
    console: Data<Console>,
) -> Result<HttpResponse, ConsoleError> {
    let provider = provider(&console)?;
    let mut query = Query::parse(request.query_string());
    let (code, state, issuer, error) =
        (query.text("code"), query.text("state"), query.text("iss"), query.text("error"));
    let id = ATTEMPT_COOKIE.session_id(&request);
    let attempt =
        id.as_ref().map(SignInAttempt::from_session).filter(|attempt| state.as_deref() == Some(&attempt.state));
    // A provider that names itself (RFC 9207) must be the configured provider.
    let is_issuer = issuer.is_none_or(|issuer| issuer == provider.settings.issuer);
    let response = match (code, attempt.filter(|_| is_issuer)) {
        (Some(code), Some(attempt)) => complete_sign_in(&request, &api, &console, provider, &code, &attempt).await?,
        (None, Some(_)) if error.is_some() => sign_in::error_page(
            &request,
            StatusCode::FORBIDDEN,
            "The identity provider did not sign you in.".to_owned(),
        ),
        _ => sign_in::error_page(
            &request,
            StatusCode::BAD_REQUEST,
            "This sign-in was not begun here, or too long ago. Begin again.".to_owned(),
        ),
    };
    Ok(with_cookie(response, &ATTEMPT_COOKIE.removal(is_secure(&request, &console))))
}

/// Exchanges the code of a returned browser, and opens a session for the account.
async fn complete_sign_in(
    request: &HttpRequest,
    api: &Data<InternalDeps>,
    console: &Console,
    provider: &Provider,
    code: &str,
    attempt: &SignInAttempt,
) -> Result<HttpResponse, ConsoleError> {
    let now = api.clock.now();
    let (account, end) = match provider.fetch_account(code, attempt, now).await {
        Ok(account) => account,
        Err(ProviderError::Token(refusal)) => {
            tracing::warn!(error = %refusal, "a token of the identity provider was refused");
            return refuse(request, api, "The identity provider’s answer was not accepted.");
        }
        Err(error) => return Ok(provider_error_page(request, &error)),
    };
    let Some(sign_in) = console_api::sign_in_at_provider(request, api, account).await? else {
        return refuse(request, api, "Your account has no role here. Ask for a group that has one.");
    };
    let lifetime = if provider.settings.ends_with_token { end.since(now).min(LIFETIME) } else { LIFETIME };
    let cookie = sign_in::open_session(request, api, console, sign_in, lifetime.max(Duration::from_secs(1))).await?;
    Ok(with_cookie(form_page(StatusCode::OK, &SignedIn { layout: Layout::new(request, None) }), &cookie))
}

/// Records a failed sign-in like a wrong token, and builds the sign-in page with a notice.
fn refuse(request: &HttpRequest, api: &Data<InternalDeps>, words: &str) -> Result<HttpResponse, ConsoleError> {
    match console_api::refuse_sign_in(request, api) {
        ApiError::BearerUnauthorized => Ok(sign_in::error_page(request, StatusCode::FORBIDDEN, words.to_owned())),
        error => Err(error.into()),
    }
}

/// Ends the sessions that the provider has ended (Back-Channel Logout 1.0).
///
/// # Errors
/// There is no provider, or the store is unavailable.
pub(crate) async fn logout(
    submitted: PublicForm,
    api: Data<InternalDeps>,
    console: Data<Console>,
) -> Result<HttpResponse, ConsoleError> {
    let PublicForm(mut form) = submitted;
    let provider = provider(&console)?;
    match provider.check_logout(&form.take("logout_token"), api.clock.now()).await {
        Ok(session_keys) => {
            for session_key in session_keys {
                api.store.end_provider_sessions(provider.settings.issuer.clone(), session_key, api.clock.now()).await?;
            }
            Ok(private(StatusCode::OK).finish())
        }
        Err(error) => {
            tracing::warn!(%error, "a logout of the identity provider was refused");
            Ok(private(StatusCode::BAD_REQUEST).json(json!({ "error": "invalid_request" })))
        }
    }
}
