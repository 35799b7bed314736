//! Authentication on the internal listener. Operators have tokens of their own or the admin token of the settings;
//! connectors have theirs. Neither kind is valid for the other's routes.

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

/// Proof that a request was admitted as an operator's, with its handler's dependencies.
#[derive(Debug)]
pub struct Operator(pub(super) web::Data<InternalDeps>);

/// Proof that a request carries a connector's token, with its handler's dependencies.
#[derive(Debug)]
pub struct Connector(pub(super) web::Data<InternalDeps>);

/// Proof that a request carries the token of an operator of any role, or of a connector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insider;

/// The operator who calls, in the extensions of an admitted request.
#[derive(Clone, Debug)]
pub struct Who {
    /// Id; `None` for the token of the settings, and for accounts of the identity provider.
    pub(super) id: Option<OperatorId>,
    /// Subject at the identity provider.
    pub(super) subject: Option<String>,
    /// The name.
    pub name: String,
    /// The role.
    pub role: Role,
}

impl Who {
    /// Returns the operator's name for records. A subject of the provider cannot look like an id of this service.
    #[must_use]
    pub fn signatory(&self) -> Signatory {
        let subject = || self.subject.as_ref().map(|subject| format!("sub:{subject}"));
        let id = self.id.as_ref().map(|id| id.as_str().to_owned()).or_else(subject);
        Signatory { id: id.unwrap_or_else(|| SETTINGS.to_owned()), name: self.name.clone() }
    }
}

/// Authenticates the caller before anything else of the request is read, and checks the role.
pub(super) async fn admit(request: &HttpRequest, operation: &'static str, roles: &[Role]) -> Result<Who, ApiError> {
    let who = identify(request).await?;
    allow(request, &who, operation, roles).await?;
    Ok(who)
}

/// Refuses a caller without one of the roles. Each refusal of an operator is in the audit log.
pub(super) async fn allow(
    request: &HttpRequest,
    who: &Who,
    operation: &'static str,
    roles: &[Role],
) -> Result<(), ApiError> {
    if !roles.contains(&who.role) {
        tracing::warn!(
            operator.id = who.id.as_ref().map(OperatorId::as_str),
            operator.role = who.role.as_str(),
            "refused by role"
        );
        audit::refused(request, who, operation).await?;
        return Err(ApiError::Forbidden);
    }
    Ok(())
}

/// Returns the caller, after the admission.
pub(super) fn who(request: &HttpRequest) -> Result<Who, ApiError> {
    request.extensions().get::<Who>().cloned().ok_or(ApiError::BearerUnauthorized)
}

/// Returns the id of the calling operator; `None` for the token of the settings.
pub(super) fn operator_id(request: &HttpRequest) -> Option<OperatorId> {
    request.extensions().get::<Who>().and_then(|who| who.id.clone())
}

/// Returns true if the caller is an owner.
pub(super) fn is_owner(request: &HttpRequest) -> bool {
    who(request).is_ok_and(|who| who.role == Role::Owner)
}

/// Authenticates the caller. A revocation takes effect at once: nothing is cached here.
async fn identify(request: &HttpRequest) -> Result<Who, ApiError> {
    let deps = deps(request)?;
    let token = bearer(request).ok_or(ApiError::BearerUnauthorized)?;
    let who = by_token(&deps, token).await?.ok_or_else(|| refuse(&deps, request, Login::Operator))?;
    note_operator(request, who.id.as_ref().map_or(SETTINGS, OperatorId::as_str));
    request.extensions_mut().insert(who.clone());
    Ok(who)
}

/// Returns the operator with this token, if it is valid.
pub(super) async fn by_token(deps: &InternalDeps, token: &str) -> Result<Option<Who>, ApiError> {
    if is(token, &deps.admin_token) {
        return Ok(Some(of_settings()));
    }
    match OperatorToken::parse(token) {
        Some(token) => with_digest(deps, token.digest()).await,
        None => Ok(None),
    }
}

/// Does the same by the digest of the token.
pub(super) async fn by_digest(deps: &InternalDeps, token: [u8; 32]) -> Result<Option<Who>, ApiError> {
    let expected = deps.admin_token.expose_secret();
    let is_of_settings: bool = digest(&SHA256, expected.as_bytes()).as_ref().ct_eq(&token).into();
    if is_of_settings && !expected.is_empty() {
        return Ok(Some(of_settings()));
    }
    with_digest(deps, KeyDigest(token)).await
}

fn of_settings() -> Who {
    Who { id: None, subject: None, name: SETTINGS.to_owned(), role: Role::Owner }
}

async fn with_digest(deps: &InternalDeps, digest: KeyDigest) -> Result<Option<Who>, ApiError> {
    let found = deps.store.find_operator(digest).await?.filter(|operator| operator.is_valid(deps.clock.now()));
    Ok(found.map(|OperatorRecord { operator_id, name, role, .. }| Who {
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
        let is_admitted = request.extensions().contains::<Who>();
        ready(if is_admitted { deps(request).map(Self) } else { Err(ApiError::BearerUnauthorized) })
    }
}

impl FromRequest for Connector {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let kind = request.match_info().get("kind").and_then(|kind| kind.parse().ok());
        let authorized = deps(request).and_then(|deps| match bearer(request) {
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
            if !bearer(&request).is_some_and(|token| connectors.admit(token, None)) {
                identify(&request).await?;
            }
            Ok(Self)
        })
    }
}

/// The tokens of connectors.
#[derive(Clone, Debug, Default)]
pub struct ConnectorTokens {
    /// Token for the kinds of report without one of their own.
    pub shared: SecretString,
    /// Tokens by kind of report; each is the only one that is valid for its kind.
    pub own: BTreeMap<ReportKind, SecretString>,
}

impl ConnectorTokens {
    /// Returns the token for a kind of report.
    #[must_use]
    pub fn of(&self, kind: ReportKind) -> &SecretString {
        self.own.get(&kind).unwrap_or(&self.shared)
    }

    /// Returns true if a token is valid for a kind of report. For an unknown kind, any of the tokens is.
    fn admit(&self, token: &str, kind: Option<ReportKind>) -> bool {
        match kind {
            Some(kind) => is(token, self.of(kind)),
            None => ReportKind::ALL.iter().any(|kind| is(token, self.of(*kind))),
        }
    }
}

fn bearer(request: &HttpRequest) -> Option<&str> {
    let (scheme, token) = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns true if this is a token of the settings; without one, no token matches.
fn is(token: &str, expected: &SecretString) -> bool {
    let expected = expected.expose_secret();
    !expected.is_empty() && same(token, expected)
}

/// Compares digests in constant time, so that neither length nor content can be measured.
fn same(given: &str, expected: &str) -> bool {
    let given = digest(&SHA256, given.as_bytes());
    let expected = digest(&SHA256, expected.as_bytes());
    given.as_ref().ct_eq(expected.as_ref()).into()
}
