//! `/portal/invite/{link}`: a person accepts an invitation with a password and an authenticator app, and gets recovery
//! codes. The link of a reset opens this page too.

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::client_log::{Action, Actor};
use sakshi_domain::user::User;
use sakshi_pages::qr_code::QrCode;
use sakshi_service::client_log::append;
use sakshi_service::one_time_code::{otpauth_url, spell_secret};
use sakshi_service::users::{Acceptance, accept, open_invite};
use sakshi_service::{Service, ServiceError};
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_web::rate_limit::RateLimits;

use super::entry::client_host;
use crate::error::PortalError;
use crate::form::{Form, PublicForm};
use crate::layout::{Layout, page};

/// Name of this service in the authenticator app.
const ISSUER: &str = "Sakshi";

/// The page of an invitation.
#[derive(Template)]
#[template(path = "invite.html")]
struct Page {
    layout: Layout,
    client: String,
    name: String,
    email: String,
    role: &'static str,
    link: String,
    /// Secret of the authenticator app as a QR code.
    code: String,
    /// Secret of the authenticator app in letters.
    secret: String,
    /// Secret of the authenticator app, sealed, for a hidden field of the form.
    sealed: String,
    form: Form,
}

#[derive(Template)]
#[template(path = "invite_done.html")]
struct RecoveryCodesPage {
    layout: Layout,
    codes: Vec<String>,
}

#[derive(Template)]
#[template(path = "invite_ended.html")]
struct EndedLinkPage {
    layout: Layout,
}

async fn render_page(
    service: &Service,
    link: &str,
    status: StatusCode,
    form: Form,
) -> Result<HttpResponse, PortalError> {
    let sealed = form.submitted("setup");
    let (user, secret, sealed) = match open_invite(service, link, sealed).await {
        Ok(opened) => opened,
        Err(ServiceError::NotFound(_)) => return Ok(render_ended_link(service)),
        Err(error) => return Err(error.into()),
    };
    let client = service.store.load_client(user.client_id.clone()).await?.map(|client| client.name).unwrap_or_default();
    let issuer = format!("{ISSUER} {client}");
    let code = QrCode::for_screen(&otpauth_url(&secret, issuer.trim(), user.email.as_str()))
        .map_err(ApiError::internal)?
        .inline();
    let User { name, email, role, .. } = user;
    let template = Page {
        layout: Layout::signed_out(service.rules.profile),
        client,
        name: name.as_str().to_owned(),
        email: email.as_str().to_owned(),
        role: crate::roles::describe_rights(role),
        link: link.to_owned(),
        code,
        secret: spell_secret(&secret),
        sealed,
        form,
    };
    Ok(page(status, &template))
}

/// Renders the page of a link that no longer works.
fn render_ended_link(service: &Service) -> HttpResponse {
    page(StatusCode::NOT_FOUND, &EndedLinkPage { layout: Layout::signed_out(service.rules.profile) })
}

/// Shows the form.
///
/// # Errors
/// 429 when one address sends too many requests; 503 while the store is unavailable.
pub(crate) async fn show(
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
    rates: Data<RateLimits>,
) -> Result<HttpResponse, PortalError> {
    rates.pages.take(&rates.client_address(&request))?;
    render_page(&service, &path, StatusCode::OK, Form::default()).await
}

/// Accepts the invitation, and shows the recovery codes.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn accept_invitation(
    submitted: PublicForm,
    path: Path<String>,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let PublicForm(form) = submitted;
    let form = form?;
    let address = client_host(&request).ok_or_else(|| ApiError::internal("the portal is not configured"))?;
    let acceptance = Acceptance {
        link: &path,
        password: form.value("password"),
        sealed: form.value("setup"),
        code: form.value("code"),
    };
    match accept(&service, address, acceptance).await {
        Ok((user, codes)) => {
            let actor = Actor::User { id: user.user_id, name: user.name };
            append(&service, &user.client_id, actor, Action::InviteAccepted, Vec::new(), request_id(&request)).await?;
            Ok(page(StatusCode::OK, &RecoveryCodesPage { layout: Layout::signed_out(service.rules.profile), codes }))
        }
        Err(ServiceError::NotFound(_)) => Ok(render_ended_link(&service)),
        Err(error) => {
            let (status, form) = form.with_error(error)?;
            render_page(&service, &path, status, form).await
        }
    }
}
