//! Who may use the internal listener: operators, each by a token of their own or by the admin token of the settings, and
//! connectors, by theirs. None is good for the other's routes.

use std::collections::BTreeMap;
use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, web};
use aws_lc_rs::digest::{SHA256, digest};
use futures_util::future::LocalBoxFuture;
use sakshi_domain::flow::report_kind::ReportKind;
use sakshi_domain::ids::OperatorId;
use sakshi_domain::operator::{OperatorRecord, Role};
use sakshi_service::operator_token::OperatorToken;
use sakshi_web::error::ApiError;
use sakshi_web::subject::note_operator;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

use super::InternalDeps;
use super::arguments::deps;
use super::audit;
use super::failed_logins::{Login, refuse};

/// The name of who uses the token of the settings.
const SETTINGS: &str = "settings";

/// Proof that a request was admitted as an operator's, with what its handler works on.
#[derive(Debug)]
pub struct Operator(pub(super) web::Data<InternalDeps>);

/// Proof that a request carries the connectors' token, with what its handler works on.
#[derive(Debug)]
pub struct Connector(pub(super) web::Data<InternalDeps>);

/// Proof that a request carries the token of an operator, whatever the role, or of a connector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insider;

/// Who asks, in the extensions of a request that was admitted.
#[derive(Clone, Debug)]
pub(super) struct Who {
    /// None for the token of the settings.
    pub(super) id: Option<OperatorId>,
    pub(super) name: String,
    role: Role,
}

/// Finds out who asks, before anything else of the request is read, and whether they may do this. The audit log has each refusal of an
/// operator.
pub(super) async fn admit(request: &HttpRequest, operation: &'static str, roles: &[Role]) -> Result<Who, ApiError> {
    let who = identify(request).await?;
    if !roles.contains(&who.role) {
        tracing::warn!(operator.id = who.id.as_ref().map(OperatorId::as_str), operator.role = who.role.as_str(), "refused by role");
        audit::refused(request, &who, operation).await?;
        return Err(ApiError::Forbidden);
    }
    Ok(who)
}

/// Returns the operator who asks; none for the token of the settings.
pub(super) fn operator_id(request: &HttpRequest) -> Option<OperatorId> {
    request.extensions().get::<Who>().and_then(|who| who.id.clone())
}

/// Returns true if an owner asks.
pub(super) fn is_owner(request: &HttpRequest) -> bool {
    request.extensions().get::<Who>().is_some_and(|who| who.role == Role::Owner)
}

/// A revocation counts at once: nothing is remembered here.
async fn identify(request: &HttpRequest) -> Result<Who, ApiError> {
    let deps = deps(request)?;
    let token = bearer(request).ok_or(ApiError::BearerUnauthorized)?;
    let who = if is(token, &deps.admin_token) {
        Who { id: None, name: SETTINGS.to_owned(), role: Role::Owner }
    } else {
        let found = match OperatorToken::parse(token) {
            Some(token) => deps.store.find_operator(token.digest()).await?,
            None => None,
        };
        let found = found.filter(|operator| operator.is_valid(deps.clock.now()));
        let OperatorRecord { operator_id, name, role, .. } = found.ok_or_else(|| refuse(&deps, request, Login::Operator))?;
        Who { id: Some(operator_id), name, role }
    };
    note_operator(request, who.id.as_ref().map_or(SETTINGS, OperatorId::as_str));
    request.extensions_mut().insert(who.clone());
    Ok(who)
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
    /// For the kinds of report that have none of their own.
    pub shared: SecretString,
    /// A token that is good for one kind of report alone, and the only one that is good for it.
    pub own: BTreeMap<ReportKind, SecretString>,
}

impl ConnectorTokens {
    /// The token for a kind of report.
    #[must_use]
    pub fn of(&self, kind: ReportKind) -> &SecretString {
        self.own.get(&kind).unwrap_or(&self.shared)
    }

    /// Whether a token is good for a kind of report; for one that there is not, any of the tokens is.
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

/// Whether this is a token of the settings; without one, nothing is.
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
