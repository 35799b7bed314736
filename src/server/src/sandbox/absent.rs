//! Uninhabited sandbox types for a binary without the sandbox. This code is never reached, because the settings refuse
//! the sandbox profile.

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::web::ServiceConfig;
use sakshi_domain::clock::Clock;
use sakshi_outbound::client::WebhookClient;
use sakshi_store::Store;

use crate::settings::Settings;

pub const ISSUER: &str = "";

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("this binary is built without the sandbox")]
pub struct SetupError;

pub type IssuerError = SetupError;

#[derive(Debug)]
pub enum Issuer {}

impl Issuer {
    pub const fn jwks_json(&self) -> &str {
        match *self {}
    }
}

#[derive(Clone, Debug)]
pub enum StandIns {}

impl StandIns {
    pub const fn build(
        _: &Settings,
        _: Option<&Arc<Issuer>>,
        _: (&str, SocketAddr),
        _: &Arc<dyn Clock>,
        _: &Arc<WebhookClient>,
    ) -> Result<Option<Self>, SetupError> {
        Ok(None)
    }

    pub fn configure_pages(self, _: &mut ServiceConfig) {
        match self {}
    }

    pub fn configure_orders(self, _: &mut ServiceConfig) {
        match self {}
    }
}

pub const fn new_issuer_key() -> Result<Vec<u8>, IssuerError> {
    Err(SetupError)
}

pub const fn issuer(_: &[u8]) -> Result<Issuer, IssuerError> {
    Err(SetupError)
}

pub async fn announce_first_client(_: &Store, _: &str, _: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    Ok(())
}
