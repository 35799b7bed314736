//! Rules for URLs in clients' requests: targets of webhooks, and pages to which a person's browser returns.

use sakshi_domain::http_url::{HttpUrl, Schemes, WebhookUrl};
use sakshi_domain::time::Timestamp;
use sakshi_outbound::guard::AddressPolicy;
use sakshi_wire::{Context, UrlRules};

/// Rules for the URLs that clients may use.
#[derive(Clone, Copy, Debug)]
pub struct UrlPolicy {
    /// Permitted schemes.
    pub schemes: Schemes,
    /// Permitted targets of webhooks, as far as the text of the URL shows them.
    pub targets: AddressPolicy,
}

impl UrlPolicy {
    /// Rules of production: https, and no webhook to an internal address.
    pub const PUBLIC: Self = Self { schemes: Schemes::HttpsOnly, targets: AddressPolicy { allow_private: false } };

    /// Returns the context for parsing a request that arrives at `now`.
    #[must_use]
    pub const fn at(&self, now: Timestamp) -> Context<'_> {
        Context { urls: self, now }
    }
}

impl UrlRules for UrlPolicy {
    fn page(&self, text: &str) -> Result<HttpUrl, &'static str> {
        HttpUrl::parse(text, self.schemes)
    }

    /// Checks a host that is an address or `localhost`. Any other name is checked when it is resolved for sending.
    fn webhook(&self, text: &str) -> Result<WebhookUrl, &'static str> {
        let refusal = "must not name a loopback, private, link-local or otherwise internal address";
        HttpUrl::parse_if(text, self.schemes, |url| self.targets.permits_host(url), refusal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_webhook_url_with_an_internal_address_is_refused() {
        for host in [
            "127.0.0.1",
            "127.1",
            "[::1]",
            "10.1.2.3",
            "192.168.0.1:8443",
            "169.254.169.254",
            "[fe80::1]",
            "localhost",
            "a.localhost",
        ] {
            let text = format!("https://{host}/hook");
            assert!(UrlPolicy::PUBLIC.webhook(&text).unwrap_err().contains("internal"), "{host}");
            assert!(UrlPolicy::PUBLIC.page(&text).is_ok(), "the browser connects, not this service");
            let open = UrlPolicy { targets: AddressPolicy { allow_private: true }, ..UrlPolicy::PUBLIC };
            assert!(open.webhook(&text).is_ok(), "{host}");
        }
        for host in ["hooks.example", "8.8.8.8", "[2606:4700:4700::1111]", "localhost.example"] {
            assert!(UrlPolicy::PUBLIC.webhook(&format!("https://{host}/hook")).is_ok(), "{host}");
        }
        assert_eq!(UrlPolicy::PUBLIC.webhook("http://hooks.example/"), Err("must be an https URL"));
    }
}
