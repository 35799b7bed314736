//! Rates per app and per address. A limit of 0 is no limit; a refusal says when to come again.

use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::web::Data;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use ipnet::IpNet;
use sakshi_domain::ids::{AppId, EventId};

use super::budget::Owner;
use super::error::ApiError;

/// Keys remembered before those at rest are dropped for the first time.
const KEYS_KEPT: usize = 10_000;

/// A rate per key, shared by all workers of the process.
#[derive(Clone)]
pub struct Rate<K: Hash + Eq + Clone + Send + Sync + 'static>(Option<Arc<Bounded<K>>>);

struct Bounded<K: Hash + Eq + Clone + Send + Sync + 'static> {
    limiter: DefaultKeyedRateLimiter<K>,
    /// What can be taken at once.
    most: NonZeroU32,
    /// Forgetting looks at every key, so it is done when their number has doubled since the last time.
    forget_above: AtomicUsize,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Bounded<K> {
    fn forget_those_at_rest(&self) {
        if self.limiter.len() > self.forget_above.load(Ordering::Relaxed) {
            self.limiter.retain_recent();
            self.forget_above.store(self.limiter.len().saturating_mul(2).max(KEYS_KEPT), Ordering::Relaxed);
        }
    }
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Rate<K> {
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
        Self(NonZeroU32::new(rate).map(|most| {
            let (limiter, forget_above) = (RateLimiter::keyed(quota(most)), AtomicUsize::new(KEYS_KEPT));
            Arc::new(Bounded { limiter, most, forget_above })
        }))
    }

    /// Takes one.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`] when there is none left.
    pub fn take(&self, key: &K) -> Result<(), ApiError> {
        self.take_cost(key, NonZeroU32::MIN)
    }

    /// Takes what something costs beyond the one that was taken for it, or as much as there can be.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`] when there are not so many left.
    pub fn take_more(&self, key: &K, cost: NonZeroU32) -> Result<(), ApiError> {
        // What costs more than there can be would otherwise never be had.
        let beyond_one = self.0.as_ref().and_then(|bounded| NonZeroU32::new(bounded.most.get() - 1));
        beyond_one.map_or(Ok(()), |most| self.take_cost(key, cost.min(most)))
    }

    fn take_cost(&self, key: &K, cost: NonZeroU32) -> Result<(), ApiError> {
        let Some(bounded) = &self.0 else { return Ok(()) };
        bounded.forget_those_at_rest();
        // It is never more than the limiter has at most.
        bounded.limiter.check_key_n(key, cost).unwrap_or(Ok(())).map_err(|wait| {
            let retry_after = wait.wait_time_from(DefaultClock::default().now()).max(Duration::from_millis(1));
            ApiError::RateLimited { retry_after }
        })
    }
}

/// Who is connected, whatever the headers say.
pub(crate) fn peer(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.ip().to_canonical())
}

/// All rates of the public listener.
#[derive(Clone)]
pub struct Rates {
    /// `POST /init` by app.
    pub init: Rate<AppId>,
    /// `GET /result` by app.
    pub polls: Rate<AppId>,
    /// The identity app's callback by address.
    pub callbacks: Rate<IpAddr>,
    /// Pages by address.
    pub pages: Rate<IpAddr>,
    /// Verifications that guests start, each at the cost of a credit, by event and address.
    pub event_starts: Rate<(EventId, IpAddr)>,
    /// Attempts to sign in to the portal by address.
    pub sign_ins: Rate<IpAddr>,
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Arc<[IpNet]>,
}

impl Rates {
    /// The address of the person or server behind a request: the peer's, or the last address of
    /// `X-Forwarded-For` that no trusted proxy has. Of an IPv6 address the /64 network, which one
    /// subscriber has to itself.
    #[must_use]
    pub fn address(&self, request: &HttpRequest) -> IpAddr {
        match self.host(request) {
            IpAddr::V6(six) => Ipv6Addr::from(u128::from(six) >> 64 << 64).into(),
            four => four,
        }
    }

    fn host(&self, request: &HttpRequest) -> IpAddr {
        let peer = peer(request);
        let trusted = |address: &IpAddr| self.trusted_proxies.iter().any(|net| net.contains(address));
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
}

impl Owner {
    /// The address behind a request; on a listener without rates, the peer's.
    #[must_use]
    pub fn of_sender(request: &HttpRequest) -> Self {
        let rates = request.app_data::<Data<Rates>>();
        Self::Address(rates.map_or_else(|| peer(request), |rates| rates.address(request)))
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn rates() -> Rates {
        Rates {
            init: Rate::per_second(0),
            polls: Rate::per_second(0),
            callbacks: Rate::per_second(0),
            pages: Rate::per_second(0),
            event_starts: Rate::per_second(0),
            sign_ins: Rate::per_minute(0),
            trusted_proxies: ["10.0.0.0/8".parse().unwrap()].into(),
        }
    }

    fn seen(peer: &str, forwarded: &str) -> String {
        let request = TestRequest::default().peer_addr(format!("{peer}:1").parse().unwrap()).insert_header(("x-forwarded-for", forwarded));
        rates().address(&request.to_http_request()).to_string()
    }

    #[test]
    fn a_strangers_forwarded_for_is_not_believed() {
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
        let (rate, app) = (Rate::per_minute(5), AppId::generate());
        let cost = |cost| NonZeroU32::new(cost).unwrap();
        assert!(rate.take_more(&app, cost(3)).is_ok() && rate.take_more(&app, cost(3)).is_err() && rate.take_more(&app, cost(2)).is_ok());
        assert!(rate.take(&app).is_err());
        for (most, other) in [(1, AppId::generate()), (5, AppId::generate())] {
            let rate = Rate::per_minute(most);
            assert!(rate.take(&other).is_ok() && rate.take_more(&other, cost(9)).is_ok(), "{most}");
        }
    }

    #[test]
    fn one_more_than_the_rate_is_refused_and_zero_is_no_limit() {
        let rate = Rate::per_second(2);
        let app = AppId::generate();
        assert!(rate.take(&app).is_ok() && rate.take(&app).is_ok());
        assert!(matches!(rate.take(&app), Err(ApiError::RateLimited { .. })));
        assert!(rate.take(&AppId::generate()).is_ok());
        assert!((0..100).all(|_| Rate::per_second(0).take(&app).is_ok()));
    }
}
