//! What is exchanged over any connection: the one POST, and as much of the answer as is looked at.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{StatusCode, Uri};
use sakshi_domain::delivery::DeliveryOutcome;
use sakshi_domain::limits::WEBHOOK_RESPONSE_BYTES_MAX;
use tokio::time::timeout;
use url::{Host, Url};

/// How long a receiver's body is read for after its status has arrived. Reading lets an ordinary
/// receiver finish its answer; one that takes longer is hung up on.
const BODY_TIME_MAX: Duration = Duration::from_millis(500);

/// Where a webhook goes.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    url: Arc<Url>,
    pub(crate) secure: bool,
    pub(crate) port: u16,
    pub(crate) authority: Authority,
    pub(crate) path: PathAndQuery,
}

impl Target {
    /// Reads a URL of http or https; `None` when no request can be sent there.
    pub(crate) fn of(url: Url) -> Option<Self> {
        let uri = Uri::try_from(url.as_str()).ok()?;
        let (secure, port) = (uri.scheme() == Some(&Scheme::HTTPS), url.port_or_known_default()?);
        let path = uri.path_and_query()?.clone();
        Some(Self { secure, port, authority: uri.authority()?.clone(), path, url: Arc::new(url) })
    }

    pub(crate) fn host(&self) -> Option<Host<&str>> {
        self.url.host()
    }
}

/// The headers of every webhook, whatever carries it.
pub(crate) fn headers() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// That is what became of the attempt.
    Ended(DeliveryOutcome),
    /// This machine had no means for a connection; nothing has left it.
    Local,
    /// The receiver says that it has refused the request without looking at it; it may take it later.
    Refused,
    /// The request was never written, or the receiver says that it has not looked at it and hangs up.
    Unprocessed,
}

/// An answer whose status is known.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// What reads the rest of it, if there is any.
    pub(crate) rest: Option<BoxFuture<'static, ()>>,
}

impl Answer {
    /// Reads what is left for a while. Whether it ends, grows too long or takes too long changes
    /// nothing for the delivery.
    pub(crate) async fn discard(self) {
        if let Some(rest) = self.rest {
            let _ = timeout(BODY_TIME_MAX, rest).await;
        }
    }
}

/// How much of a body is still read.
#[derive(Debug)]
pub(crate) struct Patience(usize);

impl Patience {
    pub(crate) const fn new() -> Self {
        Self(WEBHOOK_RESPONSE_BYTES_MAX)
    }

    /// Takes note of a part of the body; whether to read on.
    pub(crate) fn has_for(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_sub(bytes);
        self.0 > 0
    }
}
