//! Sends reports to the service like a connector: with its token, a timeout, and retries while the service is
//! unavailable.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use sakshi_domain::flow::report_kind::ReportKind;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::time::sleep;
use url::Url;

use super::order::Order;
use crate::http::{client, read_body};

/// Timeout of an attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(20);
/// Pauses between attempts.
const PAUSES: [Duration; 3] = [Duration::from_millis(150), Duration::from_millis(600), Duration::from_millis(2_000)];
/// Longest `Retry-After` that is respected, because a person waits for the page.
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// Maximum bytes of an answer that are stored.
const ANSWER_BYTES_MAX: usize = 4 * 1_024;

/// A report that waits to be sent.
pub(super) struct PendingReport {
    pub(super) kind: ReportKind,
    /// Description for the journal.
    pub(super) description: String,
    /// Body in JSON.
    pub(super) body: Bytes,
}

impl PendingReport {
    /// Creates a report on the flow of an order, and adds the app to the payload.
    pub(super) fn new(order: &Order, kind: ReportKind, description: impl Into<String>, mut payload: Value) -> Self {
        payload["app_id"] = json!(order.app);
        Self { kind, description: description.into(), body: payload.to_string().into() }
    }
}

/// The service's answer to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReportAnswer {
    /// The service answered.
    Answer {
        /// HTTP status.
        status: u16,
        /// Body, cut after [`ANSWER_BYTES_MAX`].
        body: String,
    },
    /// The service did not answer in time.
    NoAnswer,
}

impl ReportAnswer {
    /// Returns true if a retry is useless: the service accepted the report or refused its contents.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Self::Answer { status: 200..300 | 400 | 409 | 413 | 415 | 422, .. })
    }

    /// Returns the status, if there was an answer.
    pub(super) const fn status(&self) -> Option<u16> {
        match self {
            Self::Answer { status, .. } => Some(*status),
            Self::NoAnswer => None,
        }
    }

    /// Returns true if the service accepted the report.
    pub(super) const fn is_accepted(&self) -> bool {
        matches!(self, Self::Answer { status: 200..300, .. })
    }

    /// Returns a string member of the answer's JSON.
    pub(super) fn member(&self, member: &str) -> Option<String> {
        let Self::Answer { body, .. } = self else { return None };
        serde_json::from_str::<Value>(body).ok()?.get(member)?.as_str().map(str::to_owned)
    }

    /// Returns true if a retry may succeed.
    const fn is_temporary(&self) -> bool {
        matches!(self, Self::NoAnswer | Self::Answer { status: 408 | 429 | 500..600, .. })
    }
}

/// Sender of reports to the service.
pub(super) struct Reporter {
    http: reqwest::Client,
    /// URL of the service's internal listener.
    internal_base: Url,
    tokens: BTreeMap<ReportKind, SecretString>,
}

impl Reporter {
    pub(super) fn new(internal_base: Url, tokens: BTreeMap<ReportKind, SecretString>) -> Result<Self, reqwest::Error> {
        Ok(Self { http: client(internal_base.as_str(), ATTEMPT_TIMEOUT).build()?, internal_base, tokens })
    }

    /// Sends a report, with retries. Returns the last answer and the number of attempts.
    pub(super) async fn report(&self, report: &PendingReport) -> (ReportAnswer, u32) {
        let mut attempts = 1;
        for pause in PAUSES {
            let (answer, retry_after) = self.send(report).await;
            if !answer.is_temporary() {
                return (answer, attempts);
            }
            sleep(retry_after.unwrap_or(pause).min(PAUSE_MAX)).await;
            attempts += 1;
        }
        let (answer, _) = self.send(report).await;
        (answer, attempts)
    }

    /// Makes one attempt. Returns the answer and its `Retry-After`.
    async fn send(&self, report: &PendingReport) -> (ReportAnswer, Option<Duration>) {
        let mut url = self.internal_base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["internal", "v1", "flows", report.kind.as_str()]);
        }
        let token = self.tokens.get(&report.kind).map(ExposeSecret::expose_secret).unwrap_or_default();
        let request = self.http.post(url).bearer_auth(token).header(CONTENT_TYPE, "application/json");
        match request.body(report.body.clone()).send().await {
            Ok(response) => {
                let retry_after =
                    response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                let status = response.status().as_u16();
                // The status suffices if the body is missing.
                let body = read_body(response, ANSWER_BYTES_MAX).await.unwrap_or_default();
                (ReportAnswer::Answer { status, body }, retry_after.map(Duration::from_secs))
            }
            Err(error) => {
                // An answer can be lost if the service closes the connection before it has read a large body.
                tracing::debug!(kind = %report.kind, %error, "a report of the sandbox upstreams was not answered");
                (ReportAnswer::NoAnswer, None)
            }
        }
    }
}
