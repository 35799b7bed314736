//! Fetches a small document by HTTP: no redirect is followed, and size and time are bounded.

use std::time::Duration;

use reqwest::{Client, StatusCode, redirect, retry};
use tokio::time::timeout;
use url::Url;

use crate::error::ClientError;

/// Why there is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// No connection, no TLS, or the connection broke.
    #[error("cannot be reached")]
    Unreachable,
    /// It took too long.
    #[error("does not answer in time")]
    TimedOut,
    /// Another status than 200.
    #[error("answers with status {0}")]
    Status(u16),
    /// It is too long.
    #[error("answers with more than {0} bytes")]
    TooLong(usize),
}

/// Fetches documents.
#[derive(Clone, Debug)]
pub struct DocumentClient {
    http: Client,
    time: Duration,
}

impl DocumentClient {
    /// A client that waits so long for a document.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(time: Duration) -> Result<Self, ClientError> {
        let builder = Client::builder().http1_only().redirect(redirect::Policy::none()).no_proxy().retry(retry::never()).referer(false);
        Ok(Self { http: builder.pool_max_idle_per_host(0).build().map_err(ClientError::tls)?, time })
    }

    /// The document at a URL, of at most this many bytes.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn fetch(&self, url: &Url, most: usize) -> Result<Vec<u8>, DocumentError> {
        let failure = |error: reqwest::Error| if error.is_timeout() { DocumentError::TimedOut } else { DocumentError::Unreachable };
        let exchange = async {
            let mut response = self.http.get(url.clone()).send().await.map_err(failure)?;
            if response.status() != StatusCode::OK {
                return Err(DocumentError::Status(response.status().as_u16()));
            }
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(failure)? {
                if body.len() + chunk.len() > most {
                    return Err(DocumentError::TooLong(most));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(body)
        };
        timeout(self.time, exchange).await.unwrap_or(Err(DocumentError::TimedOut))
    }
}
