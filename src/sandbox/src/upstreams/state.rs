//! The shared state of all sandbox upstreams, and its setup.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use sakshi_domain::clock::Clock;
use sakshi_domain::flow::report_kind::ReportKind;
use secrecy::SecretString;
use thiserror::Error;
use url::Url;

use super::checks::KnownNumbers;
use super::reporter::Reporter;
use super::store::OrderStore;

/// The settings of the upstreams.
#[derive(Clone, Debug)]
pub struct SandboxUpstreamsOptions {
    /// The public base URL of the service, under which browsers reach the pages.
    pub public_base: String,
    /// The base URL of the service's listener that gets the reports.
    pub internal_base: String,
    /// The tokens that reports carry.
    pub connector_tokens: BTreeMap<ReportKind, SecretString>,
    /// The token that orders must carry.
    pub upstream_token: SecretString,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
}

/// The error when the upstreams cannot be set up.
#[derive(Debug, Error)]
pub enum SetupError {
    /// A base is not an http(s) URL.
    #[error("the {0} base of the service is not an http(s) URL")]
    Base(&'static str),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built: {0}")]
    Http(#[source] reqwest::Error),
    /// The file of known numbers cannot be read.
    #[error("assets/checks.toml cannot be read: {0}")]
    Numbers(#[from] toml::de::Error),
}

/// The state of all sandbox upstreams.
pub struct SandboxUpstreams {
    public_base: Url,
    pub(super) upstream_token: SecretString,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) orders: OrderStore,
    pub(super) reporter: Reporter,
    pub(super) numbers: KnownNumbers,
}

impl SandboxUpstreams {
    /// Creates upstreams without orders.
    ///
    /// # Errors
    /// A base is not an http(s) URL; the file of numbers cannot be read; a library failed.
    pub fn new(options: SandboxUpstreamsOptions) -> Result<Self, SetupError> {
        let SandboxUpstreamsOptions { public_base, internal_base, connector_tokens, upstream_token, clock } = options;
        let numbers = KnownNumbers::built_in()?;
        let internal_base = parse_base(&internal_base, "internal")?;
        let reporter = Reporter::new(internal_base, connector_tokens).map_err(SetupError::Http)?;
        Ok(Self {
            public_base: parse_base(&public_base, "public")?,
            upstream_token,
            clock,
            orders: OrderStore::default(),
            reporter,
            numbers,
        })
    }

    /// Returns the absolute URL of a page, for answers to orders.
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

/// Parses a base URL; `name` names it in the error.
fn parse_base(text: &str, name: &'static str) -> Result<Url, SetupError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or(SetupError::Base(name))
}
