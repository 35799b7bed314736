//! The exchange on every connection: a POST, its status, and the part of the response body that is read.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use hyper::{StatusCode, Uri};
use sakshi_domain::limits::WEBHOOK_RESPONSE_BYTES_MAX;
use tokio::time::timeout;
use url::{Host, Url};

/// Time for which a response's body is read after its status, so that an ordinary receiver can finish sending it. Then
/// the connection is closed.
const BODY_TIME_MAX: Duration = Duration::from_millis(500);

/// The URL of a webhook, and the parts of it that a request needs.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    url: Arc<Url>,
    pub(crate) secure: bool,
    pub(crate) port: u16,
    pub(crate) authority: Authority,
    pub(crate) path: PathAndQuery,
    pub(crate) uri: Uri,
}

impl Target {
    /// Splits an http or https URL; `None` when no request can be sent there.
    pub(crate) fn parse(url: Url) -> Option<Self> {
        let uri = Uri::try_from(url.as_str()).ok()?;
        let (secure, port) = (uri.scheme() == Some(&Scheme::HTTPS), url.port_or_known_default()?);
        let path = uri.path_and_query()?.clone();
        Some(Self { secure, port, authority: uri.authority()?.clone(), path, uri, url: Arc::new(url) })
    }

    pub(crate) fn host(&self) -> Option<Host<&str>> {
        self.url.host()
    }
}

/// Builds the headers of every webhook, for both versions of HTTP.
pub(crate) fn headers() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers
}

/// The receiver's response, when its status is known and its body may be unread.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// Future that reads the remaining body, if there is any.
    pub(crate) remaining_body: Option<BoxFuture<'static, ()>>,
}

impl Answer {
    /// Reads the remaining body within limits. Its failure does not change the result.
    pub(crate) async fn drain_body(self) {
        if let Some(remaining_body) = self.remaining_body {
            let _ = timeout(BODY_TIME_MAX, remaining_body).await;
        }
    }
}

/// The number of bytes of a response's body that may still be read.
#[derive(Debug)]
pub(crate) struct ReadBudget(usize);

impl ReadBudget {
    pub(crate) const fn new() -> Self {
        Self(WEBHOOK_RESPONSE_BYTES_MAX)
    }

    /// Subtracts a part of the body; returns true if more may be read.
    pub(crate) fn consume(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_sub(bytes);
        self.0 > 0
    }
}
