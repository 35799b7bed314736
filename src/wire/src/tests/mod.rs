//! Whole bodies, as clients and connectors send them.

mod described;
mod flows;
mod ovse;
mod requests;

use sakshi_domain::http_url::{HttpUrl, Schemes, WebhookUrl};
use sakshi_domain::time::Timestamp;

use crate::{Body, Context, ReceivedObject, UrlRules};

/// Accepts only https URLs, and no webhook to 127.0.0.1.
struct StrictUrlRules;

impl UrlRules for StrictUrlRules {
    fn webhook(&self, text: &str) -> Result<WebhookUrl, &'static str> {
        HttpUrl::parse_if(text, Schemes::HttpsOnly, |url| url.host_str() != Some("127.0.0.1"), "must not be internal")
    }

    fn page(&self, text: &str) -> Result<HttpUrl, &'static str> {
        HttpUrl::parse(text, Schemes::HttpsOnly)
    }
}

const NOW: &str = "2026-01-01T00:00:00Z";

fn at(text: &str) -> Timestamp {
    Timestamp::parse_iso8601(text).unwrap()
}

fn context() -> Context<'static> {
    Context { urls: &StrictUrlRules, now: at(NOW) }
}

fn read<B: Body>(json: &str) -> B {
    ReceivedObject::read(json.as_bytes())
        .unwrap()
        .into_request(context())
        .unwrap_or_else(|invalid| panic!("{json}: {invalid}"))
}

/// Returns every problem as field and message.
fn problems<B: Body>(json: &str) -> Vec<(String, String)> {
    match ReceivedObject::read(json.as_bytes()).unwrap().into_request::<B>(context()) {
        Ok(_) => Vec::new(),
        Err(invalid) => {
            invalid.fields().iter().map(|problem| (problem.field.clone(), problem.message.clone())).collect()
        }
    }
}

/// Returns the paths of the invalid fields.
fn invalid_fields<B: Body>(json: &str) -> Vec<String> {
    problems::<B>(json).into_iter().map(|(field, _)| field).collect()
}
