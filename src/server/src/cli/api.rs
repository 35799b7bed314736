//! Calls to a running service, with errors that help a person.

use std::time::Duration;

use sakshi_client::{Call, Client, Credentials, Error};
use sakshi_outbound::Egress;
use serde::de::DeserializeOwned;
use url::Url;

use super::error::CliError;

/// Timeout of a call.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Error for an operator's token that the service refuses.
const WRONG_TOKEN: &str = "the service does not take this token; give an operator's token, or the admin token of the \
                           service, by --token, SAKSHI_ADMIN_TOKEN or admin.token of the settings";

/// Error for an API key that the service refuses.
const WRONG_KEY: &str = "the service does not take this API key with this app id: both must come from the service \
                         that --base names, and the app must belong to the client of the key";

/// A listener of a running service.
#[derive(Clone)]
pub(crate) struct Api(Client);

impl Api {
    pub(crate) fn new(base: Url, credentials: Credentials, egress: &Egress) -> Result<Self, CliError> {
        // Without https no root certificates are needed, and some images have none.
        let builder =
            egress.http_client(base.scheme() != "http").map_err(|error| CliError::Local(error.to_string()))?;
        let http = builder.timeout(TIMEOUT).build().map_err(|error| CliError::Unreachable(error.to_string()))?;
        Ok(Self(Client::new(http, base, credentials)))
    }

    /// Sends a call and returns the response.
    pub(crate) async fn send<T: DeserializeOwned>(&self, call: Call<T>) -> Result<T, CliError> {
        self.0.send(call).await.map_err(|error| self.explain(error))
    }

    /// Sends a call and ignores the body of the response.
    pub(crate) async fn send_and_discard<T>(&self, call: Call<T>) -> Result<(), CliError> {
        self.0.send_raw(call).await.map(drop).map_err(|error| self.explain(error))
    }

    /// Adds hints for the person at the command line to an error.
    fn explain(&self, error: Error) -> CliError {
        match error {
            Error::Unreachable(reason) => CliError::Unreachable(format!("{reason}; {}", self.address_hint())),
            Error::Refused(refusal) if refusal.status == 401 => {
                let is_client = matches!(self.0.credentials(), Credentials::Client { .. });
                CliError::Refused(if is_client { WRONG_KEY } else { WRONG_TOKEN }.to_owned())
            }
            Error::Refused(refusal) if refusal.status == 404 => CliError::NotFound(refusal.to_string()),
            other => CliError::Refused(other.to_string()),
        }
    }

    /// Returns a hint with the options and variables that set the address.
    fn address_hint(&self) -> &'static str {
        match self.0.credentials() {
            Credentials::Client { .. } => "give its public address by --base or SAKSHI_URL",
            _ => "give the address of its internal listener by --url (trigger: --internal) or SAKSHI_ADMIN_URL",
        }
    }

    /// Sends a call and returns the whole response as JSON, for the developers' commands.
    #[cfg(feature = "sandbox")]
    pub(crate) async fn json<T>(&self, call: Call<T>) -> Result<serde_json::Value, CliError> {
        self.send(call.read_as()).await
    }
}
