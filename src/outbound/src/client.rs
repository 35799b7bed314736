//! The one attempt at delivering a webhook (specification, "Delivery rules").
//!
//! Every attempt opens a connection of its own: a receiver that closes a kept-alive connection at
//! the moment of sending would lose a delivery that is never repeated. Redirects, proxies, retries
//! and HTTP/2 are off. Once a status has arrived it alone decides, whatever the body does.
//!
//! When this machine has no descriptor, port or memory for a connection, nothing has reached the
//! receiver: the attempt has not begun for it, and goes on until its time is over.

use std::error::Error;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Certificate, Client, Response, redirect, retry};
use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::limits::WEBHOOK_RESPONSE_BYTES_MAX;
use sakshi_domain::web_address::WebhookUrl;
use thiserror::Error as ThisError;
use tokio::time::{sleep, timeout};
use url::Url;

use crate::guard::AddressPolicy;
use crate::local::{is_local, is_starved};
use crate::resolver::{GuardedResolver, ResolveError};

/// How long a receiver's body is read for after its status has arrived. Reading lets an ordinary
/// receiver finish its answer; one that takes longer is hung up on.
const BODY_TIME_MAX: Duration = Duration::from_millis(500);

/// Between two tries to open a connection for which this machine had no means, growing twofold.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How webhooks are sent.
#[derive(Clone, Debug)]
pub struct WebhookClientOptions {
    /// Whether addresses that are not public may be connected to.
    pub allow_private: bool,
    /// Bound on name resolution, connection and TLS handshake together.
    pub connect_timeout: Duration,
    /// Bound on everything up to the receiver's status, connecting included.
    pub total_timeout: Duration,
    /// Certificate authorities trusted besides the system's, as PEM.
    pub extra_roots_pem: Option<Vec<u8>>,
}

/// Why there is no client.
#[derive(Debug, ThisError)]
pub enum ClientError {
    /// The extra certificate authorities are not PEM certificates, or there are none in the text.
    #[error("the extra root certificates are not a PEM bundle")]
    ExtraRoots,
    /// The token for upstreams holds something that no header can carry.
    #[error("the upstreams' token cannot be sent in a header")]
    Token,
    /// TLS cannot be set up, for example because the system has no trusted certificate authorities.
    #[error("the HTTP client cannot be built: {}", innermost(.0))]
    Tls(#[source] reqwest::Error),
}

/// What the library's own sentence leaves out: the reason.
fn innermost(error: &reqwest::Error) -> String {
    let mut reason: &dyn Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

/// Sends webhooks. Cloning is cheap and shares TLS session tickets, never connections.
#[derive(Clone, Debug)]
pub struct WebhookClient {
    http: Client,
    policy: AddressPolicy,
    total_timeout: Duration,
}

impl WebhookClient {
    /// A client with these options.
    ///
    /// # Errors
    /// Unreadable extra roots, or no usable TLS configuration.
    pub fn new(options: &WebhookClientOptions) -> Result<Self, ClientError> {
        let policy = AddressPolicy { allow_private: options.allow_private };
        let mut builder = Client::builder()
            .http1_only()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .retry(retry::never())
            .pool_max_idle_per_host(0)
            .referer(false)
            .connect_timeout(options.connect_timeout)
            .dns_resolver(GuardedResolver::new(policy));
        if let Some(pem) = &options.extra_roots_pem {
            let roots = Certificate::from_pem_bundle(pem).ok().filter(|roots| !roots.is_empty());
            builder = builder.tls_certs_merge(roots.ok_or(ClientError::ExtraRoots)?);
        }
        let http = builder.build().map_err(ClientError::Tls)?;
        Ok(Self { http, policy, total_timeout: options.total_timeout })
    }

    /// Makes the attempt. The duration is the time until the status, or until the attempt failed.
    /// Dropping the future closes the connection.
    pub async fn attempt(&self, url: &WebhookUrl, body: Bytes) -> Attempt {
        let started = Instant::now();
        let ended = |outcome, status| {
            let duration_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
            Attempt { outcome, status, duration_ms }
        };
        let Ok(url) = Url::parse(url.as_str()) else {
            return ended(DeliveryOutcome::Unresolved, None);
        };
        if !self.policy.permits_host(&url) {
            return ended(DeliveryOutcome::Blocked, None);
        }
        let mut pause = PAUSE;
        loop {
            let request = self.http.post(url.clone()).header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body.clone());
            match timeout(self.total_timeout.saturating_sub(started.elapsed()), request.send()).await {
                Err(_elapsed) => return ended(DeliveryOutcome::TimedOut, None),
                Ok(Err(error)) => {
                    let outcome = classify(&error);
                    if outcome != DeliveryOutcome::LocalFailure || started.elapsed() + pause >= self.total_timeout {
                        return ended(outcome, None);
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Ok(Ok(response)) => {
                    let status = response.status();
                    let outcome = if status.is_success() { DeliveryOutcome::Delivered } else { DeliveryOutcome::Rejected };
                    let attempt = ended(outcome, Some(status.as_u16()));
                    discard_body(response).await;
                    return attempt;
                }
            }
        }
    }
}

/// What a failure to get a status is called. The order matters: a refused address surfaces as a
/// failure to connect.
fn classify(error: &reqwest::Error) -> DeliveryOutcome {
    match resolve_error(error) {
        Some(ResolveError::Blocked) => DeliveryOutcome::Blocked,
        Some(ResolveError::NotFound(_)) if is_local(error) || is_starved() => DeliveryOutcome::LocalFailure,
        Some(ResolveError::NotFound(_)) => DeliveryOutcome::Unresolved,
        None if error.is_connect() && is_local(error) => DeliveryOutcome::LocalFailure,
        None if error.is_connect() => DeliveryOutcome::Unreachable,
        None if error.is_timeout() => DeliveryOutcome::TimedOut,
        None => DeliveryOutcome::Broken,
    }
}

fn resolve_error(error: &reqwest::Error) -> Option<&ResolveError> {
    let mut cause: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

async fn discard_body(mut response: Response) {
    let read = async {
        let mut seen = 0_usize;
        while let Ok(Some(chunk)) = response.chunk().await {
            seen = seen.saturating_add(chunk.len());
            if seen >= WEBHOOK_RESPONSE_BYTES_MAX {
                break;
            }
        }
    };
    // Whether the body ended, grew too long or took too long changes nothing for the delivery.
    let _ = timeout(BODY_TIME_MAX, read).await;
}
