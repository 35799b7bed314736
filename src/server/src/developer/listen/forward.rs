//! Forwards webhooks to another URL, such as a backend under development.

use std::io;
use std::time::{Duration, Instant};

use sakshi_client::Error;
use sakshi_sandbox::receiver::Received;
use serde_json::json;
use url::Url;

use crate::cli::error::CliError;
use crate::cli::style::Out;

/// Timeout of the target.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Headers that apply to one connection (RFC 9110 §7.6.1) or are set for the connection to the target.
const HEADERS_REMOVED: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Sends received webhooks on to one URL.
pub(super) struct Forwarder {
    http: reqwest::Client,
    url: Url,
}

/// Result of a forwarded webhook.
pub(super) struct ForwardResult {
    /// Status of the response, or the reason why there is none.
    status: Result<u16, Error>,
    duration: Duration,
}

/// Parses an http or https URL.
pub(super) fn parse_target(text: &str) -> Result<Url, &'static str> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or("must be an http or https URL")
}

impl Forwarder {
    pub(super) fn new(url: Url) -> Result<Self, CliError> {
        let http = sakshi_client::http(TIMEOUT, url.scheme() == "https")
            .map_err(|error| CliError::Local(error.to_string()))?;
        Ok(Self { http, url })
    }

    /// Sends the request with its method, headers and body, and waits for the response.
    pub(super) async fn forward(&self, request: &Received) -> ForwardResult {
        let mut headers = request.headers.clone();
        for name in HEADERS_REMOVED {
            headers.remove(name);
        }
        let started = Instant::now();
        let response = self
            .http
            .request(request.method.clone(), self.url.clone())
            .headers(headers)
            .body(request.body.clone())
            .send()
            .await;
        let status = response.map(|response| response.status().as_u16()).map_err(|error| Error::unreachable(&error));
        ForwardResult { status, duration: started.elapsed() }
    }
}

impl ForwardResult {
    /// Prints the result of the webhook with this number, as a line of text or of JSON.
    pub(super) fn show(&self, number: u64, is_json: bool, out: &mut dyn Out) -> io::Result<()> {
        let millis = self.duration.as_millis();
        match &self.status {
            _ if is_json => {
                let error = self.status.as_ref().err().map(ToString::to_string);
                let status = self.status.as_ref().ok();
                let duration = u64::try_from(millis).unwrap_or(u64::MAX);
                writeln!(
                    out,
                    "{}",
                    json!({ "event": "forwarded", "number": number, "status": status, "duration_ms": duration,
                        "error": error })
                )?;
            }
            Ok(status) => writeln!(out, "    #{number} forwarded: {status} after {millis} ms\n")?,
            Err(error) => writeln!(out, "    #{number} NOT forwarded: {error}\n")?,
        }
        out.flush()
    }
}
