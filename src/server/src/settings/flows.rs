//! `[upstreams]` and `[flows]`: where flows are ordered, and how long they are kept.

use std::time::Duration;

use sakshi_domain::http_url::{HttpUrl, Schemes};
use secrecy::SecretString;
use url::{Host, Url};

use super::reader::Reader;

const DAY: u64 = 86_400;

/// `[upstreams]`; without a URL a flow is not offered, except in the sandbox, which stands in for every upstream.
#[derive(Clone, Debug)]
pub struct Upstreams {
    /// Where documents to be signed are ordered.
    pub esign_url: Option<Url>,
    /// Where documents of the locker are ordered.
    pub doclocker_url: Option<Url>,
    /// Where e-stamps are ordered.
    pub estamp_url: Option<Url>,
    /// Where wealth-data consents are ordered.
    pub wealth_url: Option<Url>,
    /// Where PANs are looked up.
    pub pan_url: Option<Url>,
    /// What upstreams know this service by; empty when it is not set.
    pub token: SecretString,
    /// Bound of one order in all.
    pub timeout: Duration,
}

/// `[flows]`
#[derive(Clone, Copy, Debug)]
pub struct Flows {
    /// How long the result of a flow can be fetched.
    pub result_ttl: Duration,
    /// How long a flow waits for its upstream.
    pub pending_ttl: Duration,
}

impl Upstreams {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            esign_url: reader.parsed_by("upstreams.esign_url", address),
            doclocker_url: reader.parsed_by("upstreams.doclocker_url", address),
            estamp_url: reader.parsed_by("upstreams.estamp_url", address),
            wealth_url: reader.parsed_by("upstreams.wealth_url", address),
            pan_url: reader.parsed_by("upstreams.pan_url", address),
            token: reader.secret("upstreams.token").unwrap_or_default(),
            timeout: Duration::from_millis(reader.number("upstreams.timeout_ms", 1..=600_000)),
        }
    }

    /// Every URL that is set, with its key.
    pub(super) fn urls(&self) -> impl Iterator<Item = (&'static str, &Url)> {
        let urls = [
            ("upstreams.esign_url", &self.esign_url),
            ("upstreams.doclocker_url", &self.doclocker_url),
            ("upstreams.estamp_url", &self.estamp_url),
            ("upstreams.wealth_url", &self.wealth_url),
            ("upstreams.pan_url", &self.pan_url),
        ];
        urls.into_iter().filter_map(|(key, url)| Some((key, url.as_ref()?)))
    }
}

impl Flows {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            result_ttl: Duration::from_secs(reader.number("flows.result_ttl_s", 1..=366 * DAY)),
            pending_ttl: Duration::from_secs(DAY * reader.number("flows.pending_ttl_days", 1..=3_660)),
        }
    }
}

fn address(text: &str) -> Result<Url, String> {
    let address = HttpUrl::parse(text, Schemes::HttpAndHttps)?;
    Url::parse(address.as_str()).map_err(|_| "must be an absolute URL".to_owned())
}

/// Whether what is sent there can be read on the way by nobody: it is encrypted, or stays on this machine.
pub(super) fn is_private(url: &Url) -> bool {
    let here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "https" || here
}
