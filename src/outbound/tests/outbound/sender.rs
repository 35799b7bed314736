//! The webhook client as tests use it.

use sakshi_domain::http_url::{Schemes, WebhookUrl};
use sakshi_outbound::client::{WebhookClient, WebhookClientOptions};

use crate::receiver::PLENTY;

pub(crate) fn options() -> WebhookClientOptions {
    WebhookClientOptions { allow_private: true, connect_timeout: PLENTY, total_timeout: PLENTY, extra_roots_pem: None }
}

pub(crate) fn client() -> WebhookClient {
    WebhookClient::new(&options()).unwrap()
}

pub(crate) fn url(text: &str) -> WebhookUrl {
    WebhookUrl::parse(text, Schemes::HttpAndHttps).unwrap()
}
