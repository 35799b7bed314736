//! The one attempt to deliver a webhook (specification, "Delivery rules").
//!
//! An HTTP/1.1 connection carries one request. If the receiver closed a reused connection just as the request is sent,
//! the delivery would be lost, because it is never repeated. HTTP/2 names the requests that were not processed, so its
//! connections carry many. Redirects are not followed. The status alone decides the result, whatever happens to the
//! response body.
//!
//! A request is sent again, until its time is over, only when it provably did not reach the receiver's application.
//! Either this machine has no file descriptor, port or memory for a connection, or HTTP/2 says that the request was not
//! processed.
//!
//! An attempt does not wait for name servers that fail. [`SendWebhook::wait_for_resolution`] does so before it.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use hyper::Uri;
use hyper_util::client::proxy::matcher::Intercept;
use sakshi_domain::delivery::{Attempt, AttemptPart, DeliveryOutcome, FailureReason};
use sakshi_domain::http_url::WebhookUrl;
use sakshi_domain::limits::WEBHOOK_RESOLUTION_MAX;
use tokio::net::TcpStream;
use tokio::time::{Instant as TokioInstant, sleep, timeout_at};
use url::{Host, Url};

use crate::connect::connect;
use crate::egress::Egress;
use crate::error::ClientError;
use crate::exchange::{Answer, Target};
use crate::failure::{Failure, is_exhaustion};
use crate::guard::AddressPolicy;
use crate::http1;
use crate::http2;
use crate::pool::{Checkout, Connecting, OriginPools, StreamSlot};
use crate::resolver::{Addresses, GuardedResolver, ResolveError};
use crate::tls::{Protocol, Tls};
use crate::tls_runtime::TlsRuntime;
use crate::tunnel;

/// The first pause between two tries; it doubles each time.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Number of times that an unprocessed request is sent again without a pause, over another connection.
const IMMEDIATE_RETRIES: u32 = 3;
/// Size in bytes above which a body gets an HTTP/2 connection of its own. A body that the receiver does not read fills
/// the flow-control window that all requests of a connection share (RFC 9113 §6.9.2).
const SHARED_BYTES_MAX: usize = 32 * 1_024;

/// Options of the webhook client.
#[derive(Clone, Debug)]
pub struct WebhookClientOptions {
    /// True to allow connections to non-public addresses.
    pub allow_private: bool,
    /// Limit on connection and TLS handshake together.
    pub connect_timeout: Duration,
    /// Limit on the time until the receiver's status, connecting included.
    pub total_timeout: Duration,
    /// Settings of outgoing connections.
    pub egress: Egress,
}

/// Sender of webhooks, which makes one attempt each.
pub trait SendWebhook: Debug + Send + Sync + 'static {
    /// Waits for name servers that fail: until the receiver's name resolves, or they answer that it does not exist.
    /// Behind a proxy, the proxy's name counts. Returns `false` when they still fail after the shorter of
    /// [`WEBHOOK_RESOLUTION_MAX`] and an attempt's time, both from `since`. By default there is no wait.
    fn wait_for_resolution(&self, _origin: &str, _since: TokioInstant) -> BoxFuture<'static, bool> {
        ready(true).boxed()
    }

    /// Makes the attempt. Dropping the future ends it.
    fn attempt<'a>(&'a self, url: &'a WebhookUrl, body: Bytes) -> Pin<Box<dyn Future<Output = Attempt> + Send + 'a>>;
}

/// Client that sends webhooks. Clones share resolved names, HTTP/2 connections and TLS session tickets.
#[derive(Clone, Debug)]
pub struct WebhookClient {
    sender: Arc<Sender>,
    /// The last field, so that it is dropped last.
    tls_runtime: Arc<TlsRuntime>,
}

/// The state that clones of a client share.
#[derive(Debug)]
struct Sender {
    policy: AddressPolicy,
    resolver: GuardedResolver,
    /// Resolver for the proxy. The operator chose the proxy, so any address is allowed.
    proxy_resolver: GuardedResolver,
    egress: Egress,
    tls: Tls,
    pools: OriginPools,
    connect_timeout: Duration,
    total_timeout: Duration,
}

impl SendWebhook for WebhookClient {
    fn wait_for_resolution(&self, origin: &str, since: TokioInstant) -> BoxFuture<'static, bool> {
        let sender = Arc::clone(&self.sender);
        let deadline = since + sender.total_timeout.min(WEBHOOK_RESOLUTION_MAX);
        match Url::parse(origin) {
            Ok(url) if sender.policy.permits_host(&url) => {
                async move { sender.wait_for_resolution(&url, deadline).await }.boxed()
            }
            // No wait is needed, because the attempt will send nothing.
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
    /// [`ClientError`] when TLS cannot be set up.
    pub fn new(options: &WebhookClientOptions) -> Result<Self, ClientError> {
        let resolver = |allow_private| GuardedResolver::new(AddressPolicy { allow_private });
        Self::with_resolvers(options, [resolver(options.allow_private), resolver(true)])
    }

    /// Builds a client with a resolver for receivers, and one for the proxy.
    fn with_resolvers(
        options: &WebhookClientOptions,
        [resolver, proxy_resolver]: [GuardedResolver; 2],
    ) -> Result<Self, ClientError> {
        let sender = Arc::new(Sender {
            policy: AddressPolicy { allow_private: options.allow_private },
            resolver,
            proxy_resolver,
            tls: Tls::new(&options.egress)?,
            egress: options.egress.clone(),
            pools: OriginPools::default(),
            connect_timeout: options.connect_timeout,
            total_timeout: options.total_timeout,
        });
        Ok(Self { sender, tls_runtime: Arc::default() })
    }

    /// Makes the attempt. Its duration ends with the status or the failure. Dropping the future closes the connection
    /// or resets the stream.
    pub async fn attempt(&self, url: &WebhookUrl, body: Bytes) -> Attempt {
        let started = Instant::now();
        // A failure outside the parts of an attempt, such as the connection or TLS.
        let fail = |outcome, reason| Attempt::unanswered(outcome, reason, None, elapsed_ms(started));
        let Ok(url) = Url::parse(url.as_str()) else {
            return fail(DeliveryOutcome::Unresolved, FailureReason::Dns);
        };
        if !self.sender.policy.permits_host(&url) {
            return fail(DeliveryOutcome::Blocked, FailureReason::Blocked);
        }
        let Some(target) = Target::parse(url) else {
            return fail(DeliveryOutcome::Broken, FailureReason::Unknown);
        };
        let sender = Arc::clone(&self.sender);
        if !target.secure {
            return Box::pin(sender.attempt(target, body, started)).await;
        }
        match self.tls_runtime.run(sender.attempt(target, body, started)) {
            Ok(task) => task.await.unwrap_or_else(|_panic| fail(DeliveryOutcome::Broken, FailureReason::Unknown)),
            Err(_no_thread) => fail(DeliveryOutcome::LocalFailure, FailureReason::Local),
        }
    }
}

fn elapsed_ms(started: Instant) -> u32 {
    u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX)
}

/// Runs one part of an attempt until the deadline. Then the outcome is `timed_out` if the webhook may have been sent,
/// and `unreachable` before.
async fn run_part<T>(
    deadline: TokioInstant,
    part: AttemptPart,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let timeout_outcome =
        if part == AttemptPart::Answer { DeliveryOutcome::TimedOut } else { DeliveryOutcome::Unreachable };
    timeout_at(deadline, work).await.unwrap_or(Err(Failure::Ended(timeout_outcome, FailureReason::TimedOut, part)))
}

impl Sender {
    /// Waits for name servers that fail: for the name of the proxy or, without one, of the receiver. An address needs
    /// none.
    async fn wait_for_resolution(&self, url: &Url, deadline: TokioInstant) -> bool {
        let proxy = Uri::try_from(url.as_str()).ok().and_then(|uri| self.egress.proxy_for(&uri));
        let proxy_url = proxy.as_ref().and_then(proxy_url);
        let (resolver, host) = match &proxy {
            Some(_) => (&self.proxy_resolver, proxy_url.as_ref().and_then(Url::host)),
            None => (&self.resolver, url.host()),
        };
        match host {
            Some(Host::Domain(name)) => resolver.wait_for_answer(name, deadline).await,
            _ => true,
        }
    }

    /// Sends the request, and again after failures that prove that the receiver did not process it.
    async fn attempt(self: Arc<Self>, target: Target, body: Bytes, started: Instant) -> Attempt {
        let (mut pause, mut immediate_retries_left) = (PAUSE_FIRST, IMMEDIATE_RETRIES);
        let deadline = TokioInstant::from_std(started) + self.total_timeout;
        loop {
            let failure = match self.exchange(&target, body.clone(), deadline).await {
                Ok(answer) => {
                    let attempt = Attempt::from_status(answer.status.as_u16(), elapsed_ms(started));
                    drop(body);
                    answer.drain_body().await;
                    return attempt;
                }
                Err(failure) => failure,
            };
            let (outcome, reason, part) = match failure {
                Failure::Ended(outcome, reason, part) => {
                    return Attempt::unanswered(outcome, reason, Some(part), elapsed_ms(started));
                }
                Failure::Unprocessed if immediate_retries_left > 0 => {
                    immediate_retries_left -= 1;
                    continue;
                }
                Failure::Local => (DeliveryOutcome::LocalFailure, FailureReason::Local, AttemptPart::Connection),
                Failure::Refused | Failure::Unprocessed => {
                    (DeliveryOutcome::TimedOut, FailureReason::TimedOut, AttemptPart::Answer)
                }
            };
            if started.elapsed() + pause >= self.total_timeout {
                return Attempt::unanswered(outcome, reason, Some(part), elapsed_ms(started));
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Sends the request once.
    async fn exchange(&self, target: &Target, body: Bytes, deadline: TokioInstant) -> Result<Answer, Failure> {
        let connect_deadline = deadline.min(TokioInstant::now() + self.connect_timeout);
        if !target.secure {
            let stream = self.connect_tcp(target, connect_deadline).await?;
            return run_part(deadline, AttemptPart::Answer, http1::post(stream, target, body)).await;
        }
        let pool = self.pools.get(target.authority.as_str());
        let exclusive = body.len() > SHARED_BYTES_MAX;
        let checkout = async { Ok(pool.checkout(exclusive).await) };
        let slot = match run_part(connect_deadline, AttemptPart::Connection, checkout).await? {
            Checkout::Reuse(slot) => slot,
            Checkout::Connect(connecting) => {
                match Box::pin(self.connect_tls(target, connecting, connect_deadline)).await? {
                    TlsConnection::Http1(stream) => {
                        return run_part(deadline, AttemptPart::Answer, http1::post(*stream, target, body)).await;
                    }
                    TlsConnection::Http2(slot) => slot,
                }
            }
        };
        run_part(deadline, AttemptPart::Answer, http2::post(slot, target, body)).await
    }

    /// Connects to the receiver: through the proxy, or to a permitted address of its host.
    async fn connect_tcp(&self, target: &Target, deadline: TokioInstant) -> Result<TcpStream, Failure> {
        match self.egress.proxy_for(&target.uri) {
            Some(proxy) => self.connect_through(&proxy, target, deadline).await,
            None => self.connect_directly(target, deadline).await,
        }
    }

    async fn connect_directly(&self, target: &Target, deadline: TokioInstant) -> Result<TcpStream, Failure> {
        let host = target.host().ok_or(UNRESOLVED)?;
        let addresses = async {
            find_addresses(&self.resolver, &host).await.map_err(|error| match error {
                ResolveError::Blocked => {
                    Failure::Ended(DeliveryOutcome::Blocked, FailureReason::Blocked, AttemptPart::Name)
                }
                ResolveError::Exhausted => Failure::Local,
                ResolveError::NotFound | ResolveError::Unavailable => UNRESOLVED,
            })
        };
        let addresses = run_part(deadline, AttemptPart::Name, addresses).await?;
        let connecting = async {
            connect(&addresses, target.port)
                .await
                .map_err(|error| Failure::from_connect_error(&error, AttemptPart::Connection))
        };
        let connected = run_part(deadline, AttemptPart::Connection, connecting).await;
        if let (Err(_), Host::Domain(name)) = (&connected, host) {
            self.resolver.forget(name);
        }
        connected
    }

    async fn connect_through(
        &self,
        proxy: &Intercept,
        target: &Target,
        deadline: TokioInstant,
    ) -> Result<TcpStream, Failure> {
        let connecting = async {
            let url = proxy_url(proxy).ok_or(tunnel::NO_TUNNEL)?;
            let (host, port) = (url.host().ok_or(tunnel::NO_TUNNEL)?, url.port_or_known_default().unwrap_or_default());
            let addresses = find_addresses(&self.proxy_resolver, &host).await.map_err(|error| match error {
                ResolveError::Exhausted => Failure::Local,
                ResolveError::Blocked | ResolveError::NotFound | ResolveError::Unavailable => tunnel::NO_TUNNEL,
            })?;
            connect(&addresses, port)
                .await
                .map_err(|error| if is_exhaustion(&error) { Failure::Local } else { tunnel::NO_TUNNEL })
        };
        let stream = timeout_at(deadline, connecting).await.map_err(|_| tunnel::NO_TUNNEL)??;
        // The proxy itself may wait for a receiver that does not answer.
        run_part(deadline, AttemptPart::Proxy, tunnel::open(stream, proxy, target)).await
    }

    /// Connects with TLS, ready for a request.
    async fn connect_tls(
        &self,
        target: &Target,
        connecting: Connecting,
        deadline: TokioInstant,
    ) -> Result<TlsConnection, Failure> {
        let stream = self.connect_tcp(target, deadline).await?;
        let handshake = async {
            let host = target.host().ok_or(Failure::Unprocessed)?;
            let connected = self.tls.handshake(stream, &host, connecting.offer_http2).await;
            connected.map_err(|error| Failure::from_connect_error(&error, AttemptPart::Tls))
        };
        let (stream, protocol) = run_part(deadline, AttemptPart::Tls, handshake).await?;
        match protocol {
            Protocol::Http1 => {
                connecting.finish_with_http1();
                Ok(TlsConnection::Http1(Box::new(stream)))
            }
            Protocol::Http2 => {
                let settings = async { Ok(http2::handshake(stream).await) };
                match run_part(deadline, AttemptPart::Connection, settings).await? {
                    Ok(http2::Handshake { requests, activity, connection }) => {
                        let (slot, pool) = connecting.finish_with_http2(requests, Arc::clone(&activity));
                        tokio::spawn(http2::drive(connection, activity, pool, slot.id));
                        Ok(TlsConnection::Http2(slot))
                    }
                    Err(_) => {
                        connecting.finish_with_failure();
                        Err(Failure::Unprocessed)
                    }
                }
            }
        }
    }
}

/// The failure for a host name without an address.
const UNRESOLVED: Failure = Failure::Ended(DeliveryOutcome::Unresolved, FailureReason::Dns, AttemptPart::Name);

fn proxy_url(proxy: &Intercept) -> Option<Url> {
    Url::parse(&proxy.uri().to_string()).ok()
}

/// Returns the addresses of a host. Their ports mean nothing.
async fn find_addresses(resolver: &GuardedResolver, host: &Host<&str>) -> Addresses {
    match host {
        Host::Domain(name) => resolver.addresses(name).await,
        Host::Ipv4(address) => Ok(Arc::new([(*address, 0).into()])),
        Host::Ipv6(address) => Ok(Arc::new([(*address, 0).into()])),
    }
}

/// A connection over TLS, with the agreed version of HTTP.
enum TlsConnection {
    Http1(Box<tokio_rustls::client::TlsStream<TcpStream>>),
    /// The right to send one request on a connection of the pool.
    Http2(StreamSlot),
}

#[cfg(test)]
mod tests {
    use sakshi_domain::http_url::Schemes;

    use super::*;
    use crate::egress::EgressOptions;

    fn client_with_failing_resolver(total_timeout: Duration) -> WebhookClient {
        client_with_failing_resolvers(total_timeout, None, [ResolveError::Unavailable; 2])
    }

    /// Builds a client whose resolvers fail: that for receivers with the first error, that for the proxy with the
    /// second.
    fn client_with_failing_resolvers(
        total_timeout: Duration,
        proxy: Option<&str>,
        errors: [ResolveError; 2],
    ) -> WebhookClient {
        let proxy = proxy.map(|proxy| Url::parse(proxy).unwrap());
        let options = WebhookClientOptions {
            allow_private: true,
            connect_timeout: total_timeout,
            total_timeout,
            egress: Egress::new(&EgressOptions { proxy, ..EgressOptions::default() }).unwrap(),
        };
        let policy = AddressPolicy { allow_private: true };
        let resolvers = errors.map(|error| GuardedResolver::with_lookup(policy, Arc::new(move |_| Err(error))));
        WebhookClient::with_resolvers(&options, resolvers).unwrap()
    }

    fn url(text: &str) -> WebhookUrl {
        WebhookUrl::parse(text, Schemes::HttpAndHttps).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_lookup_is_given_up_after_thirty_seconds_or_the_time_of_an_attempt() {
        for (total_timeout, longest_wait) in
            [(100, 30), (7, 7)].map(|(total, longest)| (Duration::from_secs(total), Duration::from_secs(longest)))
        {
            let (client, began) = (client_with_failing_resolver(total_timeout), TokioInstant::now());
            assert!(!client.wait_for_resolution("https://a.example", began).await);
            let waited = began.elapsed();
            // The last pause before the limit is not begun.
            assert!(waited <= longest_wait && waited > longest_wait - Duration::from_secs(2), "{waited:?}");
            let long_ago = began - longest_wait;
            assert_eq!(client.wait_for_resolution("https://a.example", long_ago).now_or_never(), Some(false));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_proxy_a_webhook_waits_for_the_name_of_the_proxy_alone() {
        use ResolveError::{NotFound, Unavailable};
        for (proxy, errors, expected) in [
            ("http://proxy.example:3128", [NotFound, Unavailable], false),
            ("http://proxy.example:3128", [Unavailable, NotFound], true),
            ("http://192.0.2.1:3128", [Unavailable; 2], true),
        ] {
            let client = client_with_failing_resolvers(Duration::from_secs(100), Some(proxy), errors);
            let began = TokioInstant::now();
            assert_eq!(client.wait_for_resolution("https://a.example", began).await, expected, "{proxy} {errors:?}");
            assert_eq!(began.elapsed() > Duration::from_secs(28), !expected, "{proxy} {errors:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_without_resources_to_look_up_its_proxy_tries_again() {
        let errors = [ResolveError::NotFound, ResolveError::Exhausted];
        let client =
            client_with_failing_resolvers(Duration::from_millis(100), Some("http://proxy.example:3128"), errors);
        let attempt = client.attempt(&url("http://a.example/"), Bytes::new()).await;
        assert_eq!(
            (attempt.outcome, attempt.failure.map(|failure| failure.reason)),
            (DeliveryOutcome::LocalFailure, Some(FailureReason::Local))
        );
    }

    #[tokio::test]
    async fn a_receiver_given_by_its_address_does_not_wait_for_a_resolver() {
        for text in ["http://127.0.0.1", "https://[::1]:8443"] {
            let client = client_with_failing_resolver(Duration::from_secs(1));
            let wait = client.wait_for_resolution(text, TokioInstant::now());
            assert_eq!(wait.now_or_never(), Some(true), "{text}");
        }
    }

    #[tokio::test]
    async fn an_attempt_whose_name_does_not_resolve_ends_at_once() {
        let client = client_with_failing_resolver(Duration::from_secs(100));
        for text in ["http://a.example/", "https://a.example/"] {
            let attempt = client.attempt(&url(text), Bytes::new()).await;
            assert_eq!((attempt.outcome, attempt.status), (DeliveryOutcome::Unresolved, None), "{text}");
        }
    }
}
