//! Connections of commands to a listener: address, token and certificates.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use sakshi_client::Credentials;
use sakshi_outbound::{Egress, EgressOptions};
use secrecy::SecretString;
use url::Url;
use zeroize::Zeroizing;

use super::api::Api;
use super::error::CliError;
use crate::settings::{Sources, internal_endpoint};

/// Certificates for a listener that speaks TLS.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Certificates {
    /// PEM of the authority that issued the listener's certificate, in addition to the system's. Default: without
    /// --url, exactly the certificate that the settings name.
    #[arg(long, global = true, value_name = "FILE", env = "SAKSHI_ADMIN_CA")]
    pub(super) ca: Option<PathBuf>,
    /// PEM of a client certificate, with its chain.
    #[arg(long, global = true, value_name = "FILE", env = "SAKSHI_ADMIN_CLIENT_CERT")]
    pub(super) client_cert: Option<PathBuf>,
    /// PEM of the client certificate's private key.
    #[arg(long, global = true, value_name = "FILE", env = "SAKSHI_ADMIN_CLIENT_KEY")]
    pub(super) client_key: Option<PathBuf>,
}

/// Address of the internal listener, and the operator's token.
#[derive(Args, Clone, Debug)]
pub(crate) struct Access {
    /// URL of the internal listener. Default: `server.internal_addr` of the settings.
    #[arg(long, global = true, value_name = "URL", env = "SAKSHI_ADMIN_URL")]
    url: Option<Url>,
    /// Token of an operator. Default: `admin.token` of the settings.
    #[arg(long, global = true, value_name = "TOKEN", env = "SAKSHI_ADMIN_TOKEN", hide_env_values = true)]
    token: Option<SecretString>,
    #[command(flatten)]
    certificates: Certificates,
}

impl Access {
    /// Connects to the listener's API. Missing options come from the settings.
    ///
    /// # Errors
    /// The settings are invalid, or a file cannot be read or used.
    pub(crate) fn api(&self, sources: &Sources) -> Result<Api, CliError> {
        let (url, token, certificate) = match (&self.url, &self.token) {
            (Some(url), Some(token)) => (url.clone(), token.clone(), None),
            (url, token) => {
                let internal = internal_endpoint(sources, url.as_ref())?;
                (internal.url, token.clone().unwrap_or(internal.admin_token), internal.certificate)
            }
        };
        Api::new(url, Credentials::Bearer(token), &self.certificates.egress(certificate.as_deref())?)
    }
}

impl Certificates {
    /// Builds the network configuration for requests to a listener. Without `--ca`, only `listener_certificate` is
    /// trusted, if the settings name it.
    ///
    /// # Errors
    /// A file cannot be read or used.
    pub(crate) fn egress(&self, listener_certificate: Option<&Path>) -> Result<Egress, CliError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|error| CliError::Local(format!("{} cannot be read: {error}", path.display())))
        };
        let file = |path: &Option<PathBuf>| path.as_deref().map(read).transpose();
        let (chain, key) = (file(&self.client_cert)?, file(&self.client_key)?);
        if chain.is_some() != key.is_some() {
            return Err(CliError::Local("--client-cert and --client-key go together".to_owned()));
        }
        let options = EgressOptions {
            roots_pem: file(&self.ca)?,
            identity_pem: chain.zip(key.map(Zeroizing::new)),
            pinned_pem: listener_certificate.filter(|_| self.ca.is_none()).map(read).transpose()?,
            ..EgressOptions::default()
        };
        Egress::new(&options).map_err(|error| CliError::Local(error.to_string()))
    }
}
