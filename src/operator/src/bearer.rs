//! Authentication on the internal listener. Operators use a personal token or the admin token of the settings.
//! Connectors use connector tokens. No token is valid for both kinds of routes.

use std::collections::BTreeMap;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, web};
use aws_lc_rs::digest::{SHA256, digest};
use futures_util::future::LocalBoxFuture;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::{OperatorRecord, Role, SETTINGS, Signatory};
use sakshi_domain::tenancy::KeyDigest;
use sakshi_service::operator_token::OperatorToken;
use sakshi_web::error::ApiError;
use sakshi_web::subject::note_operator;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

use super::InternalDeps;
use super::arguments::deps;
use super::audit;
use super::failed_logins::{Login, refuse};

/// Proof that an operator was authenticated, with the dependencies of the handler.
#[derive(Debug)]
pub struct Operator(pub(super) web::Data<InternalDeps>);

/// Proof that a request has a connector's token, with the dependencies of the handler.
#[derive(Debug)]
pub struct Connector(pub(super) web::Data<InternalDeps>);

/// Proof that a request has the token of an operator of any role, or of a connector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insider;

/// The authenticated operator, in the extensions of the request.
#[derive(Clone, Debug)]
pub struct Caller {
    /// Id of the operator; `None` for the admin token and for accounts of the identity provider.
    pub(super) id: Option<OperatorId>,
    /// Subject at the identity provider.
    pub(super) subject: Option<String>,
    /// Name of the operator.
    pub name: String,
    /// Role of the operator.
    pub role: Role,
}

impl Caller {
    /// Returns the operator as stored in records. A prefix distinguishes the provider's subjects from operator ids.
    #[must_use]
    pub fn signatory(&self) -> Signatory {
        let subject = || self.subject.as_ref().map(|subject| format!("sub:{subject}"));
        let id = self.id.as_ref().map(|id| id.as_str().to_owned()).or_else(subject);
        Signatory { id: id.unwrap_or_else(|| SETTINGS.to_owned()), name: self.name.clone() }
    }
}

/// Authenticates the caller and checks the role, before anything else of the request is read.
pub(super) async fn admit(request: &HttpRequest, operation: &'static str, roles: &[Role]) -> Result<Caller, ApiError> {
    let caller = identify(request).await?;
    require_role(request, &caller, operation, roles).await?;
    Ok(caller)
}

/// Refuses a caller whose role is not one of `roles`, and writes the refusal to the audit log.
pub(super) async fn require_role(
    request: &HttpRequest,
    caller: &Caller,
    operation: &'static str,
    roles: &[Role],
) -> Result<(), ApiError> {
    if !roles.contains(&caller.role) {
        tracing::warn!(
            operator.id = caller.id.as_ref().map(OperatorId::as_str),
            operator.role = caller.role.as_str(),
            "refused by role"
        );
        audit::log_refusal(request, caller, operation).await?;
        return Err(ApiError::Forbidden);
    }
    Ok(())
}

/// Returns the authenticated caller.
pub(super) fn caller(request: &HttpRequest) -> Result<Caller, ApiError> {
    request.extensions().get::<Caller>().cloned().ok_or(ApiError::BearerUnauthorized)
}

/// Returns the id of the caller; `None` for the admin token of the settings.
pub(super) fn operator_id(request: &HttpRequest) -> Option<OperatorId> {
    request.extensions().get::<Caller>().and_then(|caller| caller.id.clone())
}

/// Returns true if the caller is an owner.
pub(super) fn is_owner(request: &HttpRequest) -> bool {
    caller(request).is_ok_and(|caller| caller.role == Role::Owner)
}

/// Authenticates the caller. Nothing is cached, so a revocation is effective at once.
async fn identify(request: &HttpRequest) -> Result<Caller, ApiError> {
    let deps = deps(request)?;
    let token = bearer_token(request).ok_or(ApiError::BearerUnauthorized)?;
    let caller = find_by_token(&deps, token).await?.ok_or_else(|| refuse(&deps, request, Login::Operator))?;
    note_operator(request, caller.id.as_ref().map_or(SETTINGS, OperatorId::as_str));
    request.extensions_mut().insert(caller.clone());
    Ok(caller)
}

/// Returns the operator with this token, if it is valid.
pub(super) async fn find_by_token(deps: &InternalDeps, token: &str) -> Result<Option<Caller>, ApiError> {
    if matches_secret(token, &deps.admin_token) {
        return Ok(Some(settings_caller()));
    }
    match OperatorToken::parse(token) {
        Some(token) => find_operator(deps, token.digest()).await,
        None => Ok(None),
    }
}

/// Returns the operator whose token has this digest, if it is valid.
pub(super) async fn find_by_digest(deps: &InternalDeps, token: [u8; 32]) -> Result<Option<Caller>, ApiError> {
    let expected = deps.admin_token.expose_secret();
    let is_admin_token: bool = digest(&SHA256, expected.as_bytes()).as_ref().ct_eq(&token).into();
    if is_admin_token && !expected.is_empty() {
        return Ok(Some(settings_caller()));
    }
    find_operator(deps, KeyDigest(token)).await
}

fn settings_caller() -> Caller {
    Caller { id: None, subject: None, name: SETTINGS.to_owned(), role: Role::Owner }
}

async fn find_operator(deps: &InternalDeps, digest: KeyDigest) -> Result<Option<Caller>, ApiError> {
    let record = deps.store.find_operator(digest).await?.filter(|operator| operator.is_valid(deps.clock.now()));
    Ok(record.map(|OperatorRecord { operator_id, name, role, .. }| Caller {
        id: Some(operator_id),
        subject: None,
        name,
        role,
    }))
}

impl FromRequest for Operator {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let is_admitted = request.extensions().contains::<Caller>();
        ready(if is_admitted { deps(request).map(Self) } else { Err(ApiError::BearerUnauthorized) })
    }
}

impl FromRequest for Connector {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let kind = request.match_info().get("kind").and_then(|kind| kind.parse().ok());
        let authorized = deps(request).and_then(|deps| match bearer_token(request) {
            Some(token) if deps.connector_tokens.admit(token, kind) => Ok(Self(deps)),
            Some(_) => Err(refuse(&deps, request, Login::Connector)),
            None => Err(ApiError::BearerUnauthorized),
        });
        ready(authorized)
    }
}

impl FromRequest for Insider {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move {
            let connectors = &deps(&request)?.connector_tokens;
            if !bearer_token(&request).is_some_and(|token| connectors.admit(token, None)) {
                identify(&request).await?;
            }
            Ok(Self)
        })
    }
}

/// The tokens of connectors.
#[derive(Clone, Debug, Default)]
pub struct ConnectorTokens {
    /// Token for the kinds of report without their own token.
    pub shared: SecretString,
    /// Tokens by kind of report. For these kinds, the shared token is not valid.
    pub per_flow: BTreeMap<ReportKind, SecretString>,
}

impl ConnectorTokens {
    /// Returns the token for a kind of report.
    #[must_use]
    pub fn token_for(&self, kind: ReportKind) -> &SecretString {
        self.per_flow.get(&kind).unwrap_or(&self.shared)
    }

    /// Returns true if a token is valid for a kind of report. For an unknown kind, any connector token is valid.
    fn admit(&self, token: &str, kind: Option<ReportKind>) -> bool {
        match kind {
            Some(kind) => matches_secret(token, self.token_for(kind)),
            None => ReportKind::ALL.iter().any(|kind| matches_secret(token, self.token_for(*kind))),
        }
    }
}

fn bearer_token(request: &HttpRequest) -> Option<&str> {
    let (scheme, token) = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns true if a token equals a secret of the settings. An empty secret matches no token.
fn matches_secret(token: &str, expected: &SecretString) -> bool {
    let expected = expected.expose_secret();
    !expected.is_empty() && equal_in_constant_time(token, expected)
}

/// Compares digests in constant time, so that neither length nor content can be measured.
fn equal_in_constant_time(token: &str, expected: &str) -> bool {
    let token = digest(&SHA256, token.as_bytes());
    let expected = digest(&SHA256, expected.as_bytes());
    token.as_ref().ct_eq(expected.as_ref()).into()
}
