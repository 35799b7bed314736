//! Calls of the stand-ins to the service: HTTP/1.1, directly, without following redirects.

use std::time::Duration;

use reqwest::{ClientBuilder, Response, redirect};

/// Builds a client of the service at `base` with this timeout. The system's root certificates are loaded only for
/// HTTPS: that takes longer than the rest of a node's start.
pub(crate) fn client(base: &str, timeout: Duration) -> ClientBuilder {
    let builder =
        reqwest::Client::builder().http1_only().no_proxy().redirect(redirect::Policy::none()).timeout(timeout);
    if base.starts_with("http:") { builder.tls_certs_only([]) } else { builder }
}

/// Reads the body of an answer, up to `most` bytes.
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
