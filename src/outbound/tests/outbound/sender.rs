//! The webhook client as tests use it.

use sakshi_domain::http_url::{Schemes, WebhookUrl};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};
use sakshi_outbound::{Egress, EgressOptions};

use crate::receiver::PLENTY;

pub(crate) fn options() -> WebhookClientOptions {
    WebhookClientOptions {
        allow_private: true,
        connect_timeout: PLENTY,
        total_timeout: PLENTY,
        egress: Egress::default(),
    }
}

/// Builds the egress that trusts this authority.
pub(crate) fn trusting(root: Vec<u8>) -> Egress {
    Egress::new(&EgressOptions { roots_pem: Some(root), ..EgressOptions::default() }).unwrap()
}

pub(crate) fn client() -> WebhookClient {
    WebhookClient::new(&options()).unwrap()
}

pub(crate) fn url(text: &str) -> WebhookUrl {
    WebhookUrl::parse(text, Schemes::HttpAndHttps).unwrap()
}
