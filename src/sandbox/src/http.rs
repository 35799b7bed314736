//! HTTP requests of the stand-ins to the service: HTTP/1.1, without a proxy and without redirects.

use std::time::Duration;

use reqwest::{ClientBuilder, Response, redirect};

/// Builds a client of the service at `base`. The system's root certificates are loaded only for HTTPS, because loading
/// them takes longer than the rest of a node's start.
pub(crate) fn client(base: &str, timeout: Duration) -> ClientBuilder {
    let builder =
        reqwest::Client::builder().http1_only().no_proxy().redirect(redirect::Policy::none()).timeout(timeout);
    if base.starts_with("http:") { builder.tls_certs_only([]) } else { builder }
}

/// Reads up to `bytes_max` bytes of a response's body.
///
/// # Errors
/// The connection broke.
pub(crate) async fn read_body(mut response: Response, bytes_max: usize) -> reqwest::Result<String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() >= bytes_max {
            body.truncate(bytes_max);
            break;
        }
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}
