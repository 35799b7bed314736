//! The state of the sandbox identity app, and its setup.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use sakshi_domain::clock::Clock;
use thiserror::Error;
use url::Url;

use crate::http::client;
use crate::issuer::{HolderKeys, SandboxIssuer};
use crate::keys::KeyError;

/// Time limit for the service's answer to its callback.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(20);

/// The error when the app cannot be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The service's public base is not an http(s) URL.
    #[error("the public base of the service is not an http(s) URL")]
    PublicBase,
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built: {0}")]
    Http(#[source] reqwest::Error),
    /// The key of the simulated phone could not be generated.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// The app's state: an issuer, the keys of simulated phones, and the service to which it answers.
pub struct SandboxApp {
    pub(super) issuer: Arc<SandboxIssuer>,
    /// Keys of the residents' phones.
    pub(super) holders: HolderKeys,
    /// Public URL of the service.
    pub(super) public_base: Url,
    pub(super) http: reqwest::Client,
    pub(super) clock: Arc<dyn Clock>,
    /// Delay before an answer, for the time that a person takes.
    pub(super) pause: Duration,
}

impl SandboxApp {
    /// Creates an app whose credentials come from `issuer`. The app sends answers only to the service at
    /// `public_base_url`, after a `pause` for the time that a person takes.
    ///
    /// # Errors
    /// [`SetupError::PublicBase`] when the base is not an http(s) URL; [`SetupError::Http`] when the client cannot be
    /// built.
    pub fn new(
        issuer: Arc<SandboxIssuer>,
        public_base_url: &str,
        clock: Arc<dyn Clock>,
        pause: Duration,
    ) -> Result<Self, SetupError> {
        let public_base = Url::parse(public_base_url).map_err(|_| SetupError::PublicBase)?;
        if !matches!(public_base.scheme(), "http" | "https") {
            return Err(SetupError::PublicBase);
        }
        // Phones do not reuse connections either. A reused connection may be closed by the service at the same moment.
        let http = client(public_base.as_str(), CALLBACK_TIMEOUT)
            .pool_max_idle_per_host(0)
            .build()
            .map_err(SetupError::Http)?;
        Ok(Self { issuer, holders: HolderKeys::default(), public_base, http, clock, pause })
    }
}

impl fmt::Debug for SandboxApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SandboxApp({})", self.public_base)
    }
}
