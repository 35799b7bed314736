//! Carries reports to the service as a connector would: with the connector's token, within a
//! time, and again after a pause while the service is away or says that it has no room.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Response, StatusCode, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::sleep;
use url::Url;

use super::case::Outgoing;

/// How long the service may take to answer one report.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(20);
/// The pauses between attempts; one attempt more than there are pauses.
const PAUSES: [Duration; 3] = [Duration::from_millis(150), Duration::from_millis(600), Duration::from_millis(2_000)];
/// The longest pause that the service may ask for; somebody waits for the page.
const PAUSE_MAX: Duration = Duration::from_secs(3);
/// Bytes kept of an answer.
const ANSWER_BYTES_MAX: usize = 4 * 1_024;

/// What came back of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The service answered.
    Answer {
        /// With this status.
        status: u16,
        /// And this body, cut where it is long.
        body: String,
    },
    /// Nobody answered, or not in time.
    Nothing,
}

impl Heard {
    /// Whether sending the same report again cannot change anything: the service took it, or
    /// refused what it says.
    pub(super) const fn is_final(&self) -> bool {
        matches!(self, Self::Answer { status: 200..300 | 400 | 409 | 413 | 415 | 422, .. })
    }

    /// The status, if there was an answer.
    pub(super) const fn status(&self) -> Option<u16> {
        match self {
            Self::Answer { status, .. } => Some(*status),
            Self::Nothing => None,
        }
    }

    /// Whether the service took the report.
    pub(super) const fn is_taken(&self) -> bool {
        matches!(self, Self::Answer { status: 200..300, .. })
    }

    /// What a member of the answer's JSON says.
    pub(super) fn says(&self, member: &str) -> Option<String> {
        let Self::Answer { body, .. } = self else { return None };
        serde_json::from_str::<Value>(body).ok()?.get(member)?.as_str().map(str::to_owned)
    }

    /// Whether the service may answer otherwise in a moment.
    const fn is_passing(&self) -> bool {
        matches!(self, Self::Nothing | Self::Answer { status: 408 | 429 | 500..600, .. })
    }
}

/// Reports to one service.
pub(super) struct Reporter {
    http: reqwest::Client,
    base: Url,
    token: SecretString,
}

impl Reporter {
    pub(super) fn new(base: Url, token: SecretString) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().http1_only().no_proxy().redirect(redirect::Policy::none()).timeout(ANSWER_TIME_MAX);
        Ok(Self { http: http.build()?, base, token })
    }

    /// Sends a report, several times if need be; says what came back last, and after how many
    /// attempts.
    pub(super) async fn report(&self, report: &Outgoing) -> (Heard, u32) {
        let mut attempts = 1;
        for pause in PAUSES {
            let (heard, asked) = self.send(report).await;
            if !heard.is_passing() {
                return (heard, attempts);
            }
            sleep(asked.unwrap_or(pause).min(PAUSE_MAX)).await;
            attempts += 1;
        }
        (self.send(report).await.0, attempts)
    }

    /// What came back of one attempt, and the pause that was asked for.
    async fn send(&self, report: &Outgoing) -> (Heard, Option<Duration>) {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["internal", "v1", "flows", report.kind.as_str()]);
        }
        let request = self.http.post(url).bearer_auth(self.token.expose_secret()).header(CONTENT_TYPE, "application/json");
        match request.body(report.body.clone()).send().await {
            Ok(response) => {
                let pause = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                (read(response).await, pause.map(Duration::from_secs))
            }
            Err(error) => {
                // The service may also answer before it has read a large body, and hang up.
                tracing::debug!(kind = %report.kind, %error, "a report of the sandbox upstreams was not answered");
                (Heard::Nothing, None)
            }
        }
    }
}

async fn read(mut response: Response) -> Heard {
    let status: StatusCode = response.status();
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() >= ANSWER_BYTES_MAX {
            body.truncate(ANSWER_BYTES_MAX);
            break;
        }
    }
    Heard::Answer { status: status.as_u16(), body: String::from_utf8_lossy(&body).into_owned() }
}
