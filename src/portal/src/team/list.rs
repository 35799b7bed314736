//! `/portal/team`: the users of the client. Admins invite, change, disable and remove users. Nobody can change their
//! own role, so an admin always remains.

use std::collections::HashMap;

use actix_web::http::StatusCode;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;
use sakshi_domain::client_log::{Action, Subject};
use sakshi_domain::ids::UserId;
use sakshi_domain::invalid::Invalid;
use sakshi_domain::tenancy::ClientPatch;
use sakshi_domain::time::Timestamp;
use sakshi_domain::user::{User, UserPatch, UserRole};
use sakshi_service::users::{Invitation, NewUser, invite, logged_changes, own_user, reset};
use sakshi_service::{Service, ServiceError};

use crate::error::PortalError;
use crate::form::{Form, SessionForm};
use crate::layout::{Layout, Section, page, redirect};
use crate::portal_user::PortalUser;
use crate::roles::describe_rights;
use crate::when::When;

/// A user in the list.
struct Row {
    id: String,
    name: String,
    email: String,
    role: UserRole,
    state: &'static str,
    /// Style of the state.
    tag: &'static str,
    /// Time that belongs to the state.
    since: When,
    signed_in_at: Option<When>,
    is_self: bool,
    is_disabled: bool,
}

impl Row {
    fn new(user: &User, own_id: &str, now: Timestamp) -> Self {
        let (state, tag, since) = match (user.disabled_at, user.accepted_at, user.invited_until) {
            (Some(at), ..) => ("Disabled since", "not_verified", at),
            (None, Some(at), _) => ("Active since", "active", at),
            (None, None, Some(end)) if now < end => ("Link works until", "waiting", end),
            (None, None, end) => ("Link ended", "not_verified", end.unwrap_or(user.created_at)),
        };
        Self {
            is_self: user.user_id.as_str() == own_id,
            id: user.user_id.as_str().to_owned(),
            name: user.name.as_str().to_owned(),
            email: user.email.as_str().to_owned(),
            role: user.role,
            state,
            tag,
            since: When::minute(since),
            signed_in_at: user.signed_in_at.map(When::minute),
            is_disabled: user.disabled_at.is_some(),
        }
    }
}

/// An invitation link, which is shown once.
struct InviteLink {
    name: String,
    email: String,
    url: String,
    until: When,
}

/// The page of the team.
#[derive(Template)]
#[template(path = "team.html")]
struct Page {
    layout: Layout,
    rows: Vec<Row>,
    form: Form,
    confirmation: Option<&'static str>,
    link: Option<InviteLink>,
    roles: Vec<(UserRole, &'static str)>,
    /// True if people may sign in with an API key.
    allows_keys: bool,
}

/// The outcome of a request, for the page.
#[derive(Default)]
struct Outcome {
    status: StatusCode,
    form: Form,
    confirmation: Option<&'static str>,
    link: Option<(User, Invitation)>,
}

async fn render_page(user: &PortalUser, service: &Service, outcome: Outcome) -> Result<HttpResponse, PortalError> {
    let Outcome { status, form, confirmation, link } = outcome;
    let (client, now) = (user.caller.client.clone(), service.clock.now());
    let users = service.store.list_users(client.clone()).await?;
    let allows_keys = service.store.load_client(client).await?.is_some_and(|client| client.portal_key_sign_in);
    let actor = user.actor();
    let link = link.map(|(user, Invitation { url, until, .. })| InviteLink {
        name: user.name.as_str().to_owned(),
        email: user.email.as_str().to_owned(),
        url,
        until: When::minute(until),
    });
    let template = Page {
        layout: user.layout(Section::Team, service),
        rows: users.iter().map(|user| Row::new(user, actor.id(), now)).collect(),
        form,
        confirmation,
        link,
        roles: UserRole::ALL.iter().map(|role| (*role, describe_rights(*role))).collect(),
        allows_keys,
    };
    Ok(page(status, &template))
}

/// Shows the users.
///
/// # Errors
/// 303 to the sign-in page without a session; 403 for a role below admin; 503 while the store is unavailable.
pub(crate) async fn show(
    user: PortalUser,
    request: HttpRequest,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let confirmation = match request.query_string() {
        "done=changed" => Some("Saved. It takes effect within a second."),
        "done=removed" => Some("The user is removed."),
        _ => None,
    };
    render_page(&user, &service, Outcome { confirmation, ..Outcome::default() }).await
}

/// Invites a user, and shows the link.
///
/// # Errors
/// Any error that does not concern the form.
pub(crate) async fn invite_user(submitted: SessionForm, service: Data<Service>) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, form } = submitted;
    match invite_from_form(&user, &service, &form).await {
        Ok(link) => render_page(&user, &service, Outcome { link: Some(link), ..Outcome::default() }).await,
        Err(error) => {
            let (status, form) = form.with_error(error)?;
            render_page(&user, &service, Outcome { status, form, ..Outcome::default() }).await
        }
    }
}

async fn invite_from_form(
    user: &PortalUser,
    service: &Service,
    form: &Form,
) -> Result<(User, Invitation), ServiceError> {
    let mut invalid = Invalid::none();
    let name = invalid.check("name", form.value("name").parse());
    let email = invalid.check("email", form.value("email").trim().parse());
    let role = invalid.check("role", form.value("role").parse());
    let (Some(name), Some(email), Some(role)) = (name, email, role) else { return Err(invalid.into()) };
    let new_user = NewUser { client: user.caller.client.clone(), name, email, role };
    let invitation = invite(&service.store, &*service.clock, &service.authority.public_base, new_user).await?;
    let invited_user = own_user(&service.store, &user.caller.client, invitation.user_id.clone()).await?;
    log_change(user, service, Action::UserInvited, &invitation.user_id).await?;
    Ok((invited_user, invitation))
}

/// Appends a change of a user to the log of the client.
async fn log_change(user: &PortalUser, service: &Service, action: Action, id: &UserId) -> Result<(), ServiceError> {
    user.log(service, action, vec![Subject::User(id.clone())]).await
}

/// Changes, resets or removes a user, as the form's button says.
///
/// # Errors
/// 404 for a user of another client; 503 while the store is unavailable.
pub(crate) async fn change(
    submitted: SessionForm,
    path: Path<String>,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, form } = submitted;
    let id: UserId = path.parse().map_err(|_| ServiceError::NotFound("user"))?;
    let before = own_user(&service.store, &user.caller.client, id.clone()).await?;
    if user.actor().id() == id.as_str() {
        let (status, form) =
            form.with_error(ServiceError::from(Invalid::one("role", "of your own user is changed by another admin")))?;
        return render_page(&user, &service, Outcome { status, form, ..Outcome::default() }).await;
    }
    let patch = match form.value("action") {
        "role" => match form.value("role").parse() {
            Ok(role) => UserPatch { role: Some(role), disabled: None },
            Err(problem) => {
                let (status, form) = form.with_error(ServiceError::from(Invalid::one("role", problem)))?;
                return render_page(&user, &service, Outcome { status, form, ..Outcome::default() }).await;
            }
        },
        "disable" => UserPatch { role: None, disabled: Some(true) },
        "enable" => UserPatch { role: None, disabled: Some(false) },
        "reset" => {
            log_change(&user, &service, Action::UserReset, &id).await?;
            let link = reset(&service.store, &*service.clock, &service.authority.public_base, id.clone()).await?;
            return render_page(&user, &service, Outcome { link: Some((before, link)), ..Outcome::default() }).await;
        }
        "remove" => {
            log_change(&user, &service, Action::UserRemoved, &id).await?;
            service.store.remove_user(id.clone()).await?;
            return Ok(redirect("/portal/team?done=removed"));
        }
        _ => return Err(ServiceError::NotFound("action").into()),
    };
    let after = service
        .store
        .patch_user(id.clone(), patch, service.clock.now())
        .await?
        .ok_or(ServiceError::NotFound("user"))?;
    for action in logged_changes(&before, &after) {
        log_change(&user, &service, action, &id).await?;
    }
    Ok(redirect("/portal/team?done=changed"))
}

/// Allows or forbids sign-in with API keys.
///
/// # Errors
/// 503 while the store is unavailable.
pub(crate) async fn allow_key_sign_in(
    submitted: SessionForm,
    service: Data<Service>,
) -> Result<HttpResponse, PortalError> {
    let SessionForm { user, form } = submitted;
    let is_allowed = form.value("allow") == "true";
    let patch = ClientPatch { portal_key_sign_in: Some(is_allowed), ..ClientPatch::default() };
    service.store.patch_client(user.caller.client.clone(), patch, service.clock.now()).await?;
    let action = if is_allowed { Action::KeySignInAllowed } else { Action::KeySignInRefused };
    user.log(&service, action, Vec::new()).await?;
    Ok(redirect("/portal/team?done=changed"))
}

/// Returns the names of the client's users, by id.
pub(crate) async fn user_names(user: &PortalUser, service: &Service) -> Result<HashMap<String, String>, PortalError> {
    let users = service.store.list_users(user.caller.client.clone()).await?;
    Ok(users.into_iter().map(|user| (user.user_id.as_str().to_owned(), user.name.as_str().to_owned())).collect())
}
