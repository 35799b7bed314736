//! The one attempt to deliver a webhook (specification, "Delivery rules").
//!
//! An HTTP/1.1 connection carries one request: if the receiver closed a reused connection just as the
//! request is sent, the delivery would be lost, because it is never repeated. HTTP/2 says which requests
//! were not processed, so its connections carry many. Redirects and proxies are off. The status alone
//! decides the result, whatever happens to the body.
//!
//! A request is sent again, until its time is over, only when it provably did not reach the receiver's
//! application: when this machine has no file descriptor, port or memory for a connection, or when HTTP/2
//! says that the request was not processed.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::http_url::WebhookUrl;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout, timeout_at};
use url::{Host, Url};

use crate::connect::{connect, is_exhaustion, is_out_of_sockets};
use crate::error::ClientError;
use crate::exchange::{Answer, Failure, Target};
use crate::guard::AddressPolicy;
use crate::http1;
use crate::http2;
use crate::pool::{Checkout, Connecting, OriginPools, StreamSlot};
use crate::resolver::{GuardedResolver, ResolveError};
use crate::tls::{Protocol, Tls};
use crate::tls_runtime::TlsRuntime;

/// The first pause between two tries; it doubles each time.
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How often a request that was not processed is sent again without a pause, over another connection.
const IMMEDIATE_RETRIES: u32 = 3;
/// A larger body gets an HTTP/2 connection of its own: while the receiver does not read it, it fills the
/// flow-control window that all requests of a connection share (RFC 9113 §6.9.2).
const SHARED_BYTES_MAX: usize = 32 * 1_024;

/// How webhooks are sent.
#[derive(Clone, Debug)]
pub struct WebhookClientOptions {
    /// Whether non-public addresses may be connected to.
    pub allow_private: bool,
    /// Limit on name resolution, connection and TLS handshake together.
    pub connect_timeout: Duration,
    /// Limit on the time until the receiver's status, connecting included.
    pub total_timeout: Duration,
    /// PEM of certificate authorities that are trusted in addition to the system's.
    pub extra_roots_pem: Option<Vec<u8>>,
}

/// Makes the one attempt of a webhook.
pub trait SendWebhook: Debug + Send + Sync + 'static {
    /// Makes the attempt. Dropping the future ends it.
    fn attempt<'a>(&'a self, url: &'a WebhookUrl, body: Bytes) -> Pin<Box<dyn Future<Output = Attempt> + Send + 'a>>;
}

/// Sends webhooks. Clones share resolved names, HTTP/2 connections and TLS session tickets.
#[derive(Clone, Debug)]
pub struct WebhookClient {
    sender: Arc<Sender>,
    /// The last field, so that it is dropped last.
    tls_runtime: Arc<TlsRuntime>,
}

#[derive(Debug)]
struct Sender {
    policy: AddressPolicy,
    resolver: GuardedResolver,
    tls: Tls,
    pools: OriginPools,
    connect_timeout: Duration,
    total_timeout: Duration,
}

impl SendWebhook for WebhookClient {
    fn attempt<'a>(&'a self, url: &'a WebhookUrl, body: Bytes) -> Pin<Box<dyn Future<Output = Attempt> + Send + 'a>> {
        Box::pin(self.attempt(url, body))
    }
}

impl WebhookClient {
    /// Builds a client.
    ///
    /// # Errors
    /// The extra roots are unreadable, or TLS cannot be set up.
    pub fn new(options: &WebhookClientOptions) -> Result<Self, ClientError> {
        let policy = AddressPolicy { allow_private: options.allow_private };
        let sender = Arc::new(Sender {
            policy,
            resolver: GuardedResolver::new(policy),
            tls: Tls::new(options.extra_roots_pem.as_deref())?,
            pools: OriginPools::default(),
            connect_timeout: options.connect_timeout,
            total_timeout: options.total_timeout,
        });
        Ok(Self { sender, tls_runtime: Arc::default() })
    }

    /// Makes the attempt. Its duration ends with the status or the failure. Dropping the future closes the
    /// connection or resets the stream.
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
        match self.tls_runtime.run(sender.attempt(target, body, started)) {
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
        let (mut pause, mut immediate_retries) = (PAUSE, IMMEDIATE_RETRIES);
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
            let outcome = match failure {
                Failure::Ended(outcome) => return ended(started, outcome),
                Failure::Unprocessed if immediate_retries > 0 => {
                    immediate_retries -= 1;
                    continue;
                }
                Failure::Local => DeliveryOutcome::LocalFailure,
                Failure::Refused | Failure::Unprocessed => DeliveryOutcome::TimedOut,
            };
            if started.elapsed() + pause >= self.total_timeout {
                return ended(started, outcome);
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    async fn exchange(&self, target: &Target, body: Bytes) -> Result<Answer, Failure> {
        let until = tokio::time::Instant::now() + self.connect_timeout;
        let late = |_| Failure::Ended(DeliveryOutcome::Unreachable);
        if !target.secure {
            let stream = timeout_at(until, self.connect_tcp(target)).await.map_err(late)??;
            return http1::post(stream, target, body).await;
        }
        let pool = self.pools.get(target.authority.as_str());
        let checkout = timeout_at(until, pool.checkout(body.len() > SHARED_BYTES_MAX)).await.map_err(late)?;
        let slot = match checkout {
            Checkout::Reuse(slot) => slot,
            Checkout::Connect(connecting) => {
                match timeout_at(until, Box::pin(self.connect_tls(target, connecting))).await.map_err(late)?? {
                    TlsConnection::Http1(stream) => return http1::post(*stream, target, body).await,
                    TlsConnection::Http2(slot) => slot,
                }
            }
        };
        http2::post(slot, target, body).await
    }

    /// Connects to a permitted address of the host.
    async fn connect_tcp(&self, target: &Target) -> Result<TcpStream, Failure> {
        let unreachable = |error| if is_exhaustion(&error) { Failure::Local } else { Failure::Ended(DeliveryOutcome::Unreachable) };
        let name = match target.host() {
            Some(Host::Domain(name)) => name,
            Some(Host::Ipv4(address)) => return connect(&[(address, 0).into()], target.port).await.map_err(unreachable),
            Some(Host::Ipv6(address)) => return connect(&[(address, 0).into()], target.port).await.map_err(unreachable),
            None => return Err(Failure::Ended(DeliveryOutcome::Unresolved)),
        };
        let addresses = self.resolver.addresses(name).await.map_err(|error| match *error {
            ResolveError::Blocked => Failure::Ended(DeliveryOutcome::Blocked),
            ResolveError::NotFound(_) if is_exhaustion(&*error) || is_out_of_sockets() => Failure::Local,
            ResolveError::NotFound(_) => Failure::Ended(DeliveryOutcome::Unresolved),
        })?;
        connect(&addresses, target.port).await.map_err(|error| {
            self.resolver.forget(name);
            unreachable(error)
        })
    }

    /// Connects with TLS, ready for a request.
    async fn connect_tls(&self, target: &Target, connecting: Connecting) -> Result<TlsConnection, Failure> {
        let unreachable = Failure::Ended(DeliveryOutcome::Unreachable);
        let stream = self.connect_tcp(target).await?;
        let host = target.host().ok_or(unreachable)?;
        let connected = self.tls.handshake(stream, &host, connecting.offer_http2).await;
        let (stream, protocol) = connected.map_err(|error| if is_exhaustion(&error) { Failure::Local } else { unreachable })?;
        match protocol {
            Protocol::Http1 => {
                connecting.http1();
                Ok(TlsConnection::Http1(Box::new(stream)))
            }
            Protocol::Http2 => match http2::handshake(stream).await {
                Ok(http2::Handshake { requests, activity, connection }) => {
                    let (slot, pool) = connecting.http2(requests, Arc::clone(&activity));
                    tokio::spawn(http2::drive(connection, activity, pool, slot.id));
                    Ok(TlsConnection::Http2(slot))
                }
                Err(_) => {
                    connecting.failed();
                    Err(Failure::Unprocessed)
                }
            },
        }
    }
}

/// A connection over TLS.
enum TlsConnection {
    Http1(Box<tokio_rustls::client::TlsStream<TcpStream>>),
    Http2(StreamSlot),
}
