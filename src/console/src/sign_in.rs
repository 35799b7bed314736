//! `/console/sign-in` and `/console/sign-out`: opens and ends sessions.

use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse, ResponseError as _};
use askama::Template;
use sakshi_domain::operator::SignIn;
use sakshi_operator::{InternalDeps, console_api};
use sakshi_store::ConsoleSession;
use sakshi_web::error::ApiError;
use sakshi_web::field::Field;
use sakshi_web::html::{form_page, redirect, with_cookie};
use sakshi_web::session::{IDLE, LIFETIME};

use crate::Console;
use crate::error::ConsoleError;
use crate::layout::Layout;
use crate::oidc::Provider;
use crate::staff::COOKIE;
use crate::submitted::{PublicForm, SubmittedForm};

#[derive(Template)]
#[template(path = "sign_in.html")]
struct Page {
    layout: Layout,
    /// Notice above the form.
    notice: Option<&'static str>,
    problem: Option<String>,
    token: Field<'static>,
    /// Host of the identity provider, if there is one.
    provider: Option<String>,
}

impl Page {
    /// Builds the page. The token field is always empty.
    fn new(request: &HttpRequest, notice: Option<&'static str>, problem: Option<String>) -> Self {
        let token = Field::new("token", "Operator’s token", "password", "", None)
            .hint("It begins with so_. The console does not store it.")
            .required();
        let provider =
            request.app_data::<Data<Console>>().and_then(|console| console.provider.as_ref()).map(Provider::host);
        Self { layout: Layout::new(request, None), notice, problem, token, provider }
    }
}

/// Shows the form.
pub(crate) async fn show(request: HttpRequest) -> HttpResponse {
    let notice = match request.query_string() {
        "ended=1" => Some("Your session has ended. Sign in again to continue."),
        "out=1" => Some("You are signed out."),
        _ => None,
    };
    form_page(StatusCode::OK, &Page::new(&request, notice, None))
}

/// Signs in. All failures get the same response.
pub(crate) async fn submit(
    submitted: PublicForm,
    request: HttpRequest,
    api: Data<InternalDeps>,
    console: Data<Console>,
) -> Result<HttpResponse, ConsoleError> {
    let PublicForm(mut form) = submitted;
    match console_api::sign_in(&request, &api, form.take("token").trim()).await {
        Ok(sign_in) => {
            let cookie = open_session(&request, &api, &console, sign_in, LIFETIME).await?;
            Ok(with_cookie(redirect("/console"), &cookie))
        }
        Err(error @ (ApiError::BearerUnauthorized | ApiError::RateLimited { .. })) => {
            let words = match error.retry_after() {
                Some(seconds) => format!("Too many attempts. Try again in {seconds} seconds."),
                None => "This token is wrong, revoked or expired.".to_owned(),
            };
            Ok(error_page(&request, error.status_code(), words))
        }
        Err(error) => Err(error.into()),
    }
}

/// Builds the sign-in page with a problem.
pub(crate) fn error_page(request: &HttpRequest, status: StatusCode, words: String) -> HttpResponse {
    form_page(status, &Page::new(request, None, Some(words)))
}

/// Opens a session with a new id, ends the browser's earlier session, and returns the cookie.
pub(crate) async fn open_session(
    request: &HttpRequest,
    api: &InternalDeps,
    console: &Console,
    sign_in: SignIn,
    lifetime: Duration,
) -> Result<String, ConsoleError> {
    if let Some(previous) = COOKIE.session_id(request) {
        api.store.end_console_session(previous.digest()).await?;
    }
    let id = COOKIE.mint().ok_or_else(|| ApiError::internal("the system has no randomness"))?;
    let now = api.clock.now();
    let session = ConsoleSession { digest: id.digest(), sign_in, idle_until: now + IDLE, ends_at: now + lifetime };
    api.store.open_console_session(session).await?;
    tracing::info!("console session opened");
    Ok(id.cookie(is_secure(request, console)))
}

/// Signs out.
pub(crate) async fn sign_out(submitted: SubmittedForm) -> Result<HttpResponse, ConsoleError> {
    let SubmittedForm { staff, .. } = submitted;
    staff.api.store.end_console_session(staff.session.digest).await?;
    tracing::info!("console session ended");
    Ok(with_cookie(redirect("/console/sign-in?out=1"), &COOKIE.removal(is_secure(&staff.request, &staff.console))))
}

/// Returns true if the browser speaks TLS, with this listener or with a proxy. A client that only claims so gets a
/// cookie that it never sends.
pub(crate) fn is_secure(request: &HttpRequest, console: &Console) -> bool {
    let forwarded = request.headers().get("x-forwarded-proto").and_then(|value| value.to_str().ok());
    console.is_https || forwarded.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
}
