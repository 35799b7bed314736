//! Rates per app and per address. A limit of 0 is no limit; a refusal says when to come again.

use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use actix_web::HttpRequest;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use ipnet::IpNet;
use sakshi_domain::ids::AppId;

use super::error::ApiError;

/// Keys remembered before those at rest are dropped.
const KEYS_KEPT: usize = 10_000;

/// A rate per key, shared by all workers of the process.
#[derive(Clone)]
pub struct Rate<K: Hash + Eq + Clone + Send + Sync + 'static>(Option<Arc<DefaultKeyedRateLimiter<K>>>);

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Rate<K> {
    /// At most `per_second` with bursts of as many; 0 for no limit.
    #[must_use]
    pub fn per_second(per_second: u32) -> Self {
        Self(NonZeroU32::new(per_second).map(|rate| Arc::new(RateLimiter::keyed(Quota::per_second(rate)))))
    }

    /// Takes one.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`] when there is none left.
    pub fn take(&self, key: &K) -> Result<(), ApiError> {
        let Some(limiter) = &self.0 else { return Ok(()) };
        if limiter.len() > KEYS_KEPT {
            limiter.retain_recent();
        }
        limiter.check_key(key).map_err(|wait| {
            let retry_after = wait.wait_time_from(DefaultClock::default().now()).max(Duration::from_millis(1));
            ApiError::RateLimited { retry_after }
        })
    }
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
    /// Whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Arc<[IpNet]>,
}

impl Rates {
    /// The address of the person or server behind a request: the peer's, or the last address of
    /// `X-Forwarded-For` that no trusted proxy has.
    #[must_use]
    pub fn address(&self, request: &HttpRequest) -> IpAddr {
        let peer = request.peer_addr().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.ip().to_canonical());
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
    fn one_more_than_the_rate_is_refused_and_zero_is_no_limit() {
        let rate = Rate::per_second(2);
        let app = AppId::generate();
        assert!(rate.take(&app).is_ok() && rate.take(&app).is_ok());
        assert!(matches!(rate.take(&app), Err(ApiError::RateLimited { .. })));
        assert!(rate.take(&AppId::generate()).is_ok());
        assert!((0..100).all(|_| Rate::per_second(0).take(&app).is_ok()));
    }
}
