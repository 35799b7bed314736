//! Webhook clients for the tests.

use sakshi_domain::http_url::{Schemes, WebhookUrl};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_outbound::{Egress, EgressOptions};

use crate::receiver::LONG_TIMEOUT;

/// Returns options with long timeouts, under which every address is allowed.
pub(crate) fn options() -> WebhookClientOptions {
    WebhookClientOptions {
        allow_private: true,
        connect_timeout: LONG_TIMEOUT,
        total_timeout: LONG_TIMEOUT,
        egress: Egress::default(),
    }
}

/// Builds an egress that trusts this authority.
pub(crate) fn egress_trusting(root: Vec<u8>) -> Egress {
    Egress::new(&EgressOptions { roots_pem: Some(root), ..EgressOptions::default() }).unwrap()
}

pub(crate) fn client() -> WebhookClient {
    WebhookClient::new(&options()).unwrap()
}

pub(crate) fn url(text: &str) -> WebhookUrl {
    WebhookUrl::parse(text, Schemes::HttpAndHttps).unwrap()
}
