//! The operator's API for the console's pages: calls the API's handlers directly, with the same checks and audit
//! entries.
//!
//! The ids in a page's path have the same names as in the API's paths, so that handlers and audit log can read them.

use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest};
use sakshi_domain::operator::{ProviderAccount, Role, SignIn};
use sakshi_service::api_key::sha256;
use sakshi_web::error::ApiError;
use sakshi_web::subject::note_operator;
use sakshi_wire::ReceivedObject;
use serde_json::{Value, json};

use super::InternalDeps;
use super::arguments::{PageBody, deps};
use super::audit;
use super::bearer::{Caller, caller, find_by_digest, find_by_token, require_role};
use super::failed_logins::{Login, refuse};
use super::routes::operations;
pub use super::views::find_refused;

/// Signs in with a token, and returns what is needed to check the sign-in again.
///
/// # Errors
/// The token is invalid, or there were too many failures.
pub async fn sign_in(request: &HttpRequest, deps: &Data<InternalDeps>, token: &str) -> Result<SignIn, ApiError> {
    let caller = find_by_token(deps, token).await?.ok_or_else(|| refuse(deps, request, Login::Operator))?;
    let sign_in = SignIn::Token(sha256(&[token.as_bytes()]));
    log_sign_in(request, deps, caller).await?;
    Ok(sign_in)
}

/// Signs in an account of the identity provider, and returns what is needed to check the sign-in again. Returns `None`
/// for an account without a role.
///
/// # Errors
/// The audit log cannot be written.
pub async fn sign_in_at_provider(
    request: &HttpRequest,
    deps: &InternalDeps,
    account: ProviderAccount,
) -> Result<Option<SignIn>, ApiError> {
    let sign_in = SignIn::Provider(account);
    match find_caller(deps, &sign_in).await? {
        Some(caller) => {
            log_sign_in(request, deps, caller).await?;
            Ok(Some(sign_in))
        }
        None => Ok(None),
    }
}

/// Records a failed sign-in as an invalid token, and returns the refusal.
pub fn refuse_sign_in(request: &HttpRequest, deps: &Data<InternalDeps>) -> ApiError {
    refuse(deps, request, Login::Operator)
}

/// Returns the keys under which a logout at the provider is stored: for one session, or for all sessions of a person.
#[must_use]
pub fn logout_keys(subject: Option<&str>, session: Option<&str>) -> Vec<String> {
    let one_session = session.map(|session| format!("session {session}"));
    let all_sessions = subject.filter(|_| session.is_none()).map(|subject| format!("all {subject}"));
    // Ends sessions of this service for which the provider named no session.
    let unnamed_sessions = subject.map(|subject| format!("any {subject}"));
    [one_session, all_sessions, unnamed_sessions].into_iter().flatten().collect()
}

/// Returns the keys of logouts that end a session of this account.
fn keys_of_account(ProviderAccount { subject, session, .. }: &ProviderAccount) -> Vec<String> {
    match session {
        Some(session) => vec![format!("session {session}"), format!("all {subject}")],
        None => vec![format!("any {subject}")],
    }
}

/// The roles of accounts of the identity provider.
#[derive(Clone, Debug)]
pub struct ProviderRoles {
    /// The provider; accounts of other providers have no role.
    pub issuer: String,
    /// Groups and their roles.
    pub groups: Vec<(String, Role)>,
}

impl ProviderRoles {
    /// Returns the most powerful role of the account's groups.
    fn role_of(&self, account: &ProviderAccount) -> Option<Role> {
        let roles = self.groups.iter().filter(|(group, _)| account.groups.contains(group)).map(|(_, role)| *role);
        // Roles are ordered from the most powerful.
        roles.min().filter(|_| account.issuer == self.issuer)
    }
}

async fn log_sign_in(request: &HttpRequest, deps: &InternalDeps, caller: Caller) -> Result<(), ApiError> {
    audit::log_action(request, deps, &caller, "signIn").await?;
    set_caller(request, caller);
    Ok(())
}

/// Returns the operator of this sign-in, if it is still valid, and records it as the request's caller.
///
/// # Errors
/// The store is unavailable.
pub async fn recognise(
    request: &HttpRequest,
    deps: &InternalDeps,
    sign_in: &SignIn,
) -> Result<Option<Caller>, ApiError> {
    let caller = find_caller(deps, sign_in).await?;
    if let Some(caller) = &caller {
        set_caller(request, caller.clone());
    }
    Ok(caller)
}

async fn find_caller(deps: &InternalDeps, sign_in: &SignIn) -> Result<Option<Caller>, ApiError> {
    match sign_in {
        SignIn::Token(digest) => find_by_digest(deps, *digest).await,
        SignIn::Provider(account) => {
            let Some(role) = deps.provider_roles.as_ref().and_then(|roles| roles.role_of(account)) else {
                return Ok(None);
            };
            for key in keys_of_account(account) {
                let ended_at = deps.store.provider_sessions_ended(account.issuer.clone(), key).await?;
                if ended_at.is_some_and(|at| at >= account.signed_in_at) {
                    return Ok(None);
                }
            }
            Ok(Some(Caller { id: None, subject: Some(account.subject.clone()), name: account.name.clone(), role }))
        }
    }
}

fn set_caller(request: &HttpRequest, caller: Caller) {
    note_operator(request, &caller.signatory().id);
    request.extensions_mut().insert(caller);
}

/// Returns true if an operator with this role may perform an operation.
#[must_use]
pub fn is_allowed(role: Role, operation: &str) -> bool {
    operations().iter().any(|row| row.id == operation && row.roles.contains(&role))
}

/// Performs an operation for the operator found by [`recognise`], with the ids in the request's path and this body.
///
/// # Errors
/// The error that the API would respond with.
pub async fn carry_out(
    request: &HttpRequest,
    operation: &'static str,
    body: Option<ReceivedObject>,
) -> Result<Value, ApiError> {
    let row = operations().into_iter().find(|row| row.id == operation);
    let row = row.ok_or_else(|| ApiError::internal(json!({ "unknown": operation })))?;
    let caller = caller(request)?;
    require_role(request, &caller, operation, row.roles).await?;
    deps(request)?;
    request.extensions_mut().insert(PageBody(body));
    (row.perform)(request.clone(), caller, row.logging).await
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
    fn an_account_has_the_most_powerful_role_of_its_groups() {
        let groups = [("revision", Role::Auditor), ("desk", Role::Support), ("owners", Role::Owner)];
        let groups = groups.map(|(group, role)| (group.to_owned(), role)).into();
        let roles = ProviderRoles { issuer: "https://login.example".to_owned(), groups };
        for (groups, role) in [
            (&["desk", "revision"] as &[&str], Some(Role::Support)),
            (&["owners", "desk"], Some(Role::Owner)),
            (&["staff"], None),
            (&[], None),
        ] {
            assert_eq!(roles.role_of(&account(groups, None)), role, "{groups:?}");
        }
        let other_issuer =
            ProviderAccount { issuer: "https://login.example/".to_owned(), ..account(&["owners"], None) };
        assert_eq!(roles.role_of(&other_issuer), None);
    }

    #[test]
    fn a_logout_ends_the_named_session_or_all_sessions_of_a_person() {
        let ends = |subject, session, account: &ProviderAccount| {
            let keys = logout_keys(subject, session);
            keys_of_account(account).iter().any(|key| keys.contains(key))
        };
        let (named, unnamed) = (account(&[], Some("s1")), account(&[], None));
        assert!(
            ends(Some("asha"), Some("s1"), &named)
                && ends(None, Some("s1"), &named)
                && ends(Some("asha"), None, &named)
        );
        assert!(ends(Some("asha"), Some("s2"), &unnamed) && ends(Some("asha"), None, &unnamed));
        assert!(
            !ends(Some("asha"), Some("s2"), &named)
                && !ends(Some("ravi"), None, &named)
                && !ends(None, Some("asha"), &unnamed)
        );
    }
}
