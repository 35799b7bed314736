//! The sandbox in a binary that is built without it: nothing. The sandbox profile does not start.

use std::convert::Infallible;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::web::ServiceConfig;
use sakshi_domain::clock::Clock;
use sakshi_domain::profile::Profile;
use sakshi_store::Store;
use url::Url;

use crate::settings::Settings;

/// The `iss` of an issuer that is not there.
pub const ISSUER: &str = "";

/// This binary cannot be a sandbox.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("this binary is built without the sandbox; choose the stage or the production profile")]
pub struct SetupError;

/// The same, for the issuer's key.
pub type IssuerError = SetupError;

/// There is none.
#[derive(Debug)]
pub struct Issuer(Infallible);

impl Issuer {
    /// Never called.
    #[must_use]
    pub const fn jwks_json(&self) -> &str {
        match self.0 {}
    }
}

/// There is none.
#[derive(Clone, Debug)]
pub struct StandIns(Infallible);

impl StandIns {
    /// None, in every profile but the sandbox.
    ///
    /// # Errors
    /// In the sandbox profile.
    pub fn of(settings: &Settings, _: Option<&Arc<Issuer>>, _: (&str, SocketAddr), _: &Arc<dyn Clock>) -> Result<Option<Self>, SetupError> {
        if settings.profile == Profile::Sandbox { Err(SetupError) } else { Ok(None) }
    }

    /// Never called.
    pub fn configure_pages(self, _: &mut ServiceConfig) {
        match self.0 {}
    }

    /// Never called.
    pub fn configure_orders(self, _: &mut ServiceConfig) {
        match self.0 {}
    }
}

/// # Errors
/// Always.
pub const fn new_issuer_key() -> Result<Vec<u8>, IssuerError> {
    Err(SetupError)
}

/// # Errors
/// Always.
pub const fn issuer(_: &[u8]) -> Result<Issuer, IssuerError> {
    Err(SetupError)
}

/// There is no stand-in.
#[must_use]
pub const fn upstream_url(_: SocketAddr, _: &str) -> Option<Url> {
    None
}

/// Makes nobody.
///
/// # Errors
/// Never.
pub async fn announce_first_client(_: &dyn Store, _: &str, _: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    Ok(())
}
