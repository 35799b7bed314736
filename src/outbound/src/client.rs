//! The one attempt at delivering a webhook (specification, "Delivery rules").
//!
//! A connection of HTTP/1.1 carries one attempt: a receiver that closes a kept one at the moment of
//! sending would lose a delivery that is never repeated. HTTP/2, which a receiver offers within TLS,
//! says which requests were not processed, so there a connection carries many. Redirects, proxies
//! and retries are off. Once a status has arrived it alone decides, whatever the body does.
//!
//! What provably has not reached the receiver's application goes on until its time is over: when
//! this machine has no descriptor, port or memory for a connection, and when HTTP/2 says that the
//! request was not processed. Whatever may have been processed is never sent again.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::http_url::WebhookUrl;
use thiserror::Error as ThisError;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout, timeout_at};
use url::{Host, Url};

use crate::connect::connect;
use crate::exchange::{Answer, Failure, Target};
use crate::guard::AddressPolicy;
use crate::http1;
use crate::http2::{self, drive};
use crate::local::{is_local, is_starved};
use crate::origin::{Connecting, Origins, Slot, Way};
use crate::resolver::{GuardedResolver, ResolveError};
use crate::threads::Threads;
use crate::tls::{Protocol, Tls};

/// Between two tries, growing twofold.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often a request that was not processed goes again at once, over another connection.
const AT_ONCE: u32 = 3;
/// A larger body has an HTTP/2 connection of its own: as long as the receiver does not read it,
/// nothing else fits into the window that all requests of a connection share (RFC 9113 §6.9.2).
const SHARED_BYTES_MAX: usize = 32 * 1_024;

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
    #[error("the HTTP client cannot be built: {}", innermost(.0.as_ref()))]
    Tls(#[source] Box<dyn Error + Send + Sync>),
}

impl ClientError {
    pub(crate) fn tls(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Tls(error.into())
    }
}

/// What a library's own sentence leaves out: the reason.
fn innermost(error: &(dyn Error + Send + Sync + 'static)) -> String {
    let mut reason: &dyn Error = error;
    while let Some(source) = reason.source() {
        reason = source;
    }
    reason.to_string()
}

/// Sends webhooks. Cloning is cheap and shares names, connections of HTTP/2 and TLS session tickets.
#[derive(Clone, Debug)]
pub struct WebhookClient {
    sender: Arc<Sender>,
    /// Does the work of TLS. Last, so that the last client ends it after everything else.
    threads: Arc<Threads>,
}

#[derive(Debug)]
struct Sender {
    policy: AddressPolicy,
    resolver: GuardedResolver,
    tls: Tls,
    origins: Origins,
    connect_timeout: Duration,
    total_timeout: Duration,
}

impl WebhookClient {
    /// A client with these options.
    ///
    /// # Errors
    /// Unreadable extra roots, or no usable TLS configuration.
    pub fn new(options: &WebhookClientOptions) -> Result<Self, ClientError> {
        let policy = AddressPolicy { allow_private: options.allow_private };
        let sender = Arc::new(Sender {
            policy,
            resolver: GuardedResolver::new(policy),
            tls: Tls::new(options.extra_roots_pem.as_deref())?,
            origins: Origins::default(),
            connect_timeout: options.connect_timeout,
            total_timeout: options.total_timeout,
        });
        Ok(Self { sender, threads: Arc::default() })
    }

    /// Makes the attempt. The duration is the time until the status, or until the attempt failed.
    /// Dropping the future closes its connection, or resets its stream.
    pub async fn attempt(&self, url: &WebhookUrl, body: Bytes) -> Attempt {
        let started = Instant::now();
        let Ok(url) = Url::parse(url.as_str()) else {
            return ended(started, DeliveryOutcome::Unresolved);
        };
        if !self.sender.policy.permits_host(&url) {
            return ended(started, DeliveryOutcome::Blocked);
        }
        let Some(target) = Target::of(url) else {
            return ended(started, DeliveryOutcome::Broken);
        };
        let sender = Arc::clone(&self.sender);
        if !target.secure {
            return Box::pin(sender.attempt(target, body, started)).await;
        }
        match self.threads.run(sender.attempt(target, body, started)) {
            Ok(task) => task.await.unwrap_or_else(|_panic| ended(started, DeliveryOutcome::Broken)),
            Err(_) => ended(started, DeliveryOutcome::LocalFailure),
        }
    }
}

fn ended(started: Instant, outcome: DeliveryOutcome) -> Attempt {
    let duration_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
    Attempt { outcome, status: None, duration_ms }
}

impl Sender {
    async fn attempt(self: Arc<Self>, target: Target, body: Bytes, started: Instant) -> Attempt {
        let (mut pause, mut at_once) = (PAUSE, AT_ONCE);
        loop {
            let left = self.total_timeout.saturating_sub(started.elapsed());
            let failure = match timeout(left, self.exchange(&target, body.clone())).await {
                Err(_elapsed) => return ended(started, DeliveryOutcome::TimedOut),
                Ok(Ok(answer)) => {
                    let success = answer.status.is_success();
                    let outcome = if success { DeliveryOutcome::Delivered } else { DeliveryOutcome::Rejected };
                    let attempt = Attempt { status: Some(answer.status.as_u16()), ..ended(started, outcome) };
                    drop(body);
                    answer.discard().await;
                    return attempt;
                }
                Ok(Err(failure)) => failure,
            };
            let at_last = match failure {
                Failure::Ended(outcome) => return ended(started, outcome),
                Failure::Unprocessed if at_once > 0 => {
                    at_once -= 1;
                    continue;
                }
                Failure::Local => DeliveryOutcome::LocalFailure,
                Failure::Refused | Failure::Unprocessed => DeliveryOutcome::TimedOut,
            };
            if started.elapsed() + pause >= self.total_timeout {
                return ended(started, at_last);
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn exchange(&self, target: &Target, body: Bytes) -> Result<Answer, Failure> {
        let until = tokio::time::Instant::now() + self.connect_timeout;
        let late = |_| Failure::Ended(DeliveryOutcome::Unreachable);
        if !target.secure {
            let stream = timeout_at(until, self.reach(target)).await.map_err(late)??;
            return http1::post(stream, target, body).await;
        }
        let origin = self.origins.at(target.authority.as_str());
        let way = timeout_at(until, origin.way(body.len() > SHARED_BYTES_MAX)).await.map_err(late)?;
        let slot = match way {
            Way::Send(slot) => slot,
            Way::Connect(connecting) => match timeout_at(until, Box::pin(self.open(target, connecting))).await.map_err(late)?? {
                Opened::Http1(stream) => return http1::post(*stream, target, body).await,
                Opened::Http2(slot) => slot,
            },
        };
        http2::post(slot, target, body).await
    }

    /// A TCP connection to an address of the host that is permitted.
    async fn reach(&self, target: &Target) -> Result<TcpStream, Failure> {
        let unreachable = |error| if is_local(&error) { Failure::Local } else { Failure::Ended(DeliveryOutcome::Unreachable) };
        let name = match target.host() {
            Some(Host::Domain(name)) => name,
            Some(Host::Ipv4(address)) => return connect(&[(address, 0).into()], target.port).await.map_err(unreachable),
            Some(Host::Ipv6(address)) => return connect(&[(address, 0).into()], target.port).await.map_err(unreachable),
            None => return Err(Failure::Ended(DeliveryOutcome::Unresolved)),
        };
        let addresses = self.resolver.addresses(name).await.map_err(|error| match *error {
            ResolveError::Blocked => Failure::Ended(DeliveryOutcome::Blocked),
            ResolveError::NotFound(_) if is_local(&*error) || is_starved() => Failure::Local,
            ResolveError::NotFound(_) => Failure::Ended(DeliveryOutcome::Unresolved),
        })?;
        connect(&addresses, target.port).await.map_err(|error| {
            self.resolver.forget(name);
            unreachable(error)
        })
    }

    /// A TLS connection, ready for a request.
    async fn open(&self, target: &Target, connecting: Connecting) -> Result<Opened, Failure> {
        let unreachable = Failure::Ended(DeliveryOutcome::Unreachable);
        let stream = self.reach(target).await?;
        let host = target.host().ok_or(unreachable)?;
        let shaken = self.tls.shake_hands(stream, &host, connecting.offer_http2).await;
        let (stream, protocol) = shaken.map_err(|error| if is_local(&error) { Failure::Local } else { unreachable })?;
        match protocol {
            Protocol::Http1 => {
                connecting.http1();
                Ok(Opened::Http1(Box::new(stream)))
            }
            Protocol::Http2 => match http2::begin(stream).await {
                Ok(begun) => {
                    let (slot, origin) = connecting.http2(begun.requests, Arc::clone(&begun.pulse));
                    tokio::spawn(drive(begun.connection, begun.pulse, origin, slot.id));
                    Ok(Opened::Http2(slot))
                }
                Err(_) => {
                    connecting.broke();
                    Err(Failure::Unprocessed)
                }
            },
        }
    }
}

/// A connection over TLS.
enum Opened {
    Http1(Box<tokio_rustls::client::TlsStream<TcpStream>>),
    Http2(Slot),
}
