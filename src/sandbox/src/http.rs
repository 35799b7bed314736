//! How the stand-ins call the service: by HTTP/1.1, directly, without following redirects.

use std::time::Duration;

use reqwest::{ClientBuilder, Response, redirect};

/// A client that waits at most this long for an answer.
pub(crate) fn client(timeout: Duration) -> ClientBuilder {
    reqwest::Client::builder().http1_only().no_proxy().redirect(redirect::Policy::none()).timeout(timeout)
}

/// The body of an answer, up to `most` bytes.
///
/// # Errors
/// The connection broke before that.
pub(crate) async fn read_body(mut response: Response, most: usize) -> reqwest::Result<String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() >= most {
            body.truncate(most);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}
