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
/// Headers of a single connection (RFC 9110 §7.6.1), and headers that the connection to the target sets itself.
const NOT_PASSED_ON: [&str; 11] = [
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

/// The target of forwarded webhooks.
pub(super) struct Forwarder {
    http: reqwest::Client,
    url: Url,
}

/// Result of a forwarded webhook.
pub(super) struct Forwarded {
    answer: Result<u16, Error>,
    duration: Duration,
}

/// Parses an http or https URL.
pub(super) fn target(text: &str) -> Result<Url, &'static str> {
    Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or("must be an http or https URL")
}

impl Forwarder {
    pub(super) fn new(url: Url) -> Result<Self, CliError> {
        let http = sakshi_client::http(TIMEOUT, url.scheme() == "https")
            .map_err(|error| CliError::Local(error.to_string()))?;
        Ok(Self { http, url })
    }

    /// Sends the request with its method, headers and body, and waits for the response.
    pub(super) async fn forward(&self, request: &Received) -> Forwarded {
        let mut headers = request.headers.clone();
        for name in NOT_PASSED_ON {
            headers.remove(name);
        }
        let began = Instant::now();
        let sent = self
            .http
            .request(request.method.clone(), self.url.clone())
            .headers(headers)
            .body(request.body.clone())
            .send()
            .await;
        let answer = sent.map(|answer| answer.status().as_u16()).map_err(|error| Error::unreachable(&error));
        Forwarded { answer, duration: began.elapsed() }
    }
}

impl Forwarded {
    pub(super) fn show(&self, number: u64, machines: bool, out: &mut dyn Out) -> io::Result<()> {
        let millis = self.duration.as_millis();
        match &self.answer {
            _ if machines => {
                let error = self.answer.as_ref().err().map(ToString::to_string);
                let status = self.answer.as_ref().ok();
                let duration = u64::try_from(millis).unwrap_or(u64::MAX);
                writeln!(
                    out,
                    "{}",
                    json!({ "event": "forwarded", "number": number, "status": status, "duration_ms": duration,
                        "error": error })
                )?;
            }
            Ok(status) => writeln!(out, "    #{number} passed on: {status} after {millis} ms\n")?,
            Err(error) => writeln!(out, "    #{number} NOT passed on: {error}\n")?,
        }
        out.flush()
    }
}
