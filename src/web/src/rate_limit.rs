//! Rate limits per app and per address, and the address that a request counts for. A limit of 0 means no limit.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest};
use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use ipnet::IpNet;
use sakshi_domain::ids::{AppId, ClientId, EventId, TxnId};
use sakshi_service::budget::Owner;

use super::error::ApiError;
use super::event_stream::StreamSlots;

/// Number of keys above which unused keys are first dropped.
const SWEEP_ABOVE_MIN: usize = 10_000;

/// A limit per key, shared by all workers of the process.
#[derive(Clone)]
pub struct RateLimit<K: Hash + Eq + Clone + Send + Sync + 'static> {
    /// Name in responses.
    name: &'static str,
    limiter: Option<Arc<Limiter<K>>>,
}

struct Limiter<K: Hash + Eq + Clone + Send + Sync + 'static> {
    limiter: DefaultKeyedRateLimiter<K, StateInformationMiddleware>,
    /// Largest burst.
    burst: NonZeroU32,
    /// Time in which a full burst is replenished.
    window: Duration,
    /// Number of keys above which a sweep drops the unused keys. It is twice the number after the last sweep, because a
    /// sweep visits every key.
    sweep_above: AtomicUsize,
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> Limiter<K> {
    fn drop_unused(&self) {
        if self.limiter.len() > self.sweep_above.load(Ordering::Relaxed) {
            self.limiter.retain_recent();
            self.sweep_above.store(self.limiter.len().saturating_mul(2).max(SWEEP_ABOVE_MIN), Ordering::Relaxed);
        }
    }
}

/// A limit and the caller's remaining requests, as in the headers `RateLimit-Policy` and `RateLimit`
/// (draft-ietf-httpapi-ratelimit-headers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitState {
    /// Name of the limit.
    pub name: &'static str,
    /// Requests allowed in the window.
    pub quota: u32,
    /// Length of the window.
    pub window: Duration,
    /// Remaining requests.
    pub remaining: u32,
    /// Time until the whole quota is available again.
    pub reset: Duration,
}

/// The state of each limit that counted the request.
#[derive(Default)]
struct LimitStates(Vec<LimitState>);

/// Returns the state of the request's limits as response headers.
pub(crate) fn headers(request: &HttpRequest) -> Vec<(HeaderName, HeaderValue)> {
    let extensions = request.extensions();
    let Some(LimitStates(states)) = extensions.get::<LimitStates>() else { return Vec::new() };
    let whole = |time: Duration| time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let list = |item: fn(&LimitState, u64) -> String, time: fn(&LimitState) -> Duration| {
        states.iter().map(|state| item(state, whole(time(state)))).collect::<Vec<_>>().join(", ")
    };
    let policy = list(|state, window| format!("\"{}\";q={};w={window}", state.name, state.quota), |state| state.window);
    let remaining =
        list(|state, reset| format!("\"{}\";r={};t={reset}", state.name, state.remaining), |state| state.reset);
    let lines = [("ratelimit-policy", policy), ("ratelimit", remaining)].into_iter();
    lines.filter_map(|(name, text)| Some((HeaderName::from_static(name), HeaderValue::from_str(&text).ok()?))).collect()
}

impl<K: Hash + Eq + Clone + Send + Sync + 'static> RateLimit<K> {
    /// Allows `per_second` requests, with bursts of the same size; 0 for no limit.
    #[must_use]
    pub fn per_second(name: &'static str, per_second: u32) -> Self {
        Self::with_quota(name, per_second, Duration::from_secs(1), Quota::per_second)
    }

    /// Allows `per_minute` requests, with bursts of the same size; 0 for no limit.
    #[must_use]
    pub fn per_minute(name: &'static str, per_minute: u32) -> Self {
        Self::with_quota(name, per_minute, Duration::from_secs(60), Quota::per_minute)
    }

    /// Allows `per_hour` requests, with bursts of the same size; 0 for no limit.
    #[must_use]
    pub fn per_hour(name: &'static str, per_hour: u32) -> Self {
        Self::with_quota(name, per_hour, Duration::from_secs(3_600), Quota::per_hour)
    }

    fn with_quota(name: &'static str, rate: u32, window: Duration, quota: fn(NonZeroU32) -> Quota) -> Self {
        let limiter = NonZeroU32::new(rate).map(|burst| {
            let limiter = RateLimiter::keyed(quota(burst)).with_middleware();
            Arc::new(Limiter { limiter, burst, window, sweep_above: AtomicUsize::new(SWEEP_ABOVE_MIN) })
        });
        Self { name, limiter }
    }

    /// Returns the limit with its whole quota; `None` if requests are unlimited.
    #[must_use]
    pub fn policy(&self) -> Option<LimitState> {
        let limiter = self.limiter.as_ref()?;
        let quota = limiter.burst.get();
        Some(LimitState { name: self.name, quota, window: limiter.window, remaining: quota, reset: Duration::ZERO })
    }

    /// Counts a request, and records the remaining quota for its response.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`].
    pub fn count(&self, request: &HttpRequest, key: &K) -> Result<(), ApiError> {
        let result = self.take_cost(key, NonZeroU32::MIN);
        let state = match &result {
            Ok(state) => *state,
            Err(ApiError::RateLimited { retry_after, .. }) => {
                self.policy().map(|policy| LimitState { remaining: 0, reset: *retry_after, ..policy })
            }
            Err(_) => None,
        };
        if let Some(state) = state {
            let mut extensions = request.extensions_mut();
            match extensions.get_mut::<LimitStates>() {
                Some(LimitStates(states)) => states.push(state),
                None => drop(extensions.insert(LimitStates(vec![state]))),
            }
        }
        result.map(drop)
    }

    /// Counts one request.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`].
    pub fn take(&self, key: &K) -> Result<(), ApiError> {
        self.take_cost(key, NonZeroU32::MIN).map(drop)
    }

    /// Counts the extra cost of a request that [`Self::take`] has counted as 1. The whole cost is at most a burst.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`].
    pub fn take_extra(&self, key: &K, cost: NonZeroU32) -> Result<(), ApiError> {
        // A request that costs more than a burst would otherwise never pass.
        let extra_max = self.limiter.as_ref().and_then(|limiter| NonZeroU32::new(limiter.burst.get() - 1));
        extra_max.map_or(Ok(()), |extra_max| self.take_cost(key, cost.min(extra_max)).map(drop))
    }

    fn take_cost(&self, key: &K, cost: NonZeroU32) -> Result<Option<LimitState>, ApiError> {
        let Some(limiter) = &self.limiter else { return Ok(None) };
        limiter.drop_unused();
        match limiter.limiter.check_key_n(key, cost) {
            Ok(Ok(state)) => {
                let (quota, remaining) = (limiter.burst.get(), state.remaining_burst_capacity());
                let reset = limiter.window.mul_f64(f64::from(quota.saturating_sub(remaining)) / f64::from(quota));
                Ok(Some(LimitState { name: self.name, quota, window: limiter.window, remaining, reset }))
            }
            Ok(Err(wait)) => {
                let retry_after = wait.wait_time_from(DefaultClock::default().now()).max(Duration::from_millis(1));
                Err(ApiError::RateLimited { limit: self.name, retry_after })
            }
            // The cost is never larger than a burst.
            Err(_) => Ok(None),
        }
    }
}

/// The limits that single clients have, shared by all workers of the process. A changed limit starts with a full quota.
#[derive(Clone, Default)]
pub struct ClientRates(Arc<Mutex<RatesByClient>>);

/// The requests per second of each client, and the limit that counts them.
type RatesByClient = HashMap<ClientId, (NonZeroU32, RateLimit<()>)>;

impl ClientRates {
    /// Counts a request of a client, if the client has a limit.
    ///
    /// # Errors
    /// [`ApiError::RateLimited`].
    pub fn count(
        &self,
        request: &HttpRequest,
        client: &ClientId,
        per_second: Option<NonZeroU32>,
    ) -> Result<(), ApiError> {
        let Some(per_second) = per_second else { return Ok(()) };
        let mut rates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new_limit = || (per_second, RateLimit::per_second("client", per_second.get()));
        let entry = rates.entry(client.clone()).or_insert_with(new_limit);
        let (current_rate, _) = entry;
        if *current_rate != per_second {
            *entry = new_limit();
        }
        let (_, limit) = entry;
        let limit = limit.clone();
        drop(rates);
        limit.count(request, &())
    }
}

/// Returns the subscriber at an address: for IPv6 its /64 network, which belongs to one subscriber.
#[must_use]
pub fn subscriber(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) => Ipv6Addr::from(u128::from(six) >> 64 << 64).into(),
        four => four,
    }
}

/// Returns the address of the connection, regardless of headers.
fn peer(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(IpAddr::from([0, 0, 0, 0]), |peer| peer.ip().to_canonical())
}

/// All limits of the public listener by caller.
#[derive(Clone)]
pub struct RateLimits {
    /// Requests to the API by client.
    pub clients: ClientRates,
    /// `POST /init` by app.
    pub init: RateLimit<AppId>,
    /// Requests that are free for the client but not for the service, by client: orders to upstreams, queries to
    /// sources, new events.
    pub orders: RateLimit<ClientId>,
    /// `GET /result` by app.
    pub polls: RateLimit<AppId>,
    /// The identity app's callbacks by transaction.
    pub callbacks: RateLimit<TxnId>,
    /// Callbacks to unknown callback addresses, by address.
    pub stray_callbacks: RateLimit<IpAddr>,
    /// Pages by address.
    pub pages: RateLimit<IpAddr>,
    /// Verifications that guests start, one credit each, by event and address.
    pub event_starts: RateLimit<(EventId, IpAddr)>,
    /// Verifications that guests start, by event only.
    pub starts_of_events: RateLimit<EventId>,
    /// Refused requests that are recorded for developers, by app.
    pub refusals: RateLimit<AppId>,
    /// Attempts to sign in to the portal by address.
    pub sign_ins: RateLimit<IpAddr>,
    /// Attempts to sign in to a portal account from unknown browsers, by the digest of its e-mail address.
    pub sign_ins_of_accounts: RateLimit<[u8; 32]>,
    /// Attempts to sign in to a portal account from a browser that has signed in before, by a digest of both.
    pub sign_ins_of_browsers: RateLimit<[u8; 32]>,
    /// Attempts at the PIN of a door (a check-in page at an event's entrance), by the path of the door and address.
    pub pins: RateLimit<(String, IpAddr)>,
    /// Attempts at the PIN of a door, by the path of the door only.
    pub pins_of_doors: RateLimit<String>,
    /// Slots of event streams.
    pub streams: StreamSlots,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: TrustedProxies,
}

/// Peers whose `X-Forwarded-For` is trusted.
pub type TrustedProxies = Arc<[IpNet]>;

/// Returns the sender of a request as an owner in the memory budgets: its address. A listener without rate limits uses
/// the address of the peer.
pub(crate) fn sender(request: &HttpRequest) -> Owner {
    let rates = request.app_data::<Data<RateLimits>>();
    Owner::Address(rates.map_or_else(|| peer(request), |rates| rates.client_address(request)))
}

impl RateLimits {
    /// Sets no limits, and no trusted proxies.
    #[must_use]
    pub fn unlimited() -> Self {
        Self {
            clients: ClientRates::default(),
            init: RateLimit::per_second("init", 0),
            orders: RateLimit::per_second("orders", 0),
            polls: RateLimit::per_second("polls", 0),
            callbacks: RateLimit::per_second("callbacks", 0),
            stray_callbacks: RateLimit::per_second("callbacks", 0),
            pages: RateLimit::per_second("pages", 0),
            event_starts: RateLimit::per_second("starts", 0),
            starts_of_events: RateLimit::per_minute("starts", 0),
            refusals: RateLimit::per_second("refusals", 0),
            sign_ins: RateLimit::per_minute("sign_ins", 0),
            sign_ins_of_accounts: RateLimit::per_hour("sign_ins", 0),
            sign_ins_of_browsers: RateLimit::per_hour("sign_ins", 0),
            pins: RateLimit::per_minute("pins", 0),
            pins_of_doors: RateLimit::per_minute("pins", 0),
            streams: StreamSlots::new(usize::MAX),
            trusted_proxies: Arc::default(),
        }
    }

    /// Returns the enabled limits that clients can reach, each with a name for what it counts by.
    #[must_use]
    pub fn policies(&self) -> Vec<(LimitState, &'static str)> {
        let all = [
            (self.init.policy(), "application"),
            (self.polls.policy(), "application"),
            (self.orders.policy(), "client"),
            (self.pages.policy(), "address"),
            (self.event_starts.policy(), "event and address"),
            (self.starts_of_events.policy(), "event"),
        ];
        all.into_iter().filter_map(|(policy, by)| Some((policy?, by))).collect()
    }

    /// Returns the subscriber behind a request, as [`subscriber`] of [`Self::host`].
    #[must_use]
    pub fn client_address(&self, request: &HttpRequest) -> IpAddr {
        subscriber(self.host(request))
    }

    /// Returns the address of the client behind a request: the peer's, or the last untrusted address of
    /// `X-Forwarded-For`.
    #[must_use]
    pub fn host(&self, request: &HttpRequest) -> IpAddr {
        host(request, &self.trusted_proxies)
    }
}

/// Returns the address behind a request: the peer's, or the last untrusted address of `X-Forwarded-For`.
#[must_use]
pub fn host(request: &HttpRequest, trusted_proxies: &[IpNet]) -> IpAddr {
    let peer = peer(request);
    let trusted = |address: &IpAddr| trusted_proxies.iter().any(|net| net.contains(address));
    if !trusted(&peer) {
        return peer;
    }
    // The client may have sent any bytes before the address that a proxy appended.
    let forwarded = request.headers().get_all("x-forwarded-for").map(HeaderValue::as_bytes);
    let hops: Vec<&[u8]> = forwarded.flat_map(|value| value.split(|byte| *byte == b',')).collect();
    let mut address = peer;
    for hop in hops.into_iter().rev() {
        let Some(hop) = std::str::from_utf8(hop).ok().and_then(|hop| hop.trim().parse::<IpAddr>().ok()) else { break };
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

    fn client_address_of(peer: &str, forwarded: impl AsRef<[u8]>) -> String {
        let request = TestRequest::default()
            .peer_addr(format!("{peer}:1").parse().unwrap())
            .insert_header(("x-forwarded-for", HeaderValue::from_bytes(forwarded.as_ref()).unwrap()));
        rates().client_address(&request.to_http_request()).to_string()
    }

    #[test]
    fn each_client_has_its_own_limit_and_a_new_limit_applies_at_once() {
        let (rates, client) = (ClientRates::default(), ClientId::generate());
        let request = TestRequest::default().to_http_request();
        let take = |limit| rates.count(&request, &client, NonZeroU32::new(limit)).is_ok();
        assert!((0..100).all(|_| take(0)), "without a limit");
        assert!(take(2) && take(2) && !take(2));
        assert!(rates.count(&request, &ClientId::generate(), NonZeroU32::new(2)).is_ok(), "another client");
        assert!(take(1) && !take(1));
    }

    #[test]
    fn forwarded_for_of_an_untrusted_peer_is_ignored() {
        assert_eq!(client_address_of("203.0.113.9", "1.2.3.4"), "203.0.113.9");
    }

    #[test]
    fn the_last_untrusted_hop_counts_behind_trusted_proxies() {
        assert_eq!(client_address_of("10.0.0.1", "6.6.6.6, 198.51.100.7, 10.2.3.4"), "198.51.100.7");
        assert_eq!(client_address_of("10.0.0.1", "garbage"), "10.0.0.1");
        assert_eq!(client_address_of("10.0.0.1", b"\xff, 198.51.100.7"), "198.51.100.7");
    }

    #[test]
    fn an_ipv6_subscriber_is_one_network_and_a_mapped_ipv4_address_is_itself() {
        assert_eq!(client_address_of("[2001:db8:1:2:3:4:5:6]", ""), "2001:db8:1:2::");
        assert_eq!(client_address_of("[::ffff:203.0.113.9]", ""), "203.0.113.9");
        assert_eq!(client_address_of("10.0.0.1", "::ffff:198.51.100.7"), "198.51.100.7");
    }

    #[test]
    fn a_costly_request_takes_more_but_never_more_than_a_burst() {
        let (rate, app) = (RateLimit::per_minute("test", 5), AppId::generate());
        let cost = |cost| NonZeroU32::new(cost).unwrap();
        assert!(
            rate.take_extra(&app, cost(3)).is_ok()
                && rate.take_extra(&app, cost(3)).is_err()
                && rate.take_extra(&app, cost(2)).is_ok()
        );
        assert!(rate.take(&app).is_err());
        for (burst, other) in [(1, AppId::generate()), (5, AppId::generate())] {
            let rate = RateLimit::per_minute("test", burst);
            assert!(rate.take(&other).is_ok() && rate.take_extra(&other, cost(9)).is_ok(), "{burst}");
        }
    }

    #[test]
    fn a_request_above_the_rate_is_refused_and_a_rate_of_zero_is_unlimited() {
        let rate = RateLimit::per_second("test", 2);
        let app = AppId::generate();
        assert!(rate.take(&app).is_ok() && rate.take(&app).is_ok());
        assert!(matches!(rate.take(&app), Err(ApiError::RateLimited { limit: "test", .. })));
        assert!(rate.take(&AppId::generate()).is_ok());
        assert!((0..100).all(|_| RateLimit::per_second("test", 0).take(&app).is_ok()));
    }

    #[test]
    fn each_response_has_its_limits_and_the_remaining_quotas() {
        let (rate, other, app) =
            (RateLimit::per_second("init", 2), RateLimit::per_minute("orders", 30), AppId::generate());
        let mut responses = Vec::new();
        for _ in 0..3 {
            let request = TestRequest::default().to_http_request();
            let counted = rate.count(&request, &app).and_then(|()| other.count(&request, &app));
            let texts: Vec<String> =
                headers(&request).iter().map(|(_, text)| text.to_str().unwrap().to_owned()).collect();
            responses.push((counted.is_ok(), texts.try_into().unwrap()));
        }
        let policies = "\"init\";q=2;w=1, \"orders\";q=30;w=60";
        let response =
            |remaining: &str, is_allowed, policy: &str| (is_allowed, [policy.to_owned(), remaining.to_owned()]);
        assert_eq!(responses[0], response("\"init\";r=1;t=1, \"orders\";r=29;t=2", true, policies));
        assert_eq!(responses[1], response("\"init\";r=0;t=1, \"orders\";r=28;t=4", true, policies));
        assert_eq!(responses[2], response("\"init\";r=0;t=1", false, "\"init\";q=2;w=1"));
        let request = TestRequest::default().to_http_request();
        assert!(RateLimit::per_second("none", 0).count(&request, &app).is_ok());
        assert!(headers(&request).is_empty(), "there are no headers without a limit");
    }
}
