//! Rate limits per app and per address, and the address that a request is counted under. A limit of 0 means no limit.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::web::Data;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use ipnet::IpNet;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_service::budget::Owner;

use super::error::ApiError;
use super::event_stream::StreamSlots;

/// Keys kept before unused ones are dropped for the first time.
const KEYS_KEPT: usize = 10_000;

/// A limit per key, shared by all workers of the process.
#[derive(Clone)]
pub struct RateLimit<K: Hash + Eq + Clone + Send + Sync + 'static>(Option<Arc<Limiter<K>>>);

struct Limiter<K: Hash + Eq + Clone + Send + Sync + 'static> {
    limiter: DefaultKeyedRateLimiter<K>,
    /// The largest burst.
    burst: NonZeroU32,
    /// Forgetting visits every key, so it is done when their number has doubled since the last time.
    forget_above: AtomicUsize,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Limiter<K> {
    fn forget_unused(&self) {
        if self.limiter.len() > self.forget_above.load(Ordering::Relaxed) {
            self.limiter.retain_recent();
            self.forget_above.store(self.limiter.len().saturating_mul(2).max(KEYS_KEPT), Ordering::Relaxed);
        }
    }
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> RateLimit<K> {
    /// At most `per_second` with bursts of as many; 0 for no limit.
    #[must_use]
    pub fn per_second(per_second: u32) -> Self {
        Self::of(per_second, Quota::per_second)
    }

    /// At most `per_minute` with bursts of as many; 0 for no limit.
    #[must_use]
    pub fn per_minute(per_minute: u32) -> Self {
        Self::of(per_minute, Quota::per_minute)
    }

    fn of(rate: u32, quota: fn(NonZeroU32) -> Quota) -> Self {
        Self(NonZeroU32::new(rate).map(|burst| {
            let (limiter, forget_above) = (RateLimiter::keyed(quota(burst)), AtomicUsize::new(KEYS_KEPT));
            Arc::new(Limiter { limiter, burst, forget_above })
        }))
    }

    /// Counts one.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`].
    pub fn take(&self, key: &K) -> Result<(), ApiError> {
        self.take_cost(key, NonZeroU32::MIN)
    }

    /// Counts what a request costs beyond the one that was counted for it, but never more than a whole burst.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`].
    pub fn take_extra(&self, key: &K, cost: NonZeroU32) -> Result<(), ApiError> {
        // A request that costs more than a burst would otherwise never pass.
        let beyond_one = self.0.as_ref().and_then(|limiter| NonZeroU32::new(limiter.burst.get() - 1));
        beyond_one.map_or(Ok(()), |most| self.take_cost(key, cost.min(most)))
    }

    fn take_cost(&self, key: &K, cost: NonZeroU32) -> Result<(), ApiError> {
        let Some(limiter) = &self.0 else { return Ok(()) };
        limiter.forget_unused();
        // The cost is never larger than a burst.
        limiter.limiter.check_key_n(key, cost).unwrap_or(Ok(())).map_err(|wait| {
            let retry_after = wait.wait_time_from(DefaultClock::default().now()).max(Duration::from_millis(1));
            ApiError::RateLimited { retry_after }
        })
    }
}

/// The limits of clients that have one of their own, shared by all workers of the process. A client whose limit changes begins
/// anew.
#[derive(Clone, Default)]
pub struct ClientRates(Arc<Mutex<RatesByClient>>);

type RatesByClient = HashMap<ClientId, (NonZeroU32, RateLimit<()>)>;

impl ClientRates {
    /// Counts a request of this client, if it has a limit.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`].
    pub fn take(&self, client: &ClientId, per_second: Option<NonZeroU32>) -> Result<(), ApiError> {
        let Some(per_second) = per_second else { return Ok(()) };
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = || (per_second, RateLimit::per_second(per_second.get()));
        let known = rates.entry(client.clone()).or_insert_with(begin);
        if known.0 != per_second {
            *known = begin();
        }
        let rate = known.1.clone();
        drop(rates);
        rate.take(&())
    }
}

/// The subscriber at an address: of an IPv6 address the /64 network, which belongs to one subscriber.
#[must_use]
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from(u128::from(six) >> 64 << 64).into(),
        four => four,
    }
}

/// The address of the connection, whatever the headers say.
fn peer(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.ip().to_canonical())
}

/// All limits of the public listener by who asks.
#[derive(Clone)]
pub struct RateLimits {
    /// Requests to the API by client.
    pub clients: ClientRates,
    /// `POST /init` by app.
    pub init: RateLimit<AppId>,
    /// Requests that cost no credit and yet something: orders to upstreams, questions to sources and new events, by client.
    pub orders: RateLimit<ClientId>,
    /// `GET /result` by app.
    pub polls: RateLimit<AppId>,
    /// The identity app's callbacks by transaction.
    pub callbacks: RateLimit<TxnId>,
    /// Callbacks to what is no callback address, by address.
    pub stray_callbacks: RateLimit<IpAddr>,
    /// Pages by address.
    pub pages: RateLimit<IpAddr>,
    /// Verifications that guests start, each at the cost of a credit, by event and address.
    pub event_starts: RateLimit<(EventId, IpAddr)>,
    /// The same by event alone.
    pub starts_of_events: RateLimit<EventId>,
    /// Refused requests that are kept for developers, by app.
    pub refusals: RateLimit<AppId>,
    /// Attempts to sign in to the portal by address.
    pub sign_ins: RateLimit<IpAddr>,
    /// Event streams.
    pub streams: StreamSlots,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: TrustedProxies,
}

/// Peers whose `X-Forwarded-For` is believed.
pub type TrustedProxies = Arc<[IpNet]>;

/// The owner of a request that nobody has authenticated: its address. A listener without rate limits takes the peer's.
pub(crate) fn sender(request: &HttpRequest) -> Owner {
    let rates = request.app_data::<Data<RateLimits>>();
    Owner::Address(rates.map_or_else(|| peer(request), |rates| rates.client_address(request)))
}

impl RateLimits {
    /// No limits, and no trusted proxies.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            clients: ClientRates::default(),
            init: RateLimit::per_second(0),
            orders: RateLimit::per_second(0),
            polls: RateLimit::per_second(0),
            callbacks: RateLimit::per_second(0),
            stray_callbacks: RateLimit::per_second(0),
            pages: RateLimit::per_second(0),
            event_starts: RateLimit::per_second(0),
            starts_of_events: RateLimit::per_minute(0),
            refusals: RateLimit::per_second(0),
            sign_ins: RateLimit::per_minute(0),
            streams: StreamSlots::new(usize::MAX),
            trusted_proxies: Arc::default(),
        }
    }

    /// The address of the client behind a request: the peer's, or the last address of `X-Forwarded-For` that is no trusted
    /// proxy's. Of an IPv6 address the /64 network, which belongs to one subscriber.
    #[must_use]
    pub fn client_address(&self, request: &HttpRequest) -> IpAddr {
        subscriber(self.host(request))
    }

    /// The address behind a request.
    #[must_use]
    pub fn host(&self, request: &HttpRequest) -> IpAddr {
        host(request, &self.trusted_proxies)
    }
}

/// The address behind a request: the peer's, or the last one of `X-Forwarded-For` that is no trusted proxy's.
#[must_use]
pub fn host(request: &HttpRequest, trusted_proxies: &[IpNet]) -> IpAddr {
    let peer = peer(request);
    let trusted = |address: &IpAddr| trusted_proxies.iter().any(|net| net.contains(address));
    if !trusted(&peer) {
        return peer;
    }
    let forwarded = request.headers().get_all("x-forwarded-for").filter_map(|value| value.to_str().ok());
    let hops: Vec<&str> = forwarded.flat_map(|value| value.split(',')).map(str::trim).collect();
    let mut address = peer;
    for hop in hops.into_iter().rev() {
        let Ok(hop) = hop.parse::<IpAddr>() else { break };
        address = hop.to_canonical();
        if !trusted(&address) {
            break;
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn rates() -> RateLimits {
        RateLimits { trusted_proxies: ["10.0.0.0/8".parse().unwrap()].into(), ..RateLimits::unlimited() }
    }

    fn seen(peer: &str, forwarded: &str) -> String {
        let request = TestRequest::default().peer_addr(format!("{peer}:1").parse().unwrap()).insert_header(("x-forwarded-for", forwarded));
        rates().client_address(&request.to_http_request()).to_string()
    }

    #[test]
    fn a_client_has_its_own_limit_and_a_change_of_it_counts_at_once() {
        let (rates, client) = (ClientRates::default(), ClientId::generate());
        let take = |most| rates.take(&client, NonZeroU32::new(most)).is_ok();
        assert!((0..100).all(|_| take(0)), "without a limit");
        assert!(take(2) && take(2) && !take(2));
        assert!(rates.take(&ClientId::generate(), NonZeroU32::new(2)).is_ok(), "another client");
        assert!(take(1) && !take(1));
    }

    #[test]
    fn forwarded_for_of_an_untrusted_peer_is_ignored() {
        assert_eq!(seen("203.0.113.9", "1.2.3.4"), "203.0.113.9");
    }

    #[test]
    fn behind_trusted_proxies_the_last_untrusted_hop_counts() {
        assert_eq!(seen("10.0.0.1", "6.6.6.6, 198.51.100.7, 10.2.3.4"), "198.51.100.7");
        assert_eq!(seen("10.0.0.1", "garbage"), "10.0.0.1");
    }

    #[test]
    fn an_ipv6_subscriber_is_one_network_and_a_mapped_ipv4_address_is_itself() {
        assert_eq!(seen("[2001:db8:1:2:3:4:5:6]", ""), "2001:db8:1:2::");
        assert_eq!(seen("[::ffff:203.0.113.9]", ""), "203.0.113.9");
        assert_eq!(seen("10.0.0.1", "::ffff:198.51.100.7"), "198.51.100.7");
    }

    #[test]
    fn what_costs_more_takes_more_and_never_more_than_there_can_be() {
        let (rate, app) = (RateLimit::per_minute(5), AppId::generate());
        let cost = |cost| NonZeroU32::new(cost).unwrap();
        assert!(
            rate.take_extra(&app, cost(3)).is_ok() && rate.take_extra(&app, cost(3)).is_err() && rate.take_extra(&app, cost(2)).is_ok()
        );
        assert!(rate.take(&app).is_err());
        for (most, other) in [(1, AppId::generate()), (5, AppId::generate())] {
            let rate = RateLimit::per_minute(most);
            assert!(rate.take(&other).is_ok() && rate.take_extra(&other, cost(9)).is_ok(), "{most}");
        }
    }

    #[test]
    fn one_more_than_the_rate_is_refused_and_zero_is_no_limit() {
        let rate = RateLimit::per_second(2);
        let app = AppId::generate();
        assert!(rate.take(&app).is_ok() && rate.take(&app).is_ok());
        assert!(matches!(rate.take(&app), Err(ApiError::RateLimited { .. })));
        assert!(rate.take(&AppId::generate()).is_ok());
        assert!((0..100).all(|_| RateLimit::per_second(0).take(&app).is_ok()));
    }
}
