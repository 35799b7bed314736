//! The operator's API for the pages of this listener: the same check of tokens, roles and audit entries, without HTTP between.
//!
//! A page's route has the names of the API's ids in its path, so that the same handlers and the audit log read them.

use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest};
use sakshi_domain::operator::{ProviderAccount, Role, SignIn};
use sakshi_service::api_key::sha256;
use sakshi_web::error::ApiError;
use sakshi_web::subject::note_operator;
use sakshi_wire::Sent;
use serde_json::{Value, json};

use super::InternalDeps;
use super::arguments::{SentByPage, deps};
use super::audit;
use super::bearer::{Who, allow, by_digest, by_token, who};
use super::failed_logins::{Login, refuse};
use super::routes::operations;
pub use super::views::find_refused;

/// Checks the token that somebody signs in with; the way to check it again.
///
/// # Errors
/// It is not good, or there were too many of these.
pub async fn sign_in(request: &HttpRequest, deps: &Data<InternalDeps>, token: &str) -> Result<SignIn, ApiError> {
    let found = by_token(deps, token).await?.ok_or_else(|| refuse(deps, request, Login::Operator))?;
    let sign_in = SignIn::Token(sha256(&[token.as_bytes()]));
    note_sign_in(request, deps, found).await?;
    Ok(sign_in)
}

/// Notes that somebody has signed in at the identity provider; the way to check it again.
///
/// # Errors
/// The audit log cannot be written.
pub async fn signed_in_elsewhere(request: &HttpRequest, deps: &InternalDeps, account: ProviderAccount) -> Result<SignIn, ApiError> {
    let sign_in = SignIn::Provider(account);
    if let Some(who) = find(deps, &sign_in).await? {
        note_sign_in(request, deps, who).await?;
    }
    Ok(sign_in)
}

async fn note_sign_in(request: &HttpRequest, deps: &InternalDeps, who: Who) -> Result<(), ApiError> {
    audit::note(request, deps, &who, "signIn").await?;
    admit(request, who);
    Ok(())
}

/// The operator who has signed in so, if that still counts; the request is an operator's from then on.
///
/// # Errors
/// A store that is away.
pub async fn recognise(request: &HttpRequest, deps: &InternalDeps, sign_in: &SignIn) -> Result<Option<Who>, ApiError> {
    let found = find(deps, sign_in).await?;
    if let Some(who) = &found {
        admit(request, who.clone());
    }
    Ok(found)
}

async fn find(deps: &InternalDeps, sign_in: &SignIn) -> Result<Option<Who>, ApiError> {
    match sign_in {
        SignIn::Token(digest) => by_digest(deps, *digest).await,
        SignIn::Provider(ProviderAccount { subject, name, role }) => {
            Ok(Some(Who { id: None, subject: Some(subject.clone()), name: name.clone(), role: *role }))
        }
    }
}

fn admit(request: &HttpRequest, who: Who) {
    note_operator(request, &who.signatory().id);
    request.extensions_mut().insert(who);
}

/// Returns true if an operator with this role may do an operation.
#[must_use]
pub fn may(role: Role, operation: &str) -> bool {
    operations().iter().any(|known| known.id == operation && known.roles.contains(&role))
}

/// Carries out an operation for the operator whom [`recognise`] has found, with the ids of the request's own path and this body.
///
/// # Errors
/// The refusal that the API would answer with.
pub async fn carry_out(request: &HttpRequest, operation: &'static str, sent: Option<Sent>) -> Result<Value, ApiError> {
    let known = operations().into_iter().find(|known| known.id == operation);
    let known = known.ok_or_else(|| ApiError::internal(json!({ "unknown": operation })))?;
    let who = who(request)?;
    allow(request, &who, operation, known.roles).await?;
    deps(request)?;
    request.extensions_mut().insert(SentByPage(sent));
    (known.perform)(request.clone(), who, known.logging).await
}
