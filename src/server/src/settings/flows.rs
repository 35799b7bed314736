//! `[upstreams]` and `[flows]`: the upstreams of flows, and their retention.

use std::collections::BTreeMap;
use std::time::Duration;

use sakshi_domain::checks::CHECKS;
use sakshi_domain::http_url::{HttpUrl, Schemes};
use sakshi_wire::operator::tenancy::RESULT_TTL_MAX;
use secrecy::SecretString;
use url::Url;

use super::endpoints::is_loopback;
use super::reader::Reader;

/// `[upstreams]`; a flow without a URL is not offered, except in the sandbox, which stands in for every upstream.
#[derive(Clone, Debug)]
pub struct Upstreams {
    /// URL for documents to sign.
    pub esign_url: Option<Url>,
    /// URL for documents of the locker.
    pub doclocker_url: Option<Url>,
    /// URL for e-stamps.
    pub estamp_url: Option<Url>,
    /// URL for wealth-data consents.
    pub wealth_url: Option<Url>,
    /// URLs for checks, by the name of their kind.
    pub check_urls: BTreeMap<&'static str, Url>,
    /// Token of this service at upstreams; empty when not set.
    pub token: SecretString,
    /// Timeout of one order.
    pub timeout: Duration,
}

/// `[flows]`
#[derive(Clone, Copy, Debug)]
pub struct Flows {
    /// Time for which the result of a flow can be fetched.
    pub result_ttl: Duration,
    /// Time for which a flow waits for its upstream.
    pub pending_ttl: Duration,
}

impl Upstreams {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            esign_url: reader.optional("upstreams.esign_url", parse_address),
            doclocker_url: reader.optional("upstreams.doclocker_url", parse_address),
            estamp_url: reader.optional("upstreams.estamp_url", parse_address),
            wealth_url: reader.optional("upstreams.wealth_url", parse_address),
            check_urls: CHECKS
                .iter()
                .filter_map(|check| Some((check.name, reader.optional(&url_key(check.name), parse_address)?)))
                .collect(),
            token: reader.secret("upstreams.token").unwrap_or_default(),
            timeout: reader.millis("upstreams.timeout_ms", 1..=600_000),
        }
    }

    /// Returns every URL that is set, with its key.
    pub fn urls(&self) -> impl Iterator<Item = (String, &Url)> {
        let flows = [
            ("esign", &self.esign_url),
            ("doclocker", &self.doclocker_url),
            ("estamp", &self.estamp_url),
            ("wealth", &self.wealth_url),
        ];
        let flows = flows.into_iter().filter_map(|(name, url)| Some((name, url.as_ref()?)));
        flows.chain(self.check_urls.iter().map(|(name, url)| (*name, url))).map(|(name, url)| (url_key(name), url))
    }
}

/// Returns the key of an upstream's URL.
fn url_key(name: &str) -> String {
    format!("upstreams.{name}_url")
}

impl Flows {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            result_ttl: reader.seconds("flows.result_ttl_s", 1..=RESULT_TTL_MAX),
            pending_ttl: reader.days("flows.pending_ttl_days", 1..=3_660),
        }
    }
}

/// Parses the URL of an upstream.
fn parse_address(text: &str) -> Result<Url, &'static str> {
    let address = HttpUrl::parse(text, Schemes::HttpAndHttps)?;
    Url::parse(address.as_str()).map_err(|_| "must be an absolute URL")
}

/// Returns true if requests to this URL are encrypted or stay on this machine.
pub(super) fn is_private(url: &Url) -> bool {
    url.scheme() == "https" || is_loopback(url)
}
