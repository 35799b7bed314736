//! Requests of guests, phones and backends: timed and recorded, with the outcome as a value.

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, RequestBuilder};
use tokio::time::Instant;
use url::Url;

use crate::record::{Due, Outcome, Recorder, Step};

/// Sends the requests of a run to the listeners under test, and records them.
#[derive(Debug)]
pub(crate) struct Transport {
    http: Client,
    /// Base URLs of the listeners.
    bases: Vec<Url>,
    pub(crate) recorder: Recorder,
}

/// A received response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A request and its result.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) sent_at: Instant,
    /// Time at which the exchange ended.
    pub(crate) done_at: Instant,
    pub(crate) outcome: Outcome,
    pub(crate) answer: Option<Answer>,
}

impl Transport {
    pub(crate) fn new(http: Client, bases: Vec<Url>, recorder: Recorder) -> Self {
        Self { http, bases, recorder }
    }

    /// Builds a request to the listener of this guest. Guests use the listeners in turn.
    pub(crate) fn request(&self, guest: u64, method: Method, path: &str) -> RequestBuilder {
        let index = usize::try_from(guest).unwrap_or_default() % self.bases.len().max(1);
        let base = self.bases.get(index).map_or("", Url::as_str);
        self.http.request(method, format!("{}{path}", base.trim_end_matches('/')))
    }

    /// Sends a request, reads the whole response, and records the exchange.
    pub(crate) async fn exchange(&self, step: Step, due: Due, request: RequestBuilder) -> Exchange {
        let exchange = exchange(request).await;
        self.recorder.record(step, due, exchange.sent_at, exchange.done_at, exchange.outcome);
        exchange
    }
}

/// Sends a request without recording it.
pub(crate) async fn exchange(request: RequestBuilder) -> Exchange {
    let sent_at = Instant::now();
    let answer = read_answer(request).await;
    let done_at = Instant::now();
    match answer {
        Ok(answer) => Exchange { sent_at, done_at, outcome: Outcome::Status(answer.status), answer: Some(answer) },
        Err(error) => Exchange { sent_at, done_at, outcome: outcome_of(&error), answer: None },
    }
}

async fn read_answer(request: RequestBuilder) -> reqwest::Result<Answer> {
    let mut response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
    Ok(Answer { status, headers, body: response.bytes().await? })
}

fn outcome_of(error: &reqwest::Error) -> Outcome {
    match error {
        _ if error.is_timeout() => Outcome::TimedOut,
        _ if error.is_connect() => Outcome::Unreachable,
        _ => Outcome::Broken,
    }
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}
