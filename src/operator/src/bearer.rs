//! Who may use the internal listener: the operator, by the admin token, and connectors, by theirs.
//! Neither token is good for the other's routes.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{FromRequest, HttpMessage as _, HttpRequest, web};
use aws_lc_rs::digest::{SHA256, digest};
use sakshi_web::error::ApiError;
use secrecy::{ExposeSecret, SecretString};
use subtle::ConstantTimeEq;

use super::InternalDeps;
use super::arguments::deps;

/// Proof that a request carries the admin token, with what its handler works on.
#[derive(Debug)]
pub struct Operator(pub(super) web::Data<InternalDeps>);

/// Proof that a request carries the connectors' token, with what its handler works on.
#[derive(Debug)]
pub struct Connector(pub(super) web::Data<InternalDeps>);

/// Who asks, in the extensions of a request that carries the admin token.
#[derive(Clone, Debug)]
pub(super) struct Who {
    /// None for the token of the settings.
    pub(super) id: Option<String>,
    pub(super) name: String,
}

impl FromRequest for Operator {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let authorized = authorize(request, |deps| &deps.admin_token);
        if authorized.is_ok() {
            request.extensions_mut().insert(Who { id: None, name: "settings".to_owned() });
        }
        ready(authorized.map(Self))
    }
}

impl FromRequest for Connector {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(authorize(request, |deps| &deps.connector_token).map(Self))
    }
}

fn authorize(request: &HttpRequest, expected: fn(&InternalDeps) -> &SecretString) -> Result<web::Data<InternalDeps>, ApiError> {
    let deps = deps(request)?;
    let header = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let (scheme, token) = header.split_once(' ').unwrap_or_default();
    let expected = expected(&deps).expose_secret();
    if scheme.eq_ignore_ascii_case("bearer") && !expected.is_empty() && same(token.trim(), expected) {
        return Ok(deps);
    }
    Err(ApiError::BearerUnauthorized)
}

/// Compares digests in constant time, so that neither length nor content can be measured.
fn same(given: &str, expected: &str) -> bool {
    let given = digest(&SHA256, given.as_bytes());
    let expected = digest(&SHA256, expected.as_bytes());
    given.as_ref().ct_eq(expected.as_ref()).into()
}
