//! Requests as clients send them, to be ordered from upstreams.

use sakshi_domain::http_url::{HttpUrl, Schemes, WebhookUrl};
use sakshi_domain::time::Timestamp;
use sakshi_wire::{Body, Context, Sent, UrlRules};
use serde_json::Value;

struct Https;

impl UrlRules for Https {
    fn webhook(&self, text: &str) -> Result<WebhookUrl, &'static str> {
        HttpUrl::parse(text, Schemes::HttpsOnly)
    }

    fn page(&self, text: &str) -> Result<HttpUrl, &'static str> {
        HttpUrl::parse(text, Schemes::HttpsOnly)
    }
}

/// Reads the request with this body, as if it were the Unix epoch now.
pub(crate) fn parsed<B: Body>(body: &Value) -> B {
    let context = Context { urls: &Https, now: Timestamp::from_millis(0) };
    Sent::read(body.to_string().as_bytes()).unwrap().request(context).unwrap()
}
