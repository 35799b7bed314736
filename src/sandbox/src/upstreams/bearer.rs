//! The token that orders carry: a handler that takes a [`Service`] cannot forget to ask for it.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use secrecy::ExposeSecret as _;

use super::SandboxUpstreams;
use super::error::FlowError;

/// A caller that knows the upstreams' token.
pub(super) struct Service;

impl FromRequest for Service {
    type Error = FlowError;
    type Future = Ready<Result<Self, FlowError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(if knows_the_token(request) { Ok(Self) } else { Err(FlowError::Unauthorized) })
    }
}

fn knows_the_token(request: &HttpRequest) -> bool {
    let Some(state) = request.app_data::<Data<SandboxUpstreams>>() else { return false };
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, token)) = given.and_then(|given| given.split_once(' ')) else { return false };
    // Over digests, the time of a comparison tells nothing of the token's length either.
    let expected = digest(&SHA256, state.upstream_token.expose_secret().as_bytes());
    let given = digest(&SHA256, token.trim().as_bytes());
    scheme.eq_ignore_ascii_case("bearer") && verify_slices_are_equal(given.as_ref(), expected.as_ref()).is_ok()
}
