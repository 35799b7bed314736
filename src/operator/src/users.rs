//! `/admin/v1/clients/{client_id}/users` and `/admin/v1/users/{user_id}`: the people of a client who use the portal. A
//! link is shown once; the service sends no e-mail.

use actix_web::HttpRequest;
use actix_web::web::{Data, Json};
use sakshi_domain::client_log::{Action, Actor, LogEntry, Subject};
use sakshi_domain::ids::{ClientId, UserId};
use sakshi_domain::invalid::Invalid;
use sakshi_domain::user::{User, UserPatch};
use sakshi_service::ServiceError;
use sakshi_service::users::{self, Invitation, NewUser};
use sakshi_web::edge::request_id;
use sakshi_web::error::ApiError;
use sakshi_wire::operator::keys::KeyText;
use sakshi_wire::operator::users::{
    InviteUserRequest, InviteUserResponse, PatchUserRequest, RemovedUserResponse, UserResponse, UsersResponse,
};

use super::InternalDeps;
use super::arguments::{Id, RequestBody};
use super::bearer::{Operator, operator_id};
use super::credits::require_client;

/// Appends an operator's action to the log of a client.
pub(super) async fn log(
    deps: &Data<InternalDeps>,
    request: &HttpRequest,
    client: ClientId,
    action: Action,
    subject: Option<Subject>,
) -> Result<(), ApiError> {
    let (actor, subjects) = (Actor::Operator { id: operator_id(request) }, subject.into_iter().collect());
    let entry = LogEntry { at: deps.clock.now(), actor, action, subjects, request_id: request_id(request) };
    Ok(deps.store.append_client_log(client, entry).await?)
}

fn invitation_response(Invitation { user_id, url, until }: Invitation) -> Json<InviteUserResponse> {
    Json(InviteUserResponse { user_id, invite_url: KeyText(url), expires_at: until })
}

pub(super) async fn invite(
    Operator(deps): Operator,
    Id(client): Id<ClientId>,
    request: HttpRequest,
    RequestBody(body): RequestBody<InviteUserRequest>,
) -> Result<Json<InviteUserResponse>, ApiError> {
    let InviteUserRequest { name, email, role } = body;
    let name = name.0.0.parse().map_err(|problem: &str| Invalid::one("name", problem))?;
    let invitation =
        users::invite(&deps.store, &*deps.clock, &deps.docs.0, NewUser { client: client.clone(), name, email, role })
            .await?;
    log(&deps, &request, client, Action::UserInvited, Some(Subject::User(invitation.user_id.clone()))).await?;
    Ok(invitation_response(invitation))
}

pub(super) async fn list(Operator(deps): Operator, Id(client): Id<ClientId>) -> Result<Json<UsersResponse>, ApiError> {
    require_client(&deps.store, &client).await?;
    let users = deps.store.list_users(client).await?;
    Ok(Json(UsersResponse { users: users.into_iter().map(Into::into).collect() }))
}

pub(super) async fn patch(
    Operator(deps): Operator,
    Id(id): Id<UserId>,
    request: HttpRequest,
    RequestBody(body): RequestBody<PatchUserRequest>,
) -> Result<Json<UserResponse>, ApiError> {
    let patch = UserPatch { role: body.role.0, disabled: body.disabled.0 };
    let before = load_user(&deps, id.clone()).await?;
    let user = deps.store.patch_user(id, patch, deps.clock.now()).await?.ok_or(ServiceError::NotFound("user"))?;
    for action in users::logged_changes(&before, &user) {
        log(&deps, &request, user.client_id.clone(), action, Some(Subject::User(user.user_id.clone()))).await?;
    }
    tracing::info!(user.id = %user.user_id, user.role = user.role.as_str(),
        user.is_disabled = user.disabled_at.is_some(), "user changed");
    Ok(Json(user.into()))
}

/// Invalidates a user's password, codes and sessions, and creates a new link.
pub(super) async fn reset(
    Operator(deps): Operator,
    Id(id): Id<UserId>,
    request: HttpRequest,
) -> Result<Json<InviteUserResponse>, ApiError> {
    let user = load_user(&deps, id).await?;
    log(&deps, &request, user.client_id, Action::UserReset, Some(Subject::User(user.user_id.clone()))).await?;
    let link = users::reset(&deps.store, &*deps.clock, &deps.docs.0, user.user_id).await?;
    Ok(invitation_response(link))
}

pub(super) async fn remove(
    Operator(deps): Operator,
    Id(id): Id<UserId>,
    request: HttpRequest,
) -> Result<Json<RemovedUserResponse>, ApiError> {
    let user = load_user(&deps, id.clone()).await?;
    // A repeated request finds no user, so the entry comes first.
    log(&deps, &request, user.client_id, Action::UserRemoved, Some(Subject::User(id.clone()))).await?;
    deps.store.remove_user(id.clone()).await?;
    tracing::info!(user.id = %id, "user removed");
    Ok(Json(RemovedUserResponse { user_id: id }))
}

/// Loads a user; fails with 404 if it does not exist.
async fn load_user(deps: &Data<InternalDeps>, id: UserId) -> Result<User, ApiError> {
    Ok(deps.store.load_user(id).await?.ok_or(ServiceError::NotFound("user"))?)
}
