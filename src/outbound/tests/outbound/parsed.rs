//! Requests of clients that lead to orders.

use sakshi_domain::http_url::{HttpUrl, Schemes, WebhookUrl};
use sakshi_domain::time::Timestamp;
use sakshi_wire::{Body, Context, ReceivedObject, UrlRules};
use serde_json::Value;

/// Accepts only `https` URLs.
struct HttpsOnly;

impl UrlRules for HttpsOnly {
    fn webhook(&self, text: &str) -> Result<WebhookUrl, &'static str> {
        HttpUrl::parse(text, Schemes::HttpsOnly)
    }

    fn page(&self, text: &str) -> Result<HttpUrl, &'static str> {
        HttpUrl::parse(text, Schemes::HttpsOnly)
    }
}

/// Parses a request body, at the Unix epoch.
pub(crate) fn parse_request<B: Body>(body: &Value) -> B {
    let context = Context { urls: &HttpsOnly, now: Timestamp::from_millis(0) };
    ReceivedObject::read(body.to_string().as_bytes()).unwrap().into_request(context).unwrap()
}
