//! The state that all sandbox upstreams share, and how it is set up.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use sakshi_domain::clock::Clock;
use secrecy::SecretString;
use thiserror::Error;
use url::Url;

use super::pan::{PanFileError, PanRecords};
use super::reporter::Reporter;
use super::store::OrderStore;

/// The settings of the upstreams.
#[derive(Clone, Debug)]
pub struct SandboxUpstreamsOptions {
    /// The public base URL of the service, under which browsers reach the pages.
    pub public_base: String,
    /// The base URL of the service's internal listener, which gets the reports.
    pub internal_base: String,
    /// The token that reports carry.
    pub connector_token: SecretString,
    /// The token that orders must carry.
    pub upstream_token: SecretString,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// A file of known PANs in the form of `assets/pan.toml`, which is the default.
    pub pan_file: Option<PathBuf>,
}

/// Why the upstreams cannot be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A base is not an http(s) URL.
    #[error("the {0} base of the service is not an http(s) URL")]
    Base(&'static str),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built: {0}")]
    Http(#[source] reqwest::Error),
    /// The file of PANs cannot be used.
    #[error(transparent)]
    PanFile(#[from] PanFileError),
}

/// The state of all sandbox upstreams.
pub struct SandboxUpstreams {
    public_base: Url,
    pub(super) upstream_token: SecretString,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) orders: OrderStore,
    pub(super) reporter: Reporter,
    pub(super) pans: PanRecords,
}

impl SandboxUpstreams {
    /// Upstreams without orders.
    ///
    /// # Errors
    /// A base is no http(s) URL; the file of PANs cannot be used; a library failed.
    pub fn new(options: SandboxUpstreamsOptions) -> Result<Self, SetupError> {
        let SandboxUpstreamsOptions { public_base, internal_base, connector_token, upstream_token, clock, pan_file } = options;
        let pans = pan_file.map_or_else(PanRecords::built_in, |path| PanRecords::read(&path))?;
        let reporter = Reporter::new(base(&internal_base, "internal")?, connector_token).map_err(SetupError::Http)?;
        Ok(Self { public_base: base(&public_base, "public")?, upstream_token, clock, orders: OrderStore::default(), reporter, pans })
    }

    /// The absolute URL of a page, for answers to orders.
    pub(super) fn page_url(&self, segments: &[&str]) -> String {
        let mut url = self.public_base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("sandbox").extend(segments);
        }
        url.into()
    }
}

impl fmt::Debug for SandboxUpstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SandboxUpstreams({})", self.public_base)
    }
}

fn base(text: &str, which: &'static str) -> Result<Url, SetupError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or(SetupError::Base(which))
}
