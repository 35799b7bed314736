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
//!
//! An attempt waits for no name server: [`SendWebhook::resolves`] does before it begins.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use sakshi_domain::delivery::{Attempt, DeliveryOutcome};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::limits::WEBHOOK_RESOLUTION_MAX;
use tokio::net::TcpStream;
use tokio::time::{Instant as Deadline, sleep, timeout_at};
use url::{Host, Url};

use crate::connect::{connect, is_exhaustion};
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
    /// Limit on connection and TLS handshake together.
    pub connect_timeout: Duration,
    /// Limit on the time until the receiver's status, connecting included.
    pub total_timeout: Duration,
    /// PEM of certificate authorities that are trusted in addition to the system's.
    pub extra_roots_pem: Option<Vec<u8>>,
}

/// Makes the one attempt of a webhook.
pub trait SendWebhook: Debug + Send + Sync + 'static {
    /// Waits until the receiver's name resolves or fails for good. Returns `false` when this installation's resolver has failed
    /// until [`WEBHOOK_RESOLUTION_MAX`] after `since`, or until an attempt's time has passed since then.
    fn resolves(&self, _origin: &str, _since: Deadline) -> BoxFuture<'static, bool> {
        ready(true).boxed()
    }

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
    fn resolves(&self, origin: &str, since: Deadline) -> BoxFuture<'static, bool> {
        let sender = Arc::clone(&self.sender);
        let until = since + sender.total_timeout.min(WEBHOOK_RESOLUTION_MAX);
        match Url::parse(origin) {
            Ok(url) if sender.policy.permits_host(&url) => async move { sender.resolves(&url, until).await }.boxed(),
            // Its attempt sends nothing.
            _ => ready(true).boxed(),
        }
    }

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
        Self::resolving(options, GuardedResolver::new(AddressPolicy { allow_private: options.allow_private }))
    }

    fn resolving(options: &WebhookClientOptions, resolver: GuardedResolver) -> Result<Self, ClientError> {
        let sender = Arc::new(Sender {
            policy: AddressPolicy { allow_private: options.allow_private },
            resolver,
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
    async fn resolves(&self, url: &Url, until: Deadline) -> bool {
        match url.host() {
            Some(Host::Domain(name)) => self.resolver.answers(name, until).await,
            _ => true,
        }
    }

    async fn attempt(self: Arc<Self>, target: Target, body: Bytes, started: Instant) -> Attempt {
        let (mut pause, mut immediate_retries) = (PAUSE, IMMEDIATE_RETRIES);
        let end = Deadline::from_std(started) + self.total_timeout;
        loop {
            let failure = match self.exchange(&target, body.clone(), end).await {
                Ok(answer) => {
                    let success = answer.status.is_success();
                    let outcome = if success { DeliveryOutcome::Delivered } else { DeliveryOutcome::Rejected };
                    let attempt = Attempt { status: Some(answer.status.as_u16()), ..ended(started, outcome) };
                    drop(body);
                    answer.discard().await;
                    return attempt;
                }
                Err(failure) => failure,
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

    /// Sends the request once. An attempt that ends before it has a connection has sent nothing, so it is not `timed_out`.
    async fn exchange(&self, target: &Target, body: Bytes, end: Deadline) -> Result<Answer, Failure> {
        let until = end.min(Deadline::now() + self.connect_timeout);
        let late = |_| Failure::Ended(DeliveryOutcome::Unreachable);
        let unanswered = |_| Failure::Ended(DeliveryOutcome::TimedOut);
        if !target.secure {
            let stream = timeout_at(until, self.connect_tcp(target)).await.map_err(late)??;
            return timeout_at(end, http1::post(stream, target, body)).await.map_err(unanswered)?;
        }
        let pool = self.pools.get(target.authority.as_str());
        let checkout = timeout_at(until, pool.checkout(body.len() > SHARED_BYTES_MAX)).await.map_err(late)?;
        let slot = match checkout {
            Checkout::Reuse(slot) => slot,
            Checkout::Connect(connecting) => {
                match timeout_at(until, Box::pin(self.connect_tls(target, connecting))).await.map_err(late)?? {
                    TlsConnection::Http1(stream) => {
                        return timeout_at(end, http1::post(*stream, target, body)).await.map_err(unanswered)?;
                    }
                    TlsConnection::Http2(slot) => slot,
                }
            }
        };
        timeout_at(end, http2::post(slot, target, body)).await.map_err(unanswered)?
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
        let addresses = self.resolver.addresses(name).await.map_err(|error| match error {
            ResolveError::Blocked => Failure::Ended(DeliveryOutcome::Blocked),
            ResolveError::Exhausted => Failure::Local,
            ResolveError::NotFound | ResolveError::Unavailable => Failure::Ended(DeliveryOutcome::Unresolved),
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

#[cfg(test)]
mod tests {
    use sakshi_domain::http_url::Schemes;

    use super::*;

    fn failing(total_timeout: Duration) -> WebhookClient {
        let options = WebhookClientOptions { allow_private: true, connect_timeout: total_timeout, total_timeout, extra_roots_pem: None };
        let policy = AddressPolicy { allow_private: true };
        WebhookClient::resolving(&options, GuardedResolver::finding(policy, Arc::new(|_| Err(ResolveError::Unavailable)))).unwrap()
    }

    fn url(text: &str) -> WebhookUrl {
        WebhookUrl::parse(text, Schemes::HttpAndHttps).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_may_take_thirty_seconds_and_no_longer_than_an_attempt() {
        for (total, most) in [(100, 30), (7, 7_u32)] {
            let (client, began) = (failing(Duration::from_secs(total)), Deadline::now());
            assert!(!client.resolves("https://a.example", began).await);
            let waited = began.elapsed().as_secs_f64();
            assert!(waited <= f64::from(most) && waited > f64::from(most) - 2.0, "{waited} of {most}");
            let since = began - Duration::from_secs(most.into());
            assert!(client.resolves("https://a.example", since).now_or_never().is_some_and(|resolves| !resolves));
        }
    }

    #[tokio::test]
    async fn a_receiver_without_a_name_waits_for_no_resolver() {
        for text in ["http://127.0.0.1", "https://[::1]:8443"] {
            let resolves = failing(Duration::from_secs(1)).resolves(text, Deadline::now());
            assert_eq!(resolves.now_or_never(), Some(true), "{text}");
        }
    }

    #[tokio::test]
    async fn an_attempt_whose_name_does_not_resolve_ends_at_once() {
        let client = failing(Duration::from_secs(100));
        for text in ["http://a.example/", "https://a.example/"] {
            let attempt = client.attempt(&url(text), Bytes::new()).await;
            assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Unresolved, None), "{text}");
        }
    }
}
