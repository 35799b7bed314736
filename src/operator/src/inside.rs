//! The operator's API for the pages of this listener: the same check of tokens, roles and audit entries, without HTTP
//! between.
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

/// Checks the token of a sign-in and returns the means to check it again.
///
/// # Errors
/// The token is invalid, or there were too many failures.
pub async fn sign_in(request: &HttpRequest, deps: &Data<InternalDeps>, token: &str) -> Result<SignIn, ApiError> {
    let found = by_token(deps, token).await?.ok_or_else(|| refuse(deps, request, Login::Operator))?;
    let sign_in = SignIn::Token(sha256(&[token.as_bytes()]));
    note_sign_in(request, deps, found).await?;
    Ok(sign_in)
}

/// Signs in an account of the identity provider and returns the means to check it again. `None` for an account without
/// a role.
///
/// # Errors
/// The audit log cannot be written.
pub async fn sign_in_elsewhere(
    request: &HttpRequest,
    deps: &InternalDeps,
    account: ProviderAccount,
) -> Result<Option<SignIn>, ApiError> {
    let sign_in = SignIn::Provider(account);
    match find(deps, &sign_in).await? {
        Some(who) => {
            note_sign_in(request, deps, who).await?;
            Ok(Some(sign_in))
        }
        None => Ok(None),
    }
}

/// Records a failed sign-in as an invalid token, and returns the refusal.
pub fn refuse_sign_in(request: &HttpRequest, deps: &Data<InternalDeps>) -> ApiError {
    refuse(deps, request, Login::Operator)
}

/// Returns the keys of a logout at the provider: of one session, of all of a person, or of any of a person.
#[must_use]
pub fn sessions_ended(subject: Option<&str>, session: Option<&str>) -> Vec<String> {
    let of_session = session.map(|session| format!("session {session}"));
    let of_all = subject.filter(|_| session.is_none()).map(|subject| format!("all {subject}"));
    // Covers a session here that does not know its session at the provider.
    let of_any = subject.map(|subject| format!("any {subject}"));
    [of_session, of_all, of_any].into_iter().flatten().collect()
}

/// Returns the keys of logouts that end a session of this account.
fn sessions_of(ProviderAccount { subject, session, .. }: &ProviderAccount) -> Vec<String> {
    match session {
        Some(session) => vec![format!("session {session}"), format!("all {subject}")],
        None => vec![format!("any {subject}")],
    }
}

/// The roles of accounts of the identity provider.
#[derive(Clone, Debug)]
pub struct ProviderRoles {
    /// The provider; accounts of others have no role.
    pub issuer: String,
    /// Groups and their roles.
    pub groups: Vec<(String, Role)>,
}

impl ProviderRoles {
    /// Returns the most powerful role of the account's groups.
    fn of(&self, account: &ProviderAccount) -> Option<Role> {
        let mine = self.groups.iter().filter(|(group, _)| account.groups.contains(group)).map(|(_, role)| *role);
        // Roles are ordered from the most powerful.
        mine.min().filter(|_| account.issuer == self.issuer)
    }
}

async fn note_sign_in(request: &HttpRequest, deps: &InternalDeps, who: Who) -> Result<(), ApiError> {
    audit::note(request, deps, &who, "signIn").await?;
    admit(request, who);
    Ok(())
}

/// Returns the operator of this sign-in, if it is still valid, and records it as the request's caller.
///
/// # Errors
/// The store is unavailable.
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
        SignIn::Provider(account) => {
            let Some(role) = deps.provider_roles.as_ref().and_then(|roles| roles.of(account)) else { return Ok(None) };
            for name in sessions_of(account) {
                let ended_at = deps.store.provider_sessions_ended(account.issuer.clone(), name).await?;
                if ended_at.is_some_and(|at| at >= account.signed_in_at) {
                    return Ok(None);
                }
            }
            Ok(Some(Who { id: None, subject: Some(account.subject.clone()), name: account.name.clone(), role }))
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

/// Carries out an operation for the operator found by [`recognise`], with the ids of the request's path and this body.
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

#[cfg(test)]
mod tests {
    use sakshi_domain::time::Timestamp;

    use super::*;

    fn account(groups: &[&str], session: Option<&str>) -> ProviderAccount {
        ProviderAccount {
            issuer: "https://login.example".to_owned(),
            subject: "asha".to_owned(),
            session: session.map(str::to_owned),
            name: "Asha Rao".to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            signed_in_at: Timestamp::from_millis(0),
        }
    }

    #[test]
    fn of_several_groups_the_role_counts_that_may_do_most_and_other_issuers_have_none() {
        let groups = [("revision", Role::Auditor), ("desk", Role::Support), ("owners", Role::Owner)];
        let groups = groups.map(|(group, role)| (group.to_owned(), role)).into();
        let roles = ProviderRoles { issuer: "https://login.example".to_owned(), groups };
        for (groups, role) in [
            (&["desk", "revision"] as &[&str], Some(Role::Support)),
            (&["owners", "desk"], Some(Role::Owner)),
            (&["staff"], None),
            (&[], None),
        ] {
            assert_eq!(roles.of(&account(groups, None)), role, "{groups:?}");
        }
        let elsewhere = ProviderAccount { issuer: "https://login.example/".to_owned(), ..account(&["owners"], None) };
        assert_eq!(roles.of(&elsewhere), None);
    }

    #[test]
    fn a_logout_ends_the_session_that_it_names_or_all_of_a_person() {
        let ends = |subject, session, of: &ProviderAccount| {
            let ended = sessions_ended(subject, session);
            sessions_of(of).iter().any(|name| ended.contains(name))
        };
        let (one, unnamed) = (account(&[], Some("s1")), account(&[], None));
        assert!(ends(Some("asha"), Some("s1"), &one) && ends(None, Some("s1"), &one) && ends(Some("asha"), None, &one));
        assert!(ends(Some("asha"), Some("s2"), &unnamed) && ends(Some("asha"), None, &unnamed));
        assert!(
            !ends(Some("asha"), Some("s2"), &one)
                && !ends(Some("ravi"), None, &one)
                && !ends(None, Some("asha"), &unnamed)
        );
    }
}
