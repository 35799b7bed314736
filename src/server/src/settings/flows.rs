//! `[upstreams]` and `[flows]`: where flows are ordered, and how long they are kept.

use std::collections::BTreeMap;
use std::time::Duration;

use sakshi_domain::checks::CHECKS;
use sakshi_domain::http_url::{HttpUrl, Schemes};
use secrecy::SecretString;
use url::Url;

use super::endpoints::is_loopback;
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
    /// Where the verifications that are answered at once are asked, by the name of their kind.
    pub check_urls: BTreeMap<&'static str, Url>,
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
            esign_url: reader.optional("upstreams.esign_url", address),
            doclocker_url: reader.optional("upstreams.doclocker_url", address),
            estamp_url: reader.optional("upstreams.estamp_url", address),
            wealth_url: reader.optional("upstreams.wealth_url", address),
            check_urls: CHECKS.iter().filter_map(|check| Some((check.name, reader.optional(&key_of(check.name), address)?))).collect(),
            token: reader.secret("upstreams.token").unwrap_or_default(),
            timeout: reader.millis("upstreams.timeout_ms", 1..=600_000),
        }
    }

    /// Every URL that is set, with its key.
    pub fn urls(&self) -> impl Iterator<Item = (String, &Url)> {
        let flows =
            [("esign", &self.esign_url), ("doclocker", &self.doclocker_url), ("estamp", &self.estamp_url), ("wealth", &self.wealth_url)];
        let flows = flows.into_iter().filter_map(|(name, url)| Some((name, url.as_ref()?)));
        flows.chain(self.check_urls.iter().map(|(name, url)| (*name, url))).map(|(name, url)| (key_of(name), url))
    }
}

/// The key of the address of an upstream.
fn key_of(name: &str) -> String {
    format!("upstreams.{name}_url")
}

impl Flows {
    pub(super) fn read(reader: &mut Reader) -> Self {
        Self {
            result_ttl: reader.seconds("flows.result_ttl_s", 1..=366 * DAY),
            pending_ttl: reader.days("flows.pending_ttl_days", 1..=3_660),
        }
    }
}

fn address(text: &str) -> Result<Url, &'static str> {
    let address = HttpUrl::parse(text, Schemes::HttpAndHttps)?;
    Url::parse(address.as_str()).map_err(|_| "must be an absolute URL")
}

/// Whether requests to this URL are encrypted or stay on this machine.
pub(super) fn is_private(url: &Url) -> bool {
    url.scheme() == "https" || is_loopback(url)
}
